/** Opens a WebSocket to an upstream. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { WebSocket } from 'ws'
import { GatewayError } from '../errors/errors.ts'
import { adopt } from '../observability/emitters.ts'
import type { Trail } from '../observability/trail.ts'
import { unreadable, upstreamError } from './failures.ts'
import { fixedHeadersOf } from './request-headers.ts'
import type { Upstream } from './upstream.ts'

export interface WebSocketTarget {
  readonly upstream: Upstream
  /** At the upstream, with the query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string | string[]>>
  readonly protocols: readonly string[]
  /** Bytes of the largest message. */
  readonly maxMessage: number
  /** To the upstream's response, from the moment at which it is connected. */
  readonly timeoutMs: number
  /** Of the client's request. */
  readonly trail: Trail
  /** Aborted, with a GatewayError, when the client does not wait any more. */
  readonly signal: AbortSignal
}

export type Opened =
  | {
      /** Paused: `Relay` resumes it. */
      readonly socket: WebSocket
      readonly headers: IncomingHttpHeaders
    }
  /** An ordinary response: the upstream did not agree. */
  | { readonly refused: IncomingMessage }

/** @throws GatewayError `upstream.*`, or the reason of the signal */
export async function openWebSocket(target: WebSocketTarget): Promise<Opened> {
  const { upstream, path, protocols, maxMessage, timeoutMs, trail, signal } = target
  const recordedAs = { trail, purpose: 'websocket' } as const
  const asked = { method: 'GET', path, headers: target.headers, recorded: recordedAs }
  const added = await upstream.addedTo?.(asked)
  const headers = withoutHandshake({
    ...target.headers,
    ...added,
    ...fixedHeadersOf(upstream.config)
  })
  const call = { ...asked, headers }
  const { socket: connected, origin, recorded } = await upstream.connect(call)
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
  return await new Promise((resolve, reject) => {
    const fail = (error: unknown) => {
      const failure = upstreamError(error)
      recorded?.fail(error, failure.code)
      settle()
      reject(failure)
      socket.terminate()
    }
    const onAbort = () => fail(signal.reason)
    const timer = setTimeout(() => fail(new GatewayError('upstream.timeout')), timeoutMs)
    let agreed: IncomingHttpHeaders = {}
    signal.addEventListener('abort', onAbort)
    socket
      .on('error', fail)
      .once('upgrade', response => (agreed = response.headers))
      .once('open', () => {
        recorded?.end(101)
        socket.pause()
        settle()
        resolve({ socket, headers: agreed })
      })
      .once('unexpected-response', (_request, refused) => {
        const { statusCode = 0, headers: fields } = adopt(refused)
        const fault = unreadable(statusCode, fields)
        if (fault !== undefined) return fail(fault)
        recorded?.end(statusCode)
        settle()
        resolve({ refused })
      })

    function settle(): void {
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
      // A connection may last for days: it holds on to nothing of its beginning.
      for (const event of ['upgrade', 'open', 'unexpected-response']) {
        socket.removeAllListeners(event)
      }
      socket.off('error', fail)
    }
  })
}

/** The client's own handshake is with the gateway. */
function withoutHandshake(headers: WebSocketTarget['headers']): Record<string, string | string[]> {
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => !name.startsWith('sec-websocket-'))
  )
}
