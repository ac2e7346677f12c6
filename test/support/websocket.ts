/** WebSocket in tests: `ws` at both ends. */
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { WebSocket, WebSocketServer, type ServerOptions } from 'ws'
import { listen } from './ports.ts'

/**
 * A back-end that speaks WebSocket, and answers ordinary requests with 200.
 * @param onConnection echoes without it
 */
export async function webSocketUpstream(
  cleanUp: (undo: () => unknown) => void,
  options: ServerOptions = {},
  onConnection: (socket: WebSocket, request: IncomingMessage) => void = echo
) {
  const requests: IncomingMessage[] = []
  const sockets = new Set<Socket>()
  const http = createServer((_request, response) => response.end('{"ok":1}'))
  const server = new WebSocketServer({ server: http, ...options })
  http.on('upgrade', request => requests.push(request))
  http.on('connection', socket => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  server.on('connection', (socket, request) => {
    socket.on('error', () => {})
    onConnection(socket, request)
  })
  const port = await listen(http)
  cleanUp(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
    http.close()
  })
  return {
    url: `http://127.0.0.1:${port}`,
    /** Upgrade requests, the newest last. */
    requests,
    /** Connections that are open, the oldest first. */
    open: () => [...server.clients],
    /** Resolves with the next connection. */
    next: async () => ((await once(server, 'connection')) as [WebSocket])[0]
  }
}

function echo(socket: WebSocket): void {
  socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }))
}

export interface DialOptions {
  readonly cookie?: string
  readonly protocols?: readonly string[]
  readonly headers?: Readonly<Record<string, string>>
  readonly compress?: boolean
  /** Sent as it is, in the place of that of the URL. */
  readonly path?: string
}

function clientOf(url: string, options: DialOptions): WebSocket {
  const { cookie, protocols = [], headers = {}, compress = false, path } = options
  const socket = new WebSocket(url.replace(/^http/, 'ws'), [...protocols], {
    perMessageDeflate: compress,
    headers: { ...(cookie !== undefined && { cookie }), ...headers },
    finishRequest: request => {
      if (path !== undefined) request.path = path
      request.end()
    }
  })
  return socket.on('error', () => {})
}

/** A client that is open. @throws an error with the status of an ordinary response */
export async function dial(url: string, options: DialOptions = {}): Promise<WebSocket> {
  const socket = clientOf(url, options)
  await once(socket, 'open')
  return socket
}

/** Resolves when the connection is over. */
export async function closed(socket: WebSocket) {
  if (socket.readyState === WebSocket.CLOSED) throw new Error('it is closed already')
  const [code, reason] = (await once(socket, 'close')) as [number, Buffer]
  return { code, reason: reason.toString() }
}

/** The next message, as text. */
export async function message(socket: WebSocket): Promise<string> {
  const [data] = (await once(socket, 'message')) as [Buffer]
  return data.toString()
}

/** The status of an upgrade that is refused, and the body. */
export async function refusal(url: string, options: DialOptions = {}) {
  const refused = once(clientOf(url, options), 'unexpected-response')
  const [, response] = (await refused) as [unknown, IncomingMessage]
  const { statusCode: status = 0, headers } = response
  return { status, body: await text(response), headers: headers as object }
}
