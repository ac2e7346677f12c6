/** Answers what Node's server leaves to its user: bytes that its parser refuses, upgrades, CONNECT. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { type ErrorCode, errorKinds } from '../errors/errors.ts'
import { adopt } from '../observability/emitters.ts'
import { responsesOf, setUpgraded } from './connections.ts'
import { canMeet } from './hooks/request-policy.ts'
import { UpgradeResponse } from './hooks/upgrade.ts'

/** Nothing can be answered: the two sides have no common keys. */
const tlsFailure = /^(?:ERR_SSL_|ERR_TLS_|EPROTO$)/

const codeOfParserError: ReadonlyMap<string | undefined, ErrorCode> = new Map([
  ['HPE_HEADER_OVERFLOW', 'request.headers'],
  ['ERR_HTTP_REQUEST_TIMEOUT', 'request.timeout'],
  ['HPE_CHUNK_EXTENSIONS_OVERFLOW', 'request.too-large']
])

/**
 * Refuses bytes that are no request, requests that come too slowly, and CONNECT.
 * @param onTlsFailure called when keys could not be agreed on; the connection is closed
 */
export function refuseUnparsed(
  server: Server,
  refuse: (socket: Socket, code: ErrorCode, request?: IncomingMessage) => void,
  onTlsFailure?: (code: string | undefined, address: string | undefined) => void
): void {
  server.on('clientError', (error: Error & { code?: string }, socket: Socket) => {
    const { code } = error
    if (tlsFailure.test(code ?? '')) {
      onTlsFailure?.(code, socket.remoteAddress)
      return void socket.destroy()
    }
    if (code === 'ECONNRESET' || !socket.writable) return void socket.destroy()
    refuse(socket, codeOfParserError.get(code) ?? 'request.malformed')
  })
  server.on('connect', (request: IncomingMessage, socket: Socket) =>
    refuse(socket, 'route.method', request)
  )
  // The app answers also what expects more than it can meet.
  const pass = (request: IncomingMessage, response: ServerResponse) => {
    if (canMeet(request)) response.writeContinue()
    server.emit('request', request, response)
  }
  server.on('checkExpectation', pass).on('checkContinue', pass)
}

/** Answers what is no request, and closes the connection: its framing is in doubt. */
export function sendRefusal(
  socket: Socket,
  code: ErrorCode,
  headers: Readonly<Record<string, string>>,
  body: object
): void {
  const open = responsesOf(socket)
  // Node does so itself, but not once an upgrade or CONNECT has come behind them.
  socket.once('close', () => {
    for (const response of open) response.destroy()
  })
  // A response has its socket from its turn on the connection until its last byte is written. The
  // refusal must not be taken for it.
  const current = open.find(
    response => response.socket === socket && (response.headersSent || response.req.complete)
  )
  if (current !== undefined && !current.writableEnded) return void socket.destroy()
  const text = JSON.stringify(body)
  const fields = Object.entries({
    ...headers,
    'connection': 'close',
    'content-length': Buffer.byteLength(text)
  }).map(([name, value]) => `${name}: ${value}`)
  const refusal = [`HTTP/1.1 ${errorKinds[code].status} Refused`, ...fields, '', text].join('\r\n')
  endUnread(socket, current === undefined ? refusal : '')
}

/** The client's time to read the rest of the response, then to close the connection. */
const unreadMs = { flush: 10_000, close: 1000 }

/**
 * Closes a connection by timers. Nothing is read from it any more, so the client's end or reset
 * would not be seen, and its descriptor would never be freed.
 */
function endUnread(socket: Socket, last = ''): void {
  const destroySoon = (ms: number) => setTimeout(() => socket.destroy(), ms).unref()
  destroySoon(unreadMs.flush)
  socket.end(last, () => destroySoon(unreadMs.close))
}

/**
 * Lets the app answer an upgrade, so that all its hooks decide on it. A route that takes none
 * answers it as an ordinary request.
 * @param early what came behind the request
 * @returns false where it must be refused
 */
export function takeUpgrade(
  request: IncomingMessage,
  socket: Socket,
  early: Buffer,
  handle: (request: IncomingMessage, response: ServerResponse) => void
): boolean {
  // Behind a request that is still being answered, nothing could be answered in its turn.
  if (early.length > 0 || responsesOf(socket).length > 0) return false
  const response = adopt(new UpgradeResponse(request))
  try {
    response.assignSocket(socket)
  } catch {
    return false
  }
  adopt(socket)
  setUpgraded(socket)
  response.once('finish', () => {
    response.leave()
    endUnread(socket)
  })
  handle(request, response)
  return true
}
