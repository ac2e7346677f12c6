/**
 * Receives an upstream's response: small bodies collected, large ones streamed (piping between
 * streams is a proxy's largest cost).
 */
import { isEventStream } from './event-stream.ts'
import { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import { type ErrorCode, GatewayError } from '../errors.ts'
import { adopt } from '../observability/emitters.ts'
import type { Recorded } from '../observability/trail.ts'
import { unreadable, upstreamError } from './failures.ts'
import { sweep, type SweptCall, type TimeOuts } from './time-outs.ts'

/** State of a proxied request, shared by route and upstream. */
export interface Exchange extends Partial<Recorded> {
  /** To the first byte of the response. */
  readonly timeoutMs: number
  /** After the first byte. */
  readonly timeOuts: TimeOuts
  /** Bodies up to this size are collected, in both directions. */
  readonly collectBytes: number
  /** Whether the whole body is needed (shaping): then a slow one is waited for. */
  readonly collectOnly: boolean
  /** Whether the response has no body, whatever its headers say (RFC 9110 §9.3.2). */
  readonly isHead: boolean
  /** The time it was sent; after a wait for a connection, the time it got one. */
  startedAt: number
  /** The response is not needed any more: the client has left, or an error was sent. */
  isGone: boolean
  trailers?: UpstreamResponse['headers'] | undefined
  /** The client's body, where it is streamed. */
  upload?: { readonly received: number } | undefined
  /** Milliseconds to the first byte of the response. */
  firstByteMs?: number | undefined
  /** Why a response was cut that the client has a part of; undefined if the client left. */
  cutCode?: ErrorCode | undefined
  /** The running or last attempt, or the wait for a connection. */
  attempt?: { readonly fail: (error: unknown) => void } | undefined
}

/** A whole body in memory, in the place where the proxy plugin expects a stream. */
export class CollectedBody {
  readonly bytes: Buffer
  constructor(bytes: Buffer) {
    this.bytes = bytes
  }
  /** The plugin destroys a body when its client has left. */
  destroy(): void {}
}

export interface UpstreamResponse {
  readonly status: number
  readonly headers: Record<string, string | string[] | undefined>
  readonly body: CollectedBody | Readable
}

/** Of an attempt that failed. */
export interface HowFar {
  /** Whether the upstream connection is free; if not, `onSettled` follows. */
  readonly isFree: boolean
  /** Whether no connection was made, so that nothing was written. */
  readonly isUnsent: boolean
}

/** Callbacks of an attempt. */
export interface Watcher {
  readonly onResponse: (response: UpstreamResponse) => void
  /** It failed before the response began. */
  readonly onFailed: (error: unknown, howFar: HowFar) => void
  /** The upstream connection is free again. */
  readonly onSettled: () => void
}

/** A body of unknown length is streamed after this wait: events and logs may never end. */
const gatherMs = 5

export const gone = () =>
  new GatewayError('request.malformed', { cause: new Error('the client left') })

/** Ends an exchange, by default as if the client had left. A waiting request leaves the queue. */
export function abort({ attempt }: Exchange, reason: GatewayError = gone()): void {
  attempt?.fail(reason)
}

// A function, not a method: a timer takes its argument, and needs no closure.
const streamAfterAll = (attempt: Attempt) => attempt.startStream()

/**
 * undici's callbacks for one attempt. A class: a closure for each callback would cost more than
 * their work.
 */
export class Attempt implements Dispatcher.DispatchHandler, SweptCall {
  slot = -1
  readonly #exchange: Exchange
  readonly #watcher: Watcher
  #controller: Dispatcher.DispatchController | undefined
  /** For a body of unknown length that may turn out to be slow. */
  #timer: NodeJS.Timeout | undefined
  /** The first byte is waited for since then; -1 before the first sweep. */
  #waitsSince = -1
  #state: 'waiting' | 'collecting' | 'answered' | 'over' = 'waiting'
  #status = 0
  #headers: UpstreamResponse['headers'] = {}
  #chunks: Buffer[] = []
  #received = 0
  #stream: Readable | undefined
  #isEvents = false
  /** Whether the client has to read before more is taken from the upstream. */
  #isHeld = false
  #wasHeld = false
  /** At the last sweep; -1 before the first. */
  #receivedBefore = -1
  #stillMs = 0
  #uploadedBefore = 0

  constructor(exchange: Exchange, watcher: Watcher) {
    this.#exchange = exchange
    this.#watcher = watcher
    exchange.attempt = this
    sweep.add(this)
  }

  /** @param isFree whether undici has released the connection */
  fail(error: unknown, isFree: boolean = this.#controller !== undefined): void {
    this.#stopClocks()
    if (this.#state === 'over') return
    const hadAnswer = this.#state === 'answered'
    this.#state = 'over'
    if (hadAnswer && !this.#exchange.isGone) this.#exchange.cutCode = upstreamError(error).code
    const reason = error instanceof Error ? error : new Error(String(error))
    if (this.#controller?.aborted === false) this.#controller.abort(reason)
    if (!hadAnswer) {
      const isUnsent = isFree && this.#controller === undefined
      return this.#watcher.onFailed(error, { isFree, isUnsent })
    }
    this.#watcher.onSettled()
    this.#stream?.destroy(reason)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#state !== 'over') return
    // It failed while undici was connecting: only now undici can abort it.
    controller.abort(gone())
    this.#watcher.onSettled()
  }

  onResponseStart(
    _controller: unknown,
    status: number,
    headers: UpstreamResponse['headers']
  ): void {
    if (status < 200 || this.#state !== 'waiting') return
    const exchange = this.#exchange
    exchange.firstByteMs = performance.now() - exchange.startedAt
    const fault = unreadable(status, headers)
    if (fault !== undefined) return this.fail(fault)
    this.#status = status
    this.#headers = headers
    this.#state = 'collecting'
    if (exchange.isHead || status === 204 || status === 205 || status === 304) return
    const length = headers['content-length']
    this.#isEvents = length === undefined && isEventStream(headers)
    // Only a body that is streamed can have trailers.
    const hasTrailers = headers['trailer'] !== undefined && !exchange.collectOnly
    const isOpen = length === undefined && (this.#isEvents || hasTrailers)
    if (isOpen || Number(length) > exchange.collectBytes) this.startStream()
  }

  onResponseData(_controller: unknown, chunk: Buffer): void {
    this.#received += chunk.length
    if (this.#state === 'answered') return this.#push(chunk)
    if (this.#state !== 'collecting') return
    this.#chunks.push(chunk)
    const { collectBytes, collectOnly } = this.#exchange
    if (this.#received > collectBytes) this.startStream()
    else if (
      this.#chunks.length === 1 &&
      !collectOnly &&
      this.#headers['content-length'] === undefined
    ) {
      this.#timer = setTimeout(streamAfterAll, gatherMs, this)
    }
  }

  onResponseEnd(_controller: unknown, trailers: UpstreamResponse['headers']): void {
    this.#stopClocks()
    if (this.#state === 'over') return
    const wasCollecting = this.#state === 'collecting'
    this.#state = 'over'
    this.#watcher.onSettled()
    this.#exchange.trailers = trailers
    if (!wasCollecting) this.#stream?.push(null)
    else {
      this.#watcher.onResponse({
        status: this.#status,
        headers: this.#headers,
        body: new CollectedBody(this.#bytes())
      })
    }
  }

  onResponseError(_controller: unknown, error: unknown): void {
    if (this.#state === 'over') this.#watcher.onSettled()
    else this.fail(error, true)
  }

  onSweep(elapsedMs: number, now: number): void {
    const { startedAt, timeOuts } = this.#exchange
    const isOver = now - startedAt >= timeOuts.totalMs && !this.#isEvents
    if (isOver) return this.fail(new GatewayError('upstream.timeout.total'))
    if (this.#state === 'waiting') this.#sweepWait(now)
    else this.#sweepBody(elapsedMs)
  }

  /** Time spent on an upload is not the upstream's, as long as the upload moves. */
  #sweepWait(now: number): void {
    if (this.#waitsSince < 0) this.#waitsSince = now
    const { upload, timeoutMs } = this.#exchange
    if (now - this.#waitsSince < timeoutMs) return
    const uploaded = upload?.received ?? 0
    if (uploaded === this.#uploadedBefore) return this.fail(new GatewayError('upstream.timeout'))
    this.#uploadedBefore = uploaded
    this.#waitsSince = now
  }

  /** Ends a body that stands still. */
  #sweepBody(elapsedMs: number): void {
    const wasHeld = this.#wasHeld
    const isHeld = (this.#wasHeld = this.#isHeld)
    const isMoving = this.#received !== this.#receivedBefore || isHeld !== wasHeld
    this.#receivedBefore = this.#received
    this.#stillMs = isMoving ? 0 : this.#stillMs + elapsedMs
    const { idleMs, streamIdleMs } = this.#exchange.timeOuts
    if (isHeld) {
      // A reader that stands still must not keep a connection that others need.
      if (this.#stillMs >= idleMs) this.fail(new GatewayError('request.timeout'))
      return
    }
    if (this.#stillMs >= (this.#isEvents ? streamIdleMs : idleMs)) {
      this.fail(new GatewayError('upstream.timeout.idle'))
    }
  }

  #stopClocks(): void {
    if (this.#timer !== undefined) clearTimeout(this.#timer)
    sweep.remove(this)
  }

  #bytes(): Buffer {
    const [first = Buffer.alloc(0)] = this.#chunks
    return this.#chunks.length > 1 ? Buffer.concat(this.#chunks) : first
  }

  /** Stops collecting: the chunks so far and all further ones go through a stream. */
  startStream(): void {
    clearTimeout(this.#timer)
    this.#state = 'answered'
    const body = adopt(
      new Readable({
        highWaterMark: 64 * 1024,
        read: () => {
          this.#isHeld = false
          this.#controller?.resume()
        },
        destroy: (error, done) => {
          if (this.#state !== 'over') this.fail(error ?? gone())
          done(error)
        }
      })
    )
    this.#stream = body
    if (this.#received > 0) this.#push(this.#bytes())
    this.#chunks = []
    this.#watcher.onResponse({ status: this.#status, headers: this.#headers, body })
  }

  #push(chunk: Buffer): void {
    if (this.#stream?.push(chunk) !== false) return
    this.#controller?.pause()
    this.#isHeld = true
  }
}
