/** Real back-ends on loopback: one that records and answers as told, one that speaks raw bytes. */
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse
} from 'node:http'
import { createServer as createRawServer, type Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { listen } from './ports.ts'

export interface Seen {
  readonly method: string
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly rawHeaders: string[]
  readonly body: Buffer
}

type Answer = (request: IncomingMessage, response: ServerResponse, seen: Seen) => void

export const json =
  (status: number, value: unknown): Answer =>
  (_request, response) => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
  }

export async function testUpstream(
  cleanUp: (undo: () => unknown) => void,
  answer: Answer = json(200, { ok: 1 })
) {
  const seen: Seen[] = []
  let begun = 0
  const server = createServer(async (request, response) => {
    begun++
    const body = await buffer(request).catch(() => undefined)
    if (body === undefined) return
    const { method = '', url = '', headers, rawHeaders } = request
    const one: Seen = { method, url, headers, rawHeaders, body }
    seen.push(one)
    answer(request, response, one)
  })
  // It never hangs up on the gateway by itself, however long this process stands still.
  server.keepAliveTimeout = 0
  let connections = 0
  let open = 0
  let onIdle = () => {}
  server.on('connection', socket => {
    connections++
    open++
    socket.once('close', () => {
      if (--open === 0) onIdle()
    })
  })
  const port = await listen(server)
  const close = async () => {
    server.closeAllConnections()
    await new Promise(resolve => server.close(resolve))
  }
  cleanUp(close)
  return {
    url: `http://127.0.0.1:${port}`,
    /** The requests that arrived whole. */
    seen,
    /** Requests that began, whole or not. */
    begun: () => begun,
    /** Connections that were ever opened. */
    connections: () => connections,
    /** Resolves when nobody holds a connection. */
    idle: async () => {
      if (open > 0) await new Promise<void>(resolve => void (onIdle = resolve))
    },
    close
  }
}

/** Answers each request with bytes as they are, once its head has arrived. */
export async function rawUpstream(
  cleanUp: (undo: () => unknown) => void,
  answer: (socket: Socket, head: string) => void
): Promise<{ url: string; requests: () => number }> {
  let requests = 0
  const sockets = new Set<Socket>()
  const server = createRawServer(socket => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
    let head = ''
    socket.on('data', chunk => {
      head += chunk.toString('latin1')
      if (!head.includes('\r\n\r\n')) return
      requests++
      const whole = head
      head = ''
      answer(socket, whole)
    })
  })
  const port = await listen(server)
  cleanUp(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise(resolve => server.close(resolve))
  })
  return { url: `http://127.0.0.1:${port}`, requests: () => requests }
}
