/** Ports that nobody else takes by chance, so that what is down stays down and can come back where it was. */
import { createServer, type Server } from 'node:net'

/**
 * Below the ports that systems give out by themselves (Linux: from 32768 on), for connections too: one to a closed
 * port among those can even reach itself. Each of tap's jobs has a part of its own.
 */
const perJob = 5000
const first = 12_000 + perJob * (Number(process.env['TAP_JOB_ID'] ?? 0) % 4)
const given = new Set<number>()

/** Makes a server listen on loopback. @returns its port */
export async function listen(server: Server): Promise<number> {
  for (;;) {
    const port = first + Math.floor(Math.random() * perJob)
    if (given.has(port)) continue
    const listens = await new Promise<boolean>((resolve, reject) => {
      const inUse = (error: Error & { code?: string }) => {
        if (error.code === 'EADDRINUSE') resolve(false)
        else reject(error)
      }
      server.once('error', inUse)
      server.listen(port, '127.0.0.1', () => {
        server.removeListener('error', inUse)
        resolve(true)
      })
    })
    if (!listens) continue
    given.add(port)
    return port
  }
}

export async function freePort(): Promise<number> {
  const server = createServer()
  const port = await listen(server)
  await new Promise(resolve => server.close(resolve))
  return port
}

export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = []
  while (ports.length < count) ports.push(await freePort())
  return ports
}
