/** An upstream's answer on its way in: small bodies collected, large ones streamed (the plumbing between streams is a proxy's largest cost). */
import { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import { GatewayError } from '../errors.ts'

/** One proxied request: what route and dispatcher tell each other. */
export interface Exchange {
  /** To the first byte of the answer. */
  readonly timeoutMs: number
  /** Bodies up to so many bytes are collected, in both directions. */
  readonly collectBytes: number
  /** Whether only a whole answer is of use (shaping): then a slow one is waited for. */
  readonly collectOnly: boolean
  readonly maxBodyBytes: number
  /** Whether the answer has no body whatever its fields say (RFC 9110 §9.3.2). */
  readonly isHead: boolean
  readonly startedAt: number
  /** Whether nobody waits for the answer any more: the client has left, or there will be none. */
  isGone: boolean
  /** Milliseconds to the first byte of the answer. */
  firstByteMs?: number
  /** Ends the exchange, as if the client had left or for another reason; set once it runs. */
  abort?: (reason?: GatewayError) => void
}

/** A whole body in memory; stands where the proxy plugin expects a stream. */
export class CollectedBody {
  readonly bytes: Buffer
  constructor (bytes: Buffer) { this.bytes = bytes }
  /** The plugin destroys the bodies of clients who left. */
  destroy (): void {}
}

export interface Answered {
  readonly status: number
  readonly headers: Record<string, string | string[] | undefined>
  readonly body: CollectedBody | Readable
}

interface Events {
  readonly onAnswer: (answer: Answered) => void
  /** The exchange failed before there was an answer. */
  readonly onFailed: (error: unknown) => void
  /** The upstream connection is free again. */
  readonly onSettled: () => void
}

/** How long a body of unknown length is waited for before it is streamed: events and logs must not wait for their end. */
const gatherMs = 5

/** So many pieces are made one: a body in chunks of a byte each would cost its size a hundred times. */
const piecesMax = 256

export const gone = () => new GatewayError('request.malformed', { cause: new Error('the client left') })

/** The handler that undici calls back, for one attempt. */
export function createAnswer (exchange: Exchange, stallMs: number, { onAnswer, onFailed, onSettled }: Events): Dispatcher.DispatchHandler {
  let controller: Dispatcher.DispatchController
  let status = 0
  let headers: Answered['headers'] = {}
  let whole: Buffer[] = []
  let chunks: Buffer[] = []
  let collected = 0
  let stream: Readable | undefined
  let state: 'waiting' | 'collecting' | 'answered' | 'over' = 'waiting'
  let timer = setTimeout(() => fail(new GatewayError('upstream.timeout')), exchange.timeoutMs)

  const fail = (error: unknown) => {
    clearTimeout(timer)
    if (state === 'over') return
    const hadAnswer = state === 'answered'
    state = 'over'
    if (controller !== undefined && !controller.aborted) controller.abort(error instanceof Error ? error : new Error(String(error)))
    if (!hadAnswer) return onFailed(error)
    onSettled()
    stream?.destroy(error instanceof Error ? error : new Error(String(error)))
  }
  exchange.abort = (reason = gone()) => fail(reason)

  const startStream = () => {
    clearTimeout(timer)
    state = 'answered'
    const body = new Readable({
      highWaterMark: 64 * 1024,
      read () {
        clearTimeout(timer)
        controller.resume()
      },
      destroy (error, done) {
        if (state !== 'over') fail(error ?? gone())
        done(error)
      }
    })
    stream = body
    const held = [...whole, ...chunks]
    whole = chunks = []
    for (const chunk of held) push(chunk)
    onAnswer({ status, headers, body })
  }
  const push = (chunk: Buffer) => {
    if (stream?.push(chunk) !== false) return
    controller.pause()
    // A reader that stands still must not keep a connection that others need.
    clearTimeout(timer)
    timer = setTimeout(() => fail(new GatewayError('upstream.timeout', { cause: new Error('the client reads too slowly') })), stallMs)
  }

  return {
    onRequestStart (started) {
      controller = started
      if (state === 'over') started.abort(gone())
    },
    onResponseStart (_controller, code, fields) {
      if (code < 200 || state !== 'waiting') return
      clearTimeout(timer)
      exchange.firstByteMs = performance.now() - exchange.startedAt
      if (code > 599) return fail(new GatewayError('upstream.invalid', { cause: new Error(`status ${code}`) }))
      const coding = fields['transfer-encoding']
      // The field ends here, so nobody behind us could undo another coding.
      if (coding !== undefined && String(coding).toLowerCase() !== 'chunked') return fail(new GatewayError('upstream.invalid', { cause: new Error('a transfer coding other than chunked') }))
      status = code
      headers = fields
      state = 'collecting'
      if (exchange.isHead || code === 204 || code === 205 || code === 304) return
      const length = fields['content-length']
      if (length !== undefined ? Number(length) > exchange.collectBytes : isEventStream(fields)) startStream()
    },
    onResponseData (_controller, chunk) {
      if (state === 'answered') return push(chunk)
      if (state !== 'collecting') return
      chunks.push(chunk)
      collected += chunk.length
      if (chunks.length === piecesMax) {
        whole.push(Buffer.concat(chunks))
        chunks = []
      }
      if (collected > exchange.collectBytes) startStream()
      else if (collected === chunk.length && !exchange.collectOnly && headers['content-length'] === undefined) timer = setTimeout(startStream, gatherMs)
    },
    onResponseEnd () {
      clearTimeout(timer)
      if (state === 'over') return
      const wasCollecting = state === 'collecting'
      state = 'over'
      onSettled()
      if (!wasCollecting) stream?.push(null)
      else onAnswer({ status, headers, body: new CollectedBody(chunks[0]?.length === collected ? chunks[0] : Buffer.concat([...whole, ...chunks], collected)) })
    },
    onResponseError (_controller, error) {
      fail(error)
    }
  }
}

/** Without end, and each event is wanted at once. */
export const isEventStream = (headers: Answered['headers']): boolean => /^text\/event-stream/i.test(String(headers['content-type'] ?? ''))
