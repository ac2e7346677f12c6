/** A Redis of its own for a test: a real redis-server on a free port, nothing kept on disk. */
import { Redis } from 'ioredis'
import type { Authority } from './authority.ts'
import { type Running, running } from './command.ts'
import { freePort } from './ports.ts'
import { redisCli } from './redis-cli.ts'
import { temporaryFolder } from './temporary.ts'

export type TestRedis = Awaited<ReturnType<typeof testRedis>>

/** Options as arguments of redis-server. */
export const flags = (options: Readonly<Record<string, string | number>>): string[] =>
  Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)])

/** Options of a server that takes TLS at this port, and asks nobody for a certificate. */
export const tlsOptions = (port: number, { key, certificate }: Authority) => ({
  'tls-port': port,
  'tls-auth-clients': 'no',
  'tls-cert-file': certificate,
  'tls-key-file': key,
  'tls-ca-cert-file': certificate
})

/**
 * @param extra further arguments for redis-server
 * @param program of another kind of Redis
 */
export async function testRedis(
  cleanUp: (undo: () => unknown) => void,
  extra: readonly string[] = [],
  [command = '', ...before]: readonly string[] = ['redis-server']
) {
  // A folder of its own: whatever another Redis left behind would be loaded.
  const folder = temporaryFolder()
  const port = await freePort()
  const options = { port, bind: '127.0.0.1', save: '', appendonly: 'no', dir: folder }
  let server: Running
  const start = async () => {
    server = running(cleanUp, command, [...before, ...flags(options), ...extra])
    await server.says('Ready to accept connections')
  }
  await start()
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    cli: async (...words: string[]) => await redisCli(port, ...words),
    /** A client until the end of the test. */
    client: () => {
      const client = new Redis(port)
      client.on('error', () => {})
      cleanUp(() => client.disconnect())
      return client
    },
    /** Gone at once, with all it knew. */
    kill: () => server.kill(),
    /** Starts again on the same port, after `kill`. */
    start,
    signal: (signal: NodeJS.Signals) => server.signal(signal)
  }
}
