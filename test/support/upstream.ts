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

export interface TestUpstream {
  readonly url: string
  /** The requests that arrived whole. */
  readonly seen: Seen[]
  /** Requests that began, whole or not. */
  readonly begun: () => number
  /** Resolves when a running answer's connection was closed by the other side. */
  readonly aborted: () => Promise<void>
  /** Resolves when nobody holds a connection. */
  readonly idle: () => Promise<void>
  readonly close: () => Promise<void>
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
): Promise<TestUpstream> {
  const seen: Seen[] = []
  let begun = 0
  let tellAborted = () => {}
  const aborted = new Promise<void>(resolve => {
    tellAborted = resolve
  })
  const server = createServer((request, response) => {
    begun++
    response.on('close', () => {
      if (!response.writableFinished) tellAborted()
    })
    buffer(request).then(
      body => {
        const one: Seen = {
          method: request.method ?? '',
          url: request.url ?? '',
          headers: request.headers,
          rawHeaders: request.rawHeaders,
          body
        }
        seen.push(one)
        answer(request, response, one)
      },
      () => {}
    )
  })
  // It never hangs up on the gateway by itself, however long this process stands still.
  server.keepAliveTimeout = 0
  let connections = 0
  let onIdle = () => {}
  server.on('connection', socket => {
    connections++
    socket.once('close', () => {
      if (--connections === 0) onIdle()
    })
  })
  const idle = async () => {
    if (connections > 0) {
      await new Promise<void>(resolve => {
        onIdle = resolve
      })
    }
  }
  const port = await listen(server)
  const close = async () => {
    server.closeAllConnections()
    await new Promise(resolve => server.close(resolve))
  }
  cleanUp(close)
  return {
    url: `http://127.0.0.1:${port}`,
    seen,
    begun: () => begun,
    aborted: () => aborted,
    idle,
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
