/** Opens a WebSocket to an upstream. */
import type { IncomingMessage } from 'node:http'
import { WebSocket } from 'ws'
import { GatewayError } from '../errors/errors.ts'
import { adopt } from '../observability/emitters.ts'
import type { Trail } from '../observability/trail.ts'
import type { Call } from './receiver.ts'
import { unreadable, type UpstreamResponse } from './response.ts'
import { upstreamError } from './failures.ts'
import { fixedHeadersOf } from './request-headers.ts'
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

interface Opened {
  /** Paused: `Relay` resumes it. Undefined where the upstream gave an ordinary response. */
  readonly socket?: WebSocket
  readonly response: UpstreamResponse
}

/** @throws GatewayError `upstream.*`, or the reason of the signal */
export async function openWebSocket(target: WebSocketTarget): Promise<Opened> {
  const { upstream, path, protocols, maxMessage, timeoutMs, trail, signal } = target
  const recordedAs = { trail, purpose: 'websocket' } as const
  const call = { method: 'GET', path, headers: target.headers, recorded: recordedAs }
  const added = await upstream.addedTo?.(call)
  const headers = withoutHandshake({
    ...target.headers,
    ...added,
    ...fixedHeadersOf(upstream.config)
  })
  const { socket: connected, origin, recorded } = await upstream.connect({ ...call, headers })
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
    .once('upgrade', response => {
      // In the same turn: its first message may be there already.
      socket.once('open', () => {
        socket.pause()
        resolve({ socket, response: responseIn(response) })
      })
    })
    .once('unexpected-response', (_request, response) => {
      const refusal = responseIn(adopt(response).setTimeout(timeoutMs, () => response.destroy()))
      const fault = unreadable(refusal.status, refusal.headers)
      if (fault === undefined) resolve({ response: refusal })
      else reject(fault)
    })
  try {
    const opened = await promise
    recorded?.end(opened.response.status)
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

function responseIn(message: IncomingMessage): UpstreamResponse {
  const { statusCode: status = 0, headers } = message
  return { status, headers, body: message }
}

/** The client's own handshake is with the gateway. */
function withoutHandshake(headers: WebSocketTarget['headers']): Record<string, string | string[]> {
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => !name.startsWith('sec-websocket-'))
  )
}
