/**
 * Clients of an overloaded server, each kind in a process of its own: a flood at full throttle, one
 * user with a new connection each time, and an office of many users behind one address.
 */
import { connect, type Socket } from 'node:net'
import { createHistogram } from 'node:perf_hooks'
import { setTimeout as wait } from 'node:timers/promises'

export interface Clients {
  readonly port: number
  readonly path: string
  /** The address of the clients. */
  readonly from: string
  readonly connections: number
  readonly ms: number
  /** After each response; 0 is full throttle. */
  readonly pauseMs: number
  /** Whether each request has a connection of its own. */
  readonly connectsAnew: boolean
}

export interface Served {
  /** By status, or the name of the failure. */
  readonly statuses: Readonly<Record<string, number>>
  readonly p50Ms: number
  readonly p99Ms: number
  readonly maxMs: number
}

async function run(clients: Clients): Promise<Served> {
  const times = createHistogram()
  const statuses: Record<string, number> = {}
  const endAt = performance.now() + clients.ms
  const onServed = (status: string, ms: number) => {
    statuses[status] = (statuses[status] ?? 0) + 1
    times.record(Math.max(1, Math.round(ms * 1e6)))
  }
  await Promise.all(
    Array.from({ length: clients.connections }, () => runOne(clients, endAt, onServed))
  )
  return {
    statuses,
    p50Ms: times.percentile(50) / 1e6,
    p99Ms: times.percentile(99) / 1e6,
    maxMs: times.max / 1e6
  }
}

async function runOne(
  clients: Clients,
  endAt: number,
  onServed: (status: string, ms: number) => void
): Promise<void> {
  let socket: Socket | undefined
  while (performance.now() < endAt) {
    const startedAt = performance.now()
    socket ??= connect({ port: clients.port, host: '127.0.0.1', localAddress: clients.from })
    const status = await ask(socket, clients)
    const isOver = performance.now() > endAt
    if (!isOver || clients.connectsAnew) onServed(status, performance.now() - startedAt)
    if (!/^\d+$/.test(status) || clients.connectsAnew) {
      socket.destroy()
      socket = undefined
    }
    if (!/^\d+$/.test(status)) await wait(100)
    if (clients.pauseMs > 0) await wait(clients.pauseMs * (0.5 + Math.random()))
  }
  socket?.destroy()
}

/** Small responses, whose length is announced. @returns the status, or the name of the failure */
function ask(socket: Socket, { path, port, connectsAnew }: Clients): Promise<string> {
  return new Promise(resolve => {
    let text = ''
    const end = (status: string) => {
      socket.removeAllListeners()
      socket.on('error', () => {})
      resolve(status)
    }
    socket.on('data', chunk => {
      text += chunk.toString('latin1')
      const head = text.indexOf('\r\n\r\n')
      if (head < 0) return
      const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0)
      if (text.length >= head + 4 + length) end(text.slice(9, 12))
    })
    socket.on('error', (error: NodeJS.ErrnoException) => end(error.code ?? error.message))
    socket.on('close', () => end('closed'))
    const connection = connectsAnew ? 'close' : 'keep-alive'
    socket.write(
      `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAccept: application/json\r\n` +
        `Connection: ${connection}\r\n\r\n`
    )
  })
}

process.on('message', (clients: Clients) => {
  run(clients).then(
    served => process.send?.(served),
    (error: Error) => {
      throw error
    }
  )
})
process.once('disconnect', () => process.exit())
