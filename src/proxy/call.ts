/**
 * One request to an upstream: its attempts, and the one response that it gets. A request is sent
 * once, with two exceptions. One that found no connection may go to another address whatever it
 * is, since nothing was written. One that is safe and has no body is asked again, once, where its
 * connection broke and nothing has gone to the client.
 */
import { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import { GatewayError } from '../errors/errors.ts'
import { writeContext } from '../observability/traces/context.ts'
import { type Recorded, TrailAttempt } from '../observability/trail.ts'
import { type Address, isLocalError } from './address.ts'
import { isEventStream } from './event-stream.ts'
import { failureStatuses, upstreamError } from './failures.ts'
import {
  discard,
  type Outcome,
  type ReceiveOptions,
  Receiver,
  type UpstreamResponse
} from './receiver.ts'
import { overloaded, type Slots } from './slots.ts'

export interface Call extends ReceiveOptions {
  /** At the upstream, with the query. */
  readonly path: string
  readonly headers: Record<string, string | string[]>
  /** Written by the gateway itself, not for a client. */
  readonly isOwn?: boolean
  /** Aborted, with a GatewayError, when the response is not needed any more. */
  readonly signal?: AbortSignal | undefined
  /** The request that it is for, and why. */
  readonly recorded?: Recorded | undefined
}

/** What is recorded of one. */
export type RecordedCall = Pick<Call, 'method' | 'path' | 'headers' | 'recorded'>

/** Shared by all calls of one upstream. */
export interface CallContext {
  /** In `routes.yaml`. */
  readonly name: string
  /** Whether it may get the caller's `tracestate`. */
  readonly passesState: boolean
  /** @returns the best of those that were not tried, if there are any */
  readonly pick: (tried?: readonly Address[]) => Address | undefined
  /** Of all requests but event streams. */
  readonly slots: Slots
  /** Half of them for streamed uploads: clients may be slow. */
  readonly uploads: Slots
  /** Of event streams, which may never end: they wait for no one. */
  readonly streams: Slots
  /** Each earns a tenth of a retry. */
  readonly onRequest: () => void
  /** @returns whether one may be sent once more */
  readonly mayRetry: () => boolean
  readonly onRetry: (kind: 'again' | 'elsewhere') => void
}

/** @throws GatewayError `upstream.*`, `overloaded`, or the reason of the signal */
export async function sendCall(context: CallContext, call: Call): Promise<UpstreamResponse> {
  context.onRequest()
  const { slots } = context
  const { headers, body, recorded } = call
  const isOrdinary = !(body instanceof Readable) && !asksForEvents(headers)
  if (isOrdinary && slots.tryTake()) return new Attempts(context, call, [slots]).start()
  const askedAt = performance.now()
  const places = await takePlaces(context, call)
  if (recorded !== undefined) recorded.trail.queueMs += performance.now() - askedAt
  return new Attempts(context, call, places).start()
}

/** What a call takes of the upstream; an upload two. @throws as `sendCall` does */
async function takePlaces(context: CallContext, { headers, body, signal }: Call): Promise<Slots[]> {
  const { slots, uploads, streams } = context
  if (asksForEvents(headers)) {
    if (streams.tryTake()) return [streams]
    throw tooManyStreams()
  }
  if (!(body instanceof Readable)) {
    await slots.take(signal)
    return [slots]
  }
  await uploads.take(signal)
  try {
    await slots.take(signal)
  } catch (error) {
    uploads.release()
    throw error
  }
  return [uploads, slots]
}

/** As every EventSource does. */
function asksForEvents({ accept }: Call['headers']): boolean {
  return typeof accept === 'string' && accept.startsWith('text/event-stream')
}

class Attempts implements Outcome {
  readonly #context: CallContext
  readonly #call: Call
  /** What it holds of the upstream. */
  readonly #places: Slots[]
  readonly #response = Promise.withResolvers<UpstreamResponse>()
  readonly #startedAt = performance.now()
  /** They got no connection. */
  readonly #unreached: Address[] = []
  #address: Address | undefined
  #mayRepeat: boolean
  #receiver: Receiver | undefined
  /** The running attempt, in the record of the request. */
  #recorded: TrailAttempt | undefined
  #isAttemptOver = false
  #isDone = false

  constructor(context: CallContext, call: Call, places: Slots[]) {
    const { method, body } = call
    this.#context = context
    this.#call = call
    this.#places = places
    // RFC 9110 §9.2.1
    const isSafe = method === 'GET' || method === 'HEAD' || method === 'OPTIONS'
    this.#mayRepeat = isSafe && (body === undefined || body === null)
  }

  start(): Promise<UpstreamResponse> {
    this.#call.signal?.addEventListener('abort', this.#leave)
    this.#send(this.#context.pick() as Address)
    return this.#response.promise
  }

  readonly #leave = () => {
    this.#receiver?.fail(this.#call.signal?.reason)
  }

  onHead(status: number): void {
    const { recorded } = this.#call
    if (this.#recorded !== undefined) this.#recorded.status = status
    if (recorded?.purpose === 'request') {
      recorded.trail.upstreamMs = performance.now() - this.#startedAt
    }
  }

  onResponse(response: UpstreamResponse): void {
    const { status, headers, body } = response
    if (failureStatuses.has(status)) this.#address?.failedBy('request')
    else this.#address?.succeeded()
    if (body instanceof Readable && isEventStream(headers) && !this.#becomeStream()) {
      discard(response)
      this.#response.reject(tooManyStreams())
    } else this.#response.resolve(response)
    this.#finish()
  }

  /** Events that were not asked for as such leave their slot to others. */
  #becomeStream(): boolean {
    const { streams } = this.#context
    if (this.#places.includes(streams)) return true
    if (!streams.tryTake()) return false
    this.#leavePlaces()
    this.#places.push(streams)
    return true
  }

  onFailed(error: unknown, isUnsent: boolean): void {
    const failure = upstreamError(error)
    const isLocal = isLocalError(error)
    const hasLeft = this.#call.signal?.aborted === true
    if (!isLocal) this.#tellAddress(failure, isUnsent)
    this.#recorded?.fail(error, hasLeft ? 'left' : failure.code)
    const next =
      this.#isAttemptOver && !hasLeft ? this.#next(failure, isUnsent && !isLocal) : undefined
    if (next !== undefined) return this.#send(next)
    this.#response.reject(failure)
    this.#finish()
  }

  onOver(): void {
    this.#isAttemptOver = true
    if (this.#recorded?.ms === undefined) this.#recorded?.end()
    this.#address?.end()
    if (this.#isDone) this.#release()
  }

  /** Its promise is settled; its connection may still be in use. */
  #finish(): void {
    this.#isDone = true
    if (this.#isAttemptOver) this.#release()
  }

  #release(): void {
    this.#call.signal?.removeEventListener('abort', this.#leave)
    this.#leavePlaces()
  }

  #leavePlaces(): void {
    for (const slots of this.#places.splice(0)) slots.release()
  }

  #send(address: Address): void {
    const { method, path, headers, body = null, signal } = this.#call
    this.#address = address
    this.#isAttemptOver = false
    address.begin()
    this.#recorded = recordAttempt(this.#context, this.#call, address)
    const receiver = (this.#receiver = new Receiver(this.#call, this.#startedAt, this))
    if (signal?.aborted === true) return receiver.refuse(signal.reason)
    try {
      const reset = resetOf(method, body)
      const options = { method: method as Dispatcher.HttpMethod, path, headers, body, ...reset }
      address.dispatch(options, receiver)
    } catch (error) {
      receiver.refuse(error)
    }
  }

  /** What the client did says nothing of an address. */
  #tellAddress({ code }: GatewayError, isUnsent: boolean): void {
    if (isUnsent) return this.#address?.failedBy('connect')
    const isTimeout = code.startsWith('upstream.timeout') && !(this.#call.body instanceof Readable)
    if (isTimeout || isBroken(code)) this.#address?.failedBy('request')
  }

  /** The address for another attempt, if there may be one. */
  #next({ code }: GatewayError, isUnsent: boolean): Address | undefined {
    const { pick, mayRetry, onRetry } = this.#context
    const failed = this.#address as Address
    if (isUnsent && performance.now() - this.#startedAt < this.#call.timeoutMs) {
      this.#unreached.push(failed)
      const other = pick(this.#unreached)
      if (other !== undefined) {
        onRetry('elsewhere')
        return other
      }
    }
    if (!this.#mayRepeat || !isBroken(code) || !mayRetry()) return undefined
    this.#mayRepeat = false
    onRetry('again')
    return pick([...this.#unreached, failed]) ?? failed
  }
}

/** Of one at an address, in the record and the trace of the request that it is for. */
export function recordAttempt(
  { name, passesState }: CallContext,
  { recorded, method, path, headers }: RecordedCall,
  { origin }: Address
): TrailAttempt | undefined {
  if (recorded === undefined) return undefined
  const { trail, purpose, part } = recorded
  const attempt = trail.addAttempt(new TrailAttempt(name, origin, purpose, part))
  if (trail.trace !== undefined) {
    if (trail.trace.isRecorded) attempt.beginSpan(method, path)
    writeContext(headers, trail.trace, passesState, attempt.span?.id)
  }
  return attempt
}

/**
 * undici would close the connection after each HEAD. After a GET with a body it must be: a back-end
 * that does not read such bodies takes them for the next request.
 */
function resetOf(method: string, body: Call['body']): { readonly reset?: boolean } {
  if (method === 'HEAD') return { reset: false }
  return method === 'GET' && body !== null ? { reset: true } : {}
}

function tooManyStreams(): GatewayError {
  return overloaded('too many event streams of the upstream are open', 'streams')
}

/** Whether the back-end broke the exchange; a time-out is another matter. */
function isBroken(code: GatewayError['code']): boolean {
  return code === 'upstream.reset' || code === 'upstream.refused'
}
