/**
 * Identical requests of one session at the same time share one call to the upstream: reads of which
 * one response serves all (`coalesce`), and changes that must not be made twice (`doubleClicks`).
 */
import { Readable } from 'node:stream'
import { GatewayError } from '../errors.ts'
import type { Done, UpstreamRequest } from '../proxy/call.ts'
import { upstreamError } from '../proxy/failures.ts'
import { abort, CollectedBody, type Exchange, type UpstreamResponse } from '../proxy/response.ts'
import type { Upstream } from '../proxy/upstream.ts'
import type { ProxiedExchange } from './endpoints/exchange.ts'

export type Dispatch = Upstream['dispatch']

/** Bounded: beyond it, requests run as if they were not shared. */
const maxCalls = 10_000

export interface SharedRequest {
  readonly dispatch: Dispatch
  /** The same for identical requests. */
  readonly key: string
  /** The session's key. */
  readonly session: string
  readonly request: UpstreamRequest
  readonly exchange: ProxiedExchange
  readonly done: Done
}

/** Outlives generations: the second click may come after a reload. */
export class SharedCalls {
  readonly #running = new Map<string, SharedCall>()
  /** The reads that may still be joined, by session. */
  readonly #reads = new Map<string, Set<SharedCall>>()

  get size(): number {
    return this.#running.size
  }

  /**
   * Sends a request, or waits for the response to an identical one.
   * @returns whether it waits for another's response
   */
  send(shared: SharedRequest): boolean {
    const { key, session, dispatch, request, exchange, done } = shared
    if (exchange.isGone) {
      dispatch(request, exchange, done)
      return false
    }
    const running = this.#running.get(key)
    if (running !== undefined) {
      running.add(shared)
      return true
    }
    if (this.#running.size >= maxCalls) {
      dispatch(request, exchange, done)
      return false
    }
    const call = new SharedCall(shared, () => this.#remove(key, session, call))
    this.#running.set(key, call)
    if (call.isRead) {
      const reads = this.#reads.get(session)
      if (reads === undefined) this.#reads.set(session, new Set([call]))
      else reads.add(call)
    }
    call.begin()
    return false
  }

  /** After a change, nobody gets a response that was asked for before it. */
  separateReads(session: string): void {
    for (const call of this.#reads.get(session) ?? []) this.#remove(call.key, session, call)
  }

  #remove(key: string, session: string, call: SharedCall): void {
    if (this.#running.get(key) === call) this.#running.delete(key)
    const reads = this.#reads.get(session)
    if (reads?.delete(call) === true && reads.size === 0) this.#reads.delete(session)
  }
}

/** One call to the upstream, and all who wait for its response. */
class SharedCall {
  readonly key: string
  readonly isRead: boolean
  readonly #first: SharedRequest
  readonly #waiters = new Set<SharedRequest>()
  readonly #exchange: Exchange
  readonly #onOver: () => void

  constructor(first: SharedRequest, onOver: () => void) {
    this.key = first.key
    this.isRead = first.request.method === 'GET'
    this.#first = first
    this.#onOver = onOver
    // A state of its own: it goes on when the client that came first has left.
    const state: Exchange = first.exchange
    this.#exchange = { ...state, user: state.user, isGone: false, attempt: undefined }
    this.add(first)
  }

  begin(): void {
    const { dispatch, request } = this.#first
    const { method, path, headers, body = null } = request
    dispatch({ method, path, headers, body }, this.#exchange, (error, response) => {
      this.#finish(error, response)
    })
  }

  add(waiter: SharedRequest): void {
    this.#waiters.add(waiter)
    waiter.exchange.attempt = { fail: error => this.#leave(waiter, error) }
  }

  /** The upstream's work ends when nobody waits for it any more. */
  #leave(waiter: SharedRequest, error: unknown): void {
    if (!this.#waiters.delete(waiter)) return
    if (this.#waiters.size === 0) {
      this.#onOver()
      this.#exchange.isGone = true
      abort(this.#exchange)
    }
    waiter.done(upstreamError(error))
  }

  #finish(error: GatewayError | null, response: UpstreamResponse | undefined): void {
    this.#onOver()
    const waiters = [...this.#waiters]
    this.#waiters.clear()
    const { firstByteMs, startedAt, attempt } = this.#exchange
    if (waiters.length === 0) response?.body.destroy()
    for (const [index, { exchange, done, dispatch, request }] of waiters.entries()) {
      exchange.attempt = undefined
      exchange.startedAt = startedAt
      exchange.firstByteMs = firstByteMs
      if (index > 0 || exchange !== this.#first.exchange) this.#recordSharing(exchange)
      if (response === undefined || this.#maySend(response)) {
        done(error, response)
      } else if (index === 0) {
        // A streamed body has one reader; it ends when that one leaves.
        exchange.attempt = attempt
        const { body } = response
        if (body instanceof Readable) {
          body.once('end', () => this.#passTrailers(exchange))
          body.once('close', () => this.#tellCut(exchange))
        }
        done(null, response)
      } else if (this.isRead) {
        exchange.startedAt = performance.now()
        dispatch(request, exchange, done)
      } else done(new GatewayError('request.repeated'))
    }
  }

  /** The attempt knows the call's exchange alone. */
  #passTrailers(exchange: ProxiedExchange): void {
    exchange.trailers = this.#exchange.trailers
  }

  #tellCut(exchange: ProxiedExchange): void {
    if (!exchange.isGone) exchange.cutCode ??= this.#exchange.cutCode
  }

  #recordSharing({ trail }: ProxiedExchange): void {
    const { trail: ofCall } = this.#first.exchange
    trail.copy = 'shared'
    trail.sharedWith = ofCall.requestId
    trail.attempts = ofCall.attempts?.slice()
  }

  /** Whether a response serves all who wait. */
  #maySend({ body, headers }: UpstreamResponse): boolean {
    if (!(body instanceof CollectedBody)) return false
    return !this.isRead || headers['set-cookie'] === undefined
  }
}
