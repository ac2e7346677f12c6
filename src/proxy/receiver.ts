/** One attempt of a call. Small responses are collected: streams are a proxy's largest cost. */
import { Readable } from 'node:stream'
import { type Dispatcher, errors } from 'undici'
import { GatewayError } from '../errors/errors.ts'
import { adopt } from '../observability/emitters.ts'
import type { Recorded, TrailAttempt } from '../observability/trail.ts'
import type { Address } from './address.ts'
import type { Upload } from './request-body.ts'
import { isBodiless, isEventStream, unreadable, type UpstreamResponse } from './response.ts'
import type { Slots } from '../limits/slots.ts'

export interface Call {
  readonly method: string
  readonly path: string
  readonly headers: Record<string, string | string[]>
  /** One that is streamed takes the client's time, not the upstream's, as long as it moves. */
  readonly body?: string | Buffer | Upload | null
  /** A request of the gateway's own keeps the type of its body, whatever headers are fixed. */
  readonly isOwn?: true
  /** Aborted, with a GatewayError, when the response is not needed any more. */
  readonly signal?: AbortSignal | undefined
  /** The request that it is for, and why. */
  readonly recorded?: Recorded | undefined
  /** The longest wait for the first byte, and for each further one. */
  readonly timeoutMs: number
  /** The whole time of all but event streams. */
  readonly totalMs: number
  readonly collectBytes: number
  /** Whether the whole body is needed (shaping): then a slow one is waited for. */
  readonly collectsAll: boolean
}

/** Or it failed before the response began, unsent where no connection was made. */
type Outcome = UpstreamResponse | { readonly error: unknown; readonly isUnsent: boolean }

/** The longest pause of an event stream, which may be silent longer than other bodies. */
const maxSilenceMs = 5 * 60_000

/** A body of unknown length is streamed after this wait: events and logs may never end. */
const gatherMs = 5

// A function, not a method: a timer takes its argument, and needs no closure.
const tick = (receiver: Receiver) => receiver.onClock()
const streamNow = (receiver: Receiver) => receiver.startStream()

export class Receiver implements Dispatcher.DispatchHandler {
  readonly recorded: TrailAttempt | undefined
  /** Whether its connection is free again. */
  isOver = false
  readonly #address: Address
  readonly #call: Call
  readonly #outcome = Promise.withResolvers<Outcome>()
  readonly #startedAt: number
  readonly #endsAt: number
  #place: Slots | undefined
  #controller: Dispatcher.DispatchController | undefined
  #state: 'waiting' | 'collecting' | 'streaming' | 'over' = 'waiting'
  #clock: NodeJS.Timeout
  #gather: NodeJS.Timeout | undefined
  #status = 0
  #headers: UpstreamResponse['headers'] = {}
  #chunks: Buffer[] = []
  #received = 0
  #uploaded = 0
  #isEvents = false
  #stream: Readable | undefined

  constructor(call: Call, startedAt: number, address: Address, recorded?: TrailAttempt) {
    this.#call = call
    this.#startedAt = startedAt
    this.#address = address
    this.recorded = recorded
    const { timeoutMs, totalMs } = call
    this.#endsAt = startedAt + totalMs
    this.#clock = setTimeout(tick, Math.min(timeoutMs, totalMs), this)
  }

  /** @returns settled when the response is whole, or goes on as a stream */
  receive(): Promise<Outcome> {
    const { method, path, headers, body = null, signal } = this.#call
    this.#address.begin()
    signal?.addEventListener('abort', this.#leave)
    try {
      signal?.throwIfAborted()
      const reset = resetOf(method, body)
      const options = { method: method as Dispatcher.HttpMethod, path, headers, body, ...reset }
      this.#address.dispatch(options, this)
    } catch (error) {
      this.#end(error, true, true)
    }
    return this.#outcome.promise
  }

  releaseAfter(place: Slots): void {
    if (this.isOver) place.release()
    else this.#place = place
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#state !== 'over') return
    // It failed while undici was connecting: only now undici can abort it.
    controller.abort(new GatewayError('upstream.timeout'))
    this.#settle()
  }

  onResponseStart(_: unknown, status: number, headers: UpstreamResponse['headers']): void {
    if (status < 200 || this.#state !== 'waiting') return
    const { method, collectBytes, recorded } = this.#call
    if (this.recorded !== undefined) this.recorded.status = status
    if (recorded?.purpose === 'request') {
      recorded.trail.upstreamMs = performance.now() - this.#startedAt
    }
    const fault = unreadable(status, headers)
    if (fault !== undefined) return this.#fail(fault)
    this.#status = status
    this.#headers = headers
    this.#state = 'collecting'
    const length = headers['content-length']
    const isEmpty = method === 'HEAD' || isBodiless(status)
    this.#isEvents = !isEmpty && length === undefined && isEventStream(headers)
    // It is whole, whatever length it tells: undici would fail a 304 with that of the full response.
    if (status === 204 || status === 304) return this.onResponseEnd()
    this.#startBodyClock()
    if (isEmpty) return
    if (this.#isEvents || Number(length) > collectBytes) this.startStream()
  }

  onResponseData(_: unknown, chunk: Buffer): void {
    if (this.#state === 'over') return
    // A body that drips keeps its clock from running out.
    if (performance.now() >= this.#endsAt && !this.#isEvents) return this.onClock()
    this.#received += chunk.length
    this.#clock.refresh()
    if (this.#stream !== undefined) return this.#push(chunk)
    this.#chunks.push(chunk)
    const { collectBytes, collectsAll } = this.#call
    if (this.#received > collectBytes) this.startStream()
    else if (!collectsAll && this.#headers['content-length'] === undefined) {
      this.#gather ??= setTimeout(streamNow, gatherMs, this)
    }
  }

  onResponseEnd(): void {
    if (this.#state === 'over') return
    this.#stopClocks()
    this.#state = 'over'
    this.#settle()
    if (this.#stream === undefined) this.#respond(this.#bytes())
    else this.#stream.push(null)
  }

  onResponseError(_: unknown, error: unknown): void {
    if (this.#state === 'over') return this.#settle()
    // The connection was to end with the response, and ended within it.
    const isShort = this.#status > 0 && error instanceof errors.ResponseContentLengthMismatchError
    const failure = isShort ? new GatewayError('upstream.reset', { cause: error }) : error
    this.#end(failure, true, this.#controller === undefined)
  }

  onClock(): void {
    const { timeoutMs, totalMs, body } = this.#call
    // A timer may fire a millisecond early.
    const isOver = performance.now() + 1 >= this.#endsAt && !this.#isEvents
    const isWaiting = this.#state === 'waiting'
    const uploaded = body instanceof Readable ? body.received : 0
    // Else its client stands still, for which `server.idleTimeout` counts.
    const isMoving = isWaiting ? uploaded !== this.#uploaded : this.#controller?.paused === true
    this.#uploaded = uploaded
    if (isMoving && !isOver) return void this.#clock.refresh()
    const isTotal = isOver && (!isWaiting || totalMs < timeoutMs)
    const kind = isWaiting ? 'upstream.timeout' : 'upstream.timeout.idle'
    this.#fail(new GatewayError(isTotal ? 'upstream.timeout.total' : kind))
  }

  /** Stops collecting: the chunks so far and all further ones go through a stream. */
  startStream(): void {
    clearTimeout(this.#gather)
    if (this.#state !== 'collecting') return
    this.#state = 'streaming'
    const body = adopt(
      new Readable({
        highWaterMark: 64 * 1024,
        read: () => {
          this.#clock.refresh()
          this.#controller?.resume()
        },
        destroy: (error, done) => {
          this.#end(error ?? new Error('the client left'), true, false)
          done(error)
        }
      })
    )
    this.#stream = body
    if (this.#received > 0) this.#push(this.#bytes())
    this.#chunks = []
    this.#respond(body)
  }

  #push(chunk: Buffer): void {
    if (this.#stream?.push(chunk) === false) this.#controller?.pause()
  }

  #respond(body: Buffer | Readable): void {
    this.#outcome.resolve({ status: this.#status, headers: this.#headers, body })
  }

  readonly #leave = () => this.#fail(this.#call.signal?.reason)

  #fail(error: unknown): void {
    this.#end(error, this.#controller !== undefined, false)
  }

  /** @param isFree whether undici has released the connection, or will as it is aborted */
  #end(error: unknown, isFree: boolean, isUnsent: boolean): void {
    if (this.#state === 'over') return
    const wasStreaming = this.#state === 'streaming'
    this.#state = 'over'
    this.#stopClocks()
    const reason = error instanceof Error ? error : new Error(String(error))
    if (this.#controller?.aborted === false) this.#controller.abort(reason)
    if (isFree) this.#settle()
    if (wasStreaming) this.#stream?.destroy(reason)
    else this.#outcome.resolve({ error, isUnsent })
  }

  #settle(): void {
    if (this.isOver) return
    this.isOver = true
    if (this.recorded?.ms === undefined) this.recorded?.end()
    this.#address.end()
    this.#call.signal?.removeEventListener('abort', this.#leave)
    this.#place?.release()
  }

  #startBodyClock(): void {
    if (!this.#isEvents) return void this.#clock.refresh()
    clearTimeout(this.#clock)
    this.#clock = setTimeout(tick, maxSilenceMs, this)
  }

  #stopClocks(): void {
    clearTimeout(this.#clock)
    clearTimeout(this.#gather)
  }

  #bytes(): Buffer {
    const [first = Buffer.alloc(0)] = this.#chunks
    return this.#chunks.length > 1 ? Buffer.concat(this.#chunks) : first
  }
}

/** undici would close after HEAD. A back-end may take the body of a GET for a request. */
function resetOf(method: string, body: Call['body']): { readonly reset?: boolean } {
  if (method === 'HEAD') return { reset: false }
  return method === 'GET' && body !== null ? { reset: true } : {}
}
