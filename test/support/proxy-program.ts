/** Real proxies in front of a gateway: nginx, Caddy, HAProxy. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { type IncomingMessage, request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { join } from 'node:path'
import { adopt } from '../../src/observability/emitters.ts'
import { until } from './until.ts'

/**
 * Starts a proxy, and waits until it serves.
 * @param statusOf of a request that the gateway answers with 401
 * @throws where the program ends, with what it printed
 */
export async function startProxy(
  cleanUp: (undo: () => unknown) => void,
  [program, ...words]: readonly [string, ...string[]],
  statusOf: () => Promise<number | undefined>
): Promise<void> {
  const PATH = `${process.env['PATH'] ?? ''}:/usr/sbin`
  const child = adopt(spawn(program, words, { env: { ...process.env, PATH } }))
  let printed = ''
  for (const stream of [child.stdout, child.stderr]) {
    adopt(stream).on('data', chunk => (printed += String(chunk)))
  }
  const closed = once(child, 'close')
  cleanUp(async () => {
    child.kill('SIGTERM')
    await closed
  })
  const isServing = async () =>
    await statusOf().then(
      status => status === 401,
      () => false
    )
  await until(`${program} answers, or ends`, async () => {
    return child.exitCode !== null || (await isServing())
  })
  if (child.exitCode !== null) throw new Error(`${program} ended:\n${printed}`)
}

export interface ProxyCall {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** @param certificate of the proxy, for a call by https */
export async function callProxy(
  at: { readonly port: number; readonly path: string },
  { body, ...call }: ProxyCall,
  certificate?: { readonly ca: string; readonly servername: string }
): Promise<IncomingMessage> {
  const options = { host: '127.0.0.1', agent: false, ...at, ...call } as const
  const asked =
    certificate === undefined ? httpRequest(options) : httpsRequest({ ...options, ...certificate })
  asked.end(body)
  const [response] = (await once(asked, 'response')) as [IncomingMessage]
  return response
}

/** The site of nginx as a whole configuration, whose files stand in the folder. */
export function nginxConfig(folder: string, site: string): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map(name => `${name}_temp_path ${join(folder, name)};`)
    .join(' ')
  return `daemon off; pid ${join(folder, 'pid')}; worker_processes 1; events {}
http { access_log off; ${temporary} ${site} }`
}
