/**
 * One request to an upstream: its attempts, and the one response that it gets. A request is sent
 * once, with two exceptions. One that found no connection may go to another address whatever it
 * is, since nothing was written. One that is safe and has no body is asked again, once, where its
 * connection broke and nothing has gone to the client.
 */
import { isEventStream } from './event-stream.ts'
import { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import type { GatewayError } from '../errors.ts'
import { type Address, isLocalError } from './address.ts'
import type { Balancer } from './balancer.ts'
import { traceCall } from '../observability/traces/outgoing.ts'
import { TrailAttempt } from '../observability/trail.ts'
import { upstreamError } from './failures.ts'
import {
  Attempt,
  CollectedBody,
  type Exchange,
  type HowFar,
  type UpstreamResponse,
  type Watcher
} from './response.ts'
import type { RetryBudget } from './retry-budget.ts'
import { overloaded, type Slots } from './slots.ts'

export interface UpstreamRequest {
  readonly method: string
  readonly path: string
  readonly headers: Record<string, string | string[]>
  readonly body?: string | Buffer | Readable | null
  /** Written by the gateway itself, not for a client. */
  readonly isOwn?: boolean
}

export type Done = (error: GatewayError | null, response?: UpstreamResponse) => void

/** Shared by all calls of one upstream. */
export interface CallContext {
  /** In `routes.yaml`. */
  readonly upstream: string
  /** Whether it may get the caller's `tracestate`. */
  readonly passesState: boolean
  readonly balancer: Balancer
  /** Of all requests but event streams. */
  readonly slots: Slots
  /** Half of them for streamed uploads: clients may be slow. */
  readonly uploads: Slots
  /** Of event streams, which may never end. */
  readonly streams: Slots
  readonly budget: RetryBudget
  readonly onRetry: (kind: 'again' | 'elsewhere') => void
}

/** Statuses that say that a back-end does not work, as a proxy in front of it does. */
const failureStatuses = new Set([502, 503, 504])

export class Call implements Watcher {
  readonly #context: CallContext
  readonly #options: Dispatcher.DispatchOptions
  readonly #headers: UpstreamRequest['headers']
  readonly #exchange: Exchange
  readonly #done: Done
  readonly #isUpload: boolean
  readonly #mayRepeat: boolean
  /** It has one of these: `slots` of the upstream, or `streams`. */
  #slot: Slots | undefined
  /** An upload has one of `uploads` too. */
  #uploadSlot: Slots | undefined
  #hasRepeated = false
  #isSettled = false
  #address: Address | undefined
  #tried: Address[] | undefined
  /** It broke a connection, and is asked once more where no other one can be reached. */
  #broken: Address | undefined
  /** The running attempt, in the trail of the request. */
  #recorded: TrailAttempt | undefined

  constructor(
    context: CallContext,
    { method, path, headers, body = null }: UpstreamRequest,
    exchange: Exchange,
    done: Done
  ) {
    this.#context = context
    // `reset: false`: undici would close the connection after each HEAD.
    this.#options = { method, path, headers, body, reset: false }
    this.#headers = headers
    this.#exchange = exchange
    this.#mayRepeat = body === null && isSafe(method)
    this.#isUpload = body instanceof Readable
    this.#done = done
  }

  /** Starts, or waits for its turn. */
  begin(): void {
    const { uploads, streams } = this.#context
    if (asksForEvents(this.#headers)) {
      if (!streams.tryTake()) return this.#done(tooManyStreams())
      return this.#start(streams)
    }
    if (!this.#isUpload) return this.#connect()
    const go = () => {
      this.#uploadSlot = uploads
      this.#connect()
    }
    if (uploads.tryTake()) go()
    else this.#wait(uploads, go)
  }

  #connect(): void {
    const { slots } = this.#context
    if (slots.tryTake()) this.#start(slots)
    else this.#wait(slots, () => this.#start(slots))
  }

  #wait(slots: Slots, go: () => void): void {
    const refuse = (error: unknown) => {
      this.#releaseSlots()
      this.#done(upstreamError(error))
    }
    try {
      const leave = slots.wait({
        start: () => {
          this.#endWait()
          go()
        },
        refuse: error => {
          this.#endWait()
          refuse(error)
        }
      })
      this.#exchange.attempt = {
        fail: error => {
          leave()
          refuse(error)
        }
      }
    } catch (error) {
      refuse(error)
    }
  }

  #releaseSlots(): void {
    const upload = this.#uploadSlot
    const slot = this.#slot
    this.#uploadSlot = this.#slot = undefined
    upload?.release()
    slot?.release()
  }

  /** The wait for a connection is not the upstream's time. */
  #endWait(): void {
    const { startedAt, trail } = this.#exchange
    const now = performance.now()
    this.#exchange.startedAt = now
    if (trail !== undefined) trail.queueMs += now - startedAt
  }

  #start(slots: Slots): void {
    this.#slot = slots
    this.#send(this.#context.balancer.pick() as Address)
  }

  onResponse(response: UpstreamResponse): void {
    const { status, headers, body } = response
    if (failureStatuses.has(status)) this.#address?.failedBy('request')
    else this.#address?.succeeded()
    if (this.#recorded !== undefined) this.#recorded.status = status
    const isStream = !(body instanceof CollectedBody) && isEventStream(headers)
    if (isStream && !this.#becomeStream()) {
      body.destroy()
      return this.#done(tooManyStreams())
    }
    this.#done(null, response)
  }

  /** Events that were not asked for as such leave their slot to others. */
  #becomeStream(): boolean {
    const { streams } = this.#context
    if (this.#slot === streams) return true
    if (!streams.tryTake()) return false
    this.#releaseSlots()
    this.#slot = streams
    return true
  }

  onFailed(error: unknown, { isFree, isUnsent }: HowFar): void {
    const failure = upstreamError(error)
    this.#tell(error, failure, isUnsent)
    this.#recorded?.fail(error, this.#exchange.isGone ? 'left' : failure.code)
    if (isFree) {
      const next = this.#next(failure, isUnsent && !isLocalError(error))
      if (next !== undefined) {
        this.#address?.end()
        return this.#send(next)
      }
      this.onSettled()
    }
    this.#done(failure)
  }

  onSettled(): void {
    if (this.#isSettled) return
    this.#isSettled = true
    if (this.#recorded?.ms === undefined) this.#recorded?.end()
    this.#address?.end()
    this.#releaseSlots()
  }

  #send(address: Address): void {
    this.#address = address
    address.begin()
    const exchange = this.#exchange
    const { trail, purpose, part } = exchange
    if (trail !== undefined) {
      const { upstream, passesState } = this.#context
      const recorded = new TrailAttempt(upstream, address.origin, purpose, part)
      this.#recorded = trail.addAttempt(recorded)
      if (trail.trace !== undefined) {
        const { method, path } = this.#options
        const { origin } = address
        const headers = this.#headers
        traceCall(trail.trace, recorded, { method, path, headers, origin, passesState })
      }
    }
    const attempt = new Attempt(exchange, this)
    try {
      address.dispatch(this.#options, attempt)
    } catch (error) {
      attempt.fail(error, true)
    }
  }

  /** Tells the address what became of the attempt; what the client did says nothing of it. */
  #tell(error: unknown, { code }: GatewayError, isUnsent: boolean): void {
    if (isLocalError(error)) return
    if (isUnsent) return this.#address?.failedBy('connect')
    const isTimeout = code.startsWith('upstream.timeout') && !this.#isUpload
    if (isTimeout || isBroken(code)) this.#address?.failedBy('request')
  }

  /** The address for another attempt, if there may be one. */
  #next({ code }: GatewayError, isUnsent: boolean): Address | undefined {
    const { balancer, budget, onRetry } = this.#context
    const failed = this.#address
    const { isGone, startedAt, timeoutMs } = this.#exchange
    if (isGone || failed === undefined) return undefined
    const tried = (this.#tried ??= [])
    tried.push(failed)
    if (isUnsent && performance.now() - startedAt < timeoutMs) {
      const other = balancer.pick(tried) ?? this.#broken
      if (other === this.#broken) this.#broken = undefined
      if (other !== undefined) {
        onRetry('elsewhere')
        return other
      }
    }
    const mayRepeat = this.#mayRepeat && !this.#hasRepeated && isBroken(code)
    if (!mayRepeat || !budget.spend()) return undefined
    this.#hasRepeated = true
    onRetry('again')
    const other = balancer.pick(tried)
    if (other !== undefined) this.#broken = failed
    return other ?? failed
  }
}

function tooManyStreams(): GatewayError {
  return overloaded('too many event streams of the upstream are open', 'streams')
}

/** As every EventSource does. */
function asksForEvents({ accept }: UpstreamRequest['headers']): boolean {
  return typeof accept === 'string' && accept.startsWith('text/event-stream')
}

/** RFC 9110 §9.2.1 */
function isSafe(method: string): boolean {
  return method === 'GET' || method === 'HEAD' || method === 'OPTIONS'
}

/** Whether the back-end broke the exchange; a time-out is another matter. */
function isBroken(code: GatewayError['code']): boolean {
  return code === 'upstream.reset' || code === 'upstream.refused'
}
