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
import { type Address, isConnectError, isLocalError } from './address.ts'
import type { Failure } from './address-state.ts'
import type { Balancer } from './balancer.ts'
import { traceCall } from '../observability/traces/outgoing.ts'
import { TrailAttempt } from '../observability/trail.ts'
import { upstreamError } from './failures.ts'
import type { RetryBudget } from './retry-budget.ts'
import type { ConnectionQueue } from './queue.ts'
import {
  Attempt,
  CollectedBody,
  type Exchange,
  type UpstreamResponse,
  type Watcher
} from './response.ts'
import { asksForEvents, type StreamShare, tooManyStreams } from './stream-share.ts'

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
  readonly queue: ConnectionQueue
  readonly streams: StreamShare
  /** Statuses that count as failures of the address. */
  readonly failureStatuses: ReadonlySet<number>
  readonly budget: RetryBudget
  readonly onRetry: (kind: 'again' | 'elsewhere') => void
}

/** A response that takes longer than this counts as a stream. */
const shortMs = 10_000
const noAddresses: readonly Address[] = []

export class Call implements Watcher {
  readonly #context: CallContext
  readonly #options: Dispatcher.DispatchOptions
  readonly #headers: UpstreamRequest['headers']
  readonly #exchange: Exchange
  readonly #done: Done
  readonly #isUpload: boolean
  readonly #mayRetry: boolean
  #hasRetried = false
  #isSettled = false
  #address: Address | undefined
  readonly #asksForEvents: boolean
  /** Counted among the upstream's streams. */
  #isStream = false
  #streamTimer: NodeJS.Timeout | undefined
  #tried = noAddresses
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
    this.#mayRetry = body === null && isSafe(method)
    this.#isUpload = body instanceof Readable
    this.#asksForEvents = asksForEvents(headers)
    this.#done = done
  }

  /** Starts, or waits for a connection. */
  begin(): void {
    const { queue, streams } = this.#context
    if (this.#asksForEvents && streams.isFull) return this.#done(tooManyStreams())
    if (queue.tryTake(this.#isUpload)) return this.start()
    const { body } = this.#options
    try {
      const leave = queue.wait({
        user: this.#exchange.user,
        bytes: typeof body === 'string' || Buffer.isBuffer(body) ? body.length : 0,
        isUpload: this.#isUpload,
        start: () => {
          this.#endWait()
          this.start()
        },
        refuse: error => {
          this.#endWait()
          this.#done(error)
        }
      })
      this.#exchange.attempt = {
        fail: error => {
          leave()
          this.#done(upstreamError(error))
        }
      }
    } catch (error) {
      this.#done(upstreamError(error))
    }
  }

  /** The wait for a connection is not the upstream's time. */
  #endWait(): void {
    const { startedAt, trail } = this.#exchange
    const now = performance.now()
    this.#exchange.startedAt = now
    if (trail !== undefined) trail.queueMs += now - startedAt
  }

  start(): void {
    try {
      if (this.#asksForEvents) this.#addStream()
      const address = this.#context.balancer.pick(this.#mayRetry, this)
      this.#send(address)
    } catch (error) {
      this.#releaseStream()
      this.#context.queue.release(this.#isUpload)
      this.#done(upstreamError(error))
    }
  }

  onResponse(response: UpstreamResponse): void {
    if (this.#context.failureStatuses.has(response.status)) this.#failed('request')
    else this.#address?.succeeded()
    if (this.#recorded !== undefined) this.#recorded.status = response.status
    if (!(response.body instanceof CollectedBody)) {
      try {
        this.#countStream(response)
      } catch (error) {
        response.body.destroy()
        return this.#done(upstreamError(error))
      }
    }
    this.#done(null, response)
  }

  onFailed(error: unknown, isFree: boolean): void {
    const failure = upstreamError(error)
    this.#tell(error, failure)
    this.#recorded?.fail(error, this.#exchange.isGone ? 'left' : failure.code)
    if (isFree) {
      const next = this.#next(error, failure)
      if (next !== undefined) {
        this.#release()
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
    this.#releaseStream()
    this.#release()
    this.#context.queue.release(this.#isUpload)
  }

  /** @throws GatewayError `overloaded` */
  #addStream(): void {
    const { streams } = this.#context
    if (streams.isFull) throw tooManyStreams()
    streams.add()
    this.#isStream = true
  }

  /**
   * A request for events that got something else is none any more; a response of another kind is
   * one when it takes long.
   * @throws GatewayError `overloaded` for events that were not asked for as such
   */
  #countStream({ headers }: UpstreamResponse): void {
    if (!isEventStream(headers)) {
      this.#releaseStream()
      this.#streamTimer = setTimeout(() => {
        this.#isStream = true
        this.#context.streams.add()
      }, shortMs).unref()
    } else if (!this.#isStream) this.#addStream()
  }

  #releaseStream(): void {
    clearTimeout(this.#streamTimer)
    if (!this.#isStream) return
    this.#isStream = false
    this.#context.streams.release()
  }

  #send(address: Address): void {
    this.#address = address
    address.inFlight++
    address.requests++
    const exchange = this.#exchange
    const { trail, purpose, part } = exchange
    if (trail !== undefined) {
      const { upstream, passesState } = this.#context
      const recorded = new TrailAttempt(upstream, address.label, purpose, part)
      this.#recorded = trail.addAttempt(recorded)
      if (trail.trace !== undefined) {
        const { method, path } = this.#options
        const { origin } = address.endpoint
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

  /** The connection is free again. */
  #release(): void {
    if (this.#address !== undefined) this.#address.inFlight--
  }

  /** Tells the address what became of the attempt; what the client did says nothing of it. */
  #tell(error: unknown, { code }: GatewayError): void {
    if (!isLocalError(error)) {
      if (isConnectError(error)) return this.#failed('connect')
      const isTimeout = code.startsWith('upstream.timeout') && !this.#isUpload
      if (isTimeout || isBroken(code)) return this.#failed('request')
    }
    this.#address?.state.abandonTrial(this)
  }

  #failed(failure: Failure): void {
    if (this.#address === undefined) return
    this.#address.failures++
    this.#address.failed(failure)
  }

  /** The address for another attempt, if there may be one. */
  #next(error: unknown, { code }: GatewayError): Address | undefined {
    const { balancer, budget, onRetry } = this.#context
    const failed = this.#address
    const exchange = this.#exchange
    if (exchange.isGone || failed === undefined) return undefined
    this.#tried = [...this.#tried, failed]
    const isInTime = performance.now() - exchange.startedAt < exchange.timeoutMs
    if (isConnectError(error) && isInTime) {
      const other = balancer.pickOther(this.#tried)
      if (other !== undefined) {
        onRetry('elsewhere')
        return other
      }
    }
    if (!this.#mayRetry || this.#hasRetried || !isBroken(code) || !budget.spend()) return undefined
    this.#hasRetried = true
    onRetry('again')
    return balancer.pickOther(this.#tried) ?? failed
  }
}

/** RFC 9110 §9.2.1 */
function isSafe(method: string): boolean {
  return method === 'GET' || method === 'HEAD' || method === 'OPTIONS'
}

/** Whether the back-end broke the exchange; a time-out is another matter. */
function isBroken(code: GatewayError['code']): boolean {
  return code === 'upstream.reset' || code === 'upstream.refused'
}
