/** Opens a WebSocket to an upstream, and links it with that of a client. */
import { type RawData, WebSocket } from 'ws'
import { GatewayError } from '../errors/errors.ts'
import { adopt } from '../observability/emitters.ts'
import type { Trail } from '../observability/trail.ts'
import type { Call } from './receiver.ts'
import { unreadable, upstreamError, type UpstreamResponse } from './response.ts'
import type { Upstream } from './upstream.ts'

interface WebSocketTarget extends Pick<Call, 'path' | 'headers' | 'timeoutMs'> {
  readonly upstream: Upstream
  readonly protocols: readonly string[]
  /** Bytes of the largest message. */
  readonly maxMessage: number
  /** Of the client's request. */
  readonly trail: Trail
  /** Aborted, with a GatewayError, when the client does not wait any more. */
  readonly signal: AbortSignal
}

type Opened = WebSocket | UpstreamResponse

/** @returns the socket, paused; or the ordinary response of an upstream that does not agree */
export async function openWebSocket(target: WebSocketTarget): Promise<Opened> {
  const { upstream, path, protocols, maxMessage, timeoutMs, trail, signal } = target
  const connection = await upstream.connect({
    method: 'GET',
    path,
    headers: withoutHandshake(target.headers),
    recorded: { trail, purpose: 'websocket' }
  })
  const { socket: connected, origin, headers, recorded } = connection
  if (signal.aborted) connected.destroy()
  signal.throwIfAborted()
  const { host } = new URL(origin)
  // The scheme does not matter: it is connected already.
  const socket = adopt(
    new WebSocket(`ws://${host}`, [...protocols], {
      createConnection: () => connected,
      headers: { ...headers, host },
      maxPayload: maxMessage,
      perMessageDeflate: false,
      maxHeaderSize: 16 * 1024,
      // A URL would write some characters of the path in another way.
      finishRequest: request => {
        request.path = path
        request.end()
      }
    })
  )
  const { promise, resolve, reject } = Promise.withResolvers<Opened>()
  const onAbort = () => reject(signal.reason)
  const timer = setTimeout(() => reject(new GatewayError('upstream.timeout')), timeoutMs)
  signal.addEventListener('abort', onAbort)
  socket
    .on('error', reject)
    // In the same turn: its first message may be there already.
    .once('open', () => {
      socket.pause()
      resolve(socket)
    })
    .once('unexpected-response', (_request, response) => {
      const body = adopt(response).setTimeout(timeoutMs, () => body.destroy())
      const { statusCode: status = 0, headers: fields } = response
      const fault = unreadable(status, fields)
      if (fault === undefined) resolve({ status, headers: fields, body })
      else reject(fault)
    })
  try {
    const opened = await promise
    recorded?.end('status' in opened ? opened.status : 101)
    return opened
  } catch (error) {
    const failure = upstreamError(error)
    recorded?.fail(error, failure.code)
    socket.terminate()
    throw failure
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', onAbort)
    // A connection may last for days: it holds on to nothing of its beginning.
    socket.off('error', reject).removeAllListeners('unexpected-response')
  }
}

/** The client's own handshake is with the gateway. */
function withoutHandshake(headers: WebSocketTarget['headers']): Record<string, string | string[]> {
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => !name.startsWith('sec-websocket-'))
  )
}

interface Cause {
  readonly by: 'client' | 'upstream' | 'gateway'
  /** Where the gateway ended it, or one side broke the protocol. */
  readonly closeCode?: number
  readonly reason?: string
}

/** With the messages that passed. */
export type RelayEnd = Cause & Readonly<Record<'toUpstream' | 'toClient', number>>
type OnEnd = (end: RelayEnd) => void

/** Of the messages for one side: while more wait, the other side is not read. */
const maxWaitingBytes = 256 * 1024
/** A side that does not answer a close frame is cut after this. */
const closeMs = 2000

/** Each side gets the messages of the other. */
export class Relay {
  readonly #client: Side
  readonly #upstream: Side
  readonly #onEnd: OnEnd
  readonly #beats: NodeJS.Timeout
  #cause: Cause | undefined
  #closing: NodeJS.Timeout | undefined

  /** @param upstream paused @param onEnd called when both sides are closed */
  constructor(client: WebSocket, upstream: WebSocket, beatMs: number, onEnd: OnEnd) {
    this.#client = new Side(client)
    this.#upstream = new Side(upstream)
    this.#onEnd = onEnd
    this.#beats = setInterval(() => this.#beat(), beatMs).unref()
    this.#pass(this.#client, this.#upstream, 'client')
    this.#pass(this.#upstream, this.#client, 'upstream')
    upstream.resume()
  }

  /** Tells the client why; the upstream only that it is over. */
  end(closeCode: number, reason: string): void {
    this.#begin({ by: 'gateway', closeCode, reason })
    this.#client.close(closeCode, reason)
    this.#upstream.close(1001)
  }

  destroy(): void {
    this.#begin({ by: 'gateway' })
    this.#client.socket.terminate()
    this.#upstream.socket.terminate()
  }

  /** Begins its end: what came first is the cause. */
  #begin(cause: Cause): void {
    this.#cause ??= cause
    this.#closing ??= setTimeout(() => this.destroy(), closeMs).unref()
  }

  /** A side of which nothing came, and which took nothing, is gone. */
  #beat(): void {
    for (const side of [this.#client, this.#upstream]) {
      const { socket } = side
      // Of one that is not read nothing is known.
      if (!side.isAlive && !socket.isPaused) {
        return socket.bufferedAmount > 0 ? this.destroy() : this.end(1001, 'idle')
      }
      side.isAlive = false
      if (socket.readyState === WebSocket.OPEN) socket.ping()
    }
  }

  #pass(from: Side, to: Side, by: 'client' | 'upstream'): void {
    from.socket.on('message', (data, isBinary) => {
      from.isAlive = true
      to.send(data, isBinary, from)
    })
    from.socket.on('error', error => {
      const closeCode = faultOf(error)
      if (closeCode === undefined) return
      // ws tells the side that broke the protocol.
      this.#begin({ by, closeCode })
      to.close(closeCode)
    })
    from.socket.on('close', (code, reason) => {
      this.#begin({ by })
      // 1005: closed without a code. 1006: lost.
      if (code === 1006) to.close(by === 'client' ? 1001 : 1011)
      else to.close(code === 1005 ? undefined : code, reason)
      if (to.socket.readyState === WebSocket.CLOSED) this.#finish()
    })
  }

  #finish(): void {
    clearInterval(this.#beats)
    clearTimeout(this.#closing)
    const cause = this.#cause ?? { by: 'gateway' }
    this.#onEnd({ ...cause, toUpstream: this.#upstream.sent, toClient: this.#client.sent })
  }
}

class Side {
  readonly socket: WebSocket
  /** Messages that were sent to it. */
  sent = 0
  /** Whether it has sent or taken something, pongs included, since the last ping. */
  isAlive = true

  constructor(socket: WebSocket) {
    this.socket = socket
    const hear = () => {
      this.isAlive = true
    }
    socket.on('ping', hear).on('pong', hear)
  }

  /** @param from is not read while too much waits here */
  send(data: RawData, isBinary: boolean, from: Side): void {
    const { socket } = this
    if (socket.readyState !== WebSocket.OPEN) return
    this.sent++
    socket.send(data, { binary: isBinary }, () => {
      this.isAlive = true
      if (from.socket.isPaused && socket.bufferedAmount <= maxWaitingBytes) from.socket.resume()
    })
    if (socket.bufferedAmount > maxWaitingBytes) from.socket.pause()
  }

  close(code?: number, reason?: Buffer | string): void {
    // A close frame stands behind what waits, and is not read by a side that is paused.
    this.socket.resume()
    this.socket.close(code, reason)
  }
}

const faults: Readonly<Record<string, number>> = {
  WS_ERR_INVALID_UTF8: 1007,
  WS_ERR_TOO_MANY_BUFFERED_PARTS: 1008,
  WS_ERR_UNSUPPORTED_MESSAGE_LENGTH: 1009
}

/** @returns the close code; undefined for an error that is no fault of the protocol */
function faultOf(error: Error): number | undefined {
  const { code = '' } = error as NodeJS.ErrnoException
  return code.startsWith('WS_ERR_') ? (faults[code] ?? 1002) : undefined
}
