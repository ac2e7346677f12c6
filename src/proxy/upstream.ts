/** The back-ends as routes see them: each is one or more addresses behind one queue. */
import { Readable } from 'node:stream'
import type { UpstreamConfig } from '../config/schema/routes.ts'
import { urlsOf } from '../config/schema/upstream-addresses.ts'
import { type ErrorCode, GatewayError } from '../errors.ts'
import { type Recorded, type Trail, TrailAttempt } from '../observability/trail.ts'
import type { TlsFiles } from './tls-files.ts'
import { Address, type AddressChange } from './address.ts'
import { Balancer } from './balancer.ts'
import { checkHealth } from './health.ts'
import { Call, type CallContext, type Done, type UpstreamRequest } from './call.ts'
import { type FixedHeaders, fixedHeadersOf } from './headers.ts'
import { connectDirectly } from './direct-connection.ts'
import { abort, type Exchange, gone } from './response.ts'
import { RetryBudget } from './retry-budget.ts'
import { Slots } from './slots.ts'
import { type TimeOuts, timeOutsOf } from './time-outs.ts'

/** A request of the gateway's own. */
export interface FetchOptions {
  readonly method: string
  readonly path: string
  readonly headers: Record<string, string | string[]>
  readonly body?: string
  /** To the first byte. */
  readonly timeoutMs: number
  /** To the last byte; without it only a body that stalls ends. */
  readonly totalMs?: number
  readonly maxBytes: number
  /** The code for a larger response; `upstream.invalid` without it. */
  readonly tooLarge?: ErrorCode
  /** Ends it where the response is of no use any more. */
  readonly signal?: AbortSignal
  /** The request that it is for, and why. */
  readonly recorded?: Recorded | undefined
}

export interface WholeResponse {
  readonly status: number
  readonly headers: Record<string, string | string[] | undefined>
  readonly body: Buffer
}

export type UpstreamPool = ReturnType<typeof createUpstream>
/** The members of a pool that routes and sign-in use. */
export type Upstream = Pick<
  UpstreamPool,
  'config' | 'origin' | 'origins' | 'base' | 'dispatch' | 'connect' | 'fetchWhole'
>

export interface UpstreamOptions {
  /** In `routes.yaml`. */
  readonly name?: string
  /** The PEM texts of `config.ca` and `config.tls`. */
  readonly tls?: TlsFiles
  readonly events?: UpstreamEvents
}

export interface UpstreamEvents {
  readonly onAddress: (address: string, change: AddressChange) => void
  /** A request goes to an address once more, or elsewhere since it found no connection. */
  readonly onRetry: (kind: 'again' | 'elsewhere') => void
  /** A request has waited for a connection, which it got or gave up. */
  readonly onWaited: (ms: number) => void
}

const noEvents: UpstreamEvents = { onAddress: () => {}, onRetry: () => {}, onWaited: () => {} }

/** One back-end. It outlives the routes that use it; its creator closes it. */
export function createUpstream(config: UpstreamConfig, options: UpstreamOptions = {}) {
  const { name = '', tls = {}, events = noEvents } = options
  const urls = urlsOf(config)
  const { origin, pathname } = new URL(urls[0] ?? '')
  const base = pathname.replace(/\/$/, '')
  const addresses = urls.map(url => new Address(url, config, tls, events.onAddress))
  const balancer = new Balancer(addresses)
  const endChecks = config.health && checkHealth(addresses, config.health)
  const { connections, streams } = config
  const slotsOf = (slots: number) => new Slots({ ...config, slots }, events.onWaited)
  const slots = slotsOf(connections)
  const uploads = slotsOf(Math.max(1, Math.floor(connections / 2)))
  const timeOuts = timeOutsOf(config)
  const fixedHeaders = fixedHeadersOf(config)
  const context: CallContext = {
    upstream: name,
    passesState: passesTraceState(config),
    balancer,
    slots,
    uploads,
    streams: slotsOf(streams),
    budget: new RetryBudget(connections, urls.length),
    onRetry: events.onRetry
  }

  /**
   * Sends a request and gives one response to `done`: an error of ours, or the response as soon as
   * it may go on.
   */
  function dispatch(request: UpstreamRequest, exchange: Exchange, done: Done): void {
    if (fixedHeaders !== undefined) addFixed(request, fixedHeaders)
    if (exchange.isGone) return done(gone())
    context.budget.earn()
    new Call(context, request, exchange, done).begin()
  }

  return {
    /** Scheme, host and port, of the first address. */
    origin,
    /** Of all addresses: redirects to these are redirects within the upstream. */
    origins: new Set(addresses.map(address => address.origin)) as ReadonlySet<string>,
    /** The prefix of every upstream path, without a slash at its end. */
    base,
    config,
    dispatch,
    /** A connection outside the pool, for a protocol that only begins as HTTP. */
    connect: (done: Parameters<typeof connectDirectly>[1], trail?: Trail) =>
      connectDirectly(
        balancer,
        done,
        trail && (address => trail.addAttempt(new TrailAttempt(name, address, 'websocket')))
      ),
    /**
     * A request of the gateway's own, its response collected.
     * @throws GatewayError `upstream.*`, or `overloaded`
     */
    fetchWhole: (request: FetchOptions): Promise<WholeResponse> =>
      fetchWhole(dispatch, timeOuts, { ...request, path: base + request.path }),
    /** Requests that have a connection. */
    inFlight: () => slots.running + context.streams.running,
    /** Requests that wait for one. */
    waiting: () => slots.waiting + uploads.waiting,
    /** How each is. */
    addresses,
    /** Ends what is running. */
    close: async () => {
      endChecks?.()
      const error = new GatewayError('gateway.stopping')
      for (const each of [slots, uploads]) each.close(error)
      await Promise.all(addresses.map(address => address.close()))
    },
    /** Lets what is running finish. */
    retire: async () => {
      endChecks?.()
      await Promise.all(addresses.map(address => address.retire()))
    }
  }
}

/** With a list of headers the caller's `tracestate` passes only if the list has it. */
export function passesTraceState({ passHeaders }: Pick<UpstreamConfig, 'passHeaders'>): boolean {
  return passHeaders === undefined || passHeaders.includes('tracestate')
}

/** A body that the gateway writes keeps its own type. */
function addFixed({ headers, isOwn }: UpstreamRequest, fixed: FixedHeaders) {
  const type = headers['content-type']
  Object.assign(headers, fixed)
  if (isOwn === true && type !== undefined) headers['content-type'] = type
}

async function fetchWhole(
  dispatch: (request: UpstreamRequest, exchange: Exchange, done: Done) => void,
  timeOuts: TimeOuts,
  options: FetchOptions
): Promise<WholeResponse> {
  const { timeoutMs, totalMs, maxBytes, tooLarge = 'upstream.invalid', signal } = options
  const exchange: Exchange = {
    timeoutMs,
    timeOuts,
    collectBytes: maxBytes,
    collectOnly: true,
    isHead: false,
    ...options.recorded,
    startedAt: performance.now(),
    isGone: signal?.aborted === true
  }
  const leave = () => {
    exchange.isGone = true
    abort(exchange)
  }
  const expire = () => {
    const isLate = exchange.firstByteMs === undefined
    abort(exchange, new GatewayError(isLate ? 'upstream.timeout' : 'upstream.timeout.total'))
  }
  const timer = totalMs === undefined ? undefined : setTimeout(expire, totalMs)
  signal?.addEventListener('abort', leave, { once: true })
  try {
    return await new Promise((resolve, reject) => {
      dispatch({ ...options, isOwn: true }, exchange, (error, response) => {
        if (response === undefined) return reject(error ?? new GatewayError('upstream.invalid'))
        const { status, headers, body } = response
        if (!(body instanceof Readable)) return resolve({ status, headers, body: body.bytes })
        body.destroy()
        reject(
          new GatewayError(tooLarge, {
            cause: new Error(`the answer is larger than ${maxBytes} bytes`)
          })
        )
      })
    })
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', leave)
  }
}
