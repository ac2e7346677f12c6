/** The back-ends as routes see them: each is one or more addresses behind one queue. */
import type { Socket } from 'node:net'
import type { UpstreamConfig } from '../config/schema/routes.ts'
import { urlsOf } from '../config/schema/upstream-addresses.ts'
import { type ErrorCode, GatewayError } from '../errors/errors.ts'
import { adopt } from '../observability/emitters.ts'
import type { TrailAttempt } from '../observability/trail.ts'
import type { TlsFiles } from './tls-files.ts'
import { Address, type AddressChange, isLocalError } from './address.ts'
import { type Call, type CallContext, recordAttempt, type RecordedCall, sendCall } from './call.ts'
import { upstreamError } from './failures.ts'
import { type FixedHeaders, fixedHeadersOf } from './request-headers.ts'
import { checkHealth } from './health.ts'
import type { UpstreamResponse } from './receiver.ts'
import { Slots } from './slots.ts'

/** A request of the gateway's own. */
export interface FetchOptions extends RecordedCall, Pick<Call, 'signal'> {
  /** For the whole response. */
  readonly timeoutMs: number
  readonly body?: string
  readonly maxBytes: number
  /** The code for a larger response; `upstream.invalid` without it. */
  readonly tooLarge?: ErrorCode
}

export interface WholeResponse extends UpstreamResponse {
  readonly body: Buffer
}

export type UpstreamPool = ReturnType<typeof createUpstream>
/** The members of a pool that routes and sign-in use. */
export interface Upstream extends Pick<
  UpstreamPool,
  'config' | 'origin' | 'origins' | 'base' | 'send' | 'connect' | 'fetchWhole'
> {
  /**
   * Headers that own code adds to a call: `send` and `fetchWhole` do so themselves.
   * @throws GatewayError `upstream.module`
   */
  readonly addedTo?: (call: RecordedCall & Pick<Call, 'body'>) => Promise<Record<string, string>>
}

export interface UpstreamOptions {
  /** In `routes.yaml`. */
  readonly name?: string
  /** The PEM texts of `config.ca` and `config.tls`. */
  readonly tls?: TlsFiles | undefined
  readonly events?: UpstreamEvents | undefined
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
  const { tls = {}, events = noEvents } = options
  const urls = urlsOf(config)
  const { origin, pathname } = new URL(urls[0] ?? '')
  const base = pathname.replace(/\/$/, '')
  const addresses = urls.map(url => new Address(url, config, tls, events.onAddress))
  const checking = new AbortController()
  for (const each of addresses) {
    if (config.health !== undefined) void checkHealth(each, config.health, checking.signal)
  }
  const context = contextOf(config, addresses, options)
  const { slots, uploads, streams } = context
  const fixedHeaders = fixedHeadersOf(config)

  /**
   * Sends a request, and waits for its response to be whole, or to go on as a stream.
   * @throws GatewayError `upstream.*`, `overloaded`, or the reason of the call's signal
   */
  function send(call: Call): Promise<UpstreamResponse> {
    if (fixedHeaders !== undefined) addFixed(call, fixedHeaders)
    return sendCall(context, call)
  }

  return {
    /** Scheme, host and port, of the first address. */
    origin,
    /** Of all addresses: redirects to these are redirects within the upstream. */
    origins: new Set(addresses.map(address => address.origin)) as ReadonlySet<string>,
    /** The prefix of every upstream path, without a slash at its end. */
    base,
    config,
    send,
    /**
     * A connection outside the pool, for a protocol that only begins as HTTP.
     * @throws GatewayError `upstream.*`
     */
    connect: (call: RecordedCall): Promise<Connection> => connect(context, call),
    /**
     * A request of the gateway's own, its response collected.
     * @throws GatewayError `upstream.*`, or `overloaded`
     */
    fetchWhole: (request: FetchOptions): Promise<WholeResponse> =>
      fetchWhole(send, config, { ...request, path: base + request.path }),
    /** Requests that have a connection. */
    inFlight: () => slots.running + streams.running,
    /** Requests that wait for one. */
    waiting: () => slots.waiting + uploads.waiting,
    /** How each is. */
    addresses,
    /** Ends what is running. */
    close: async () => {
      checking.abort()
      const error = new GatewayError('gateway.stopping')
      for (const each of [slots, uploads]) each.close(error)
      await Promise.all(addresses.map(address => address.close()))
    },
    /** Lets what is running finish. */
    retire: async () => {
      checking.abort()
      await Promise.all(addresses.map(address => address.retire()))
    }
  }
}

interface Connection {
  readonly socket: Socket
  /** Scheme, name and port of the address. */
  readonly origin: string
  readonly recorded: TrailAttempt | undefined
}

/**
 * Connects to an address; where that fails, to another one, since nothing was written yet. The
 * address counts the connection among what it has in flight.
 * @throws GatewayError `upstream.*`
 */
async function connect(context: CallContext, call: RecordedCall): Promise<Connection> {
  const tried: Address[] = []
  let failure: unknown
  for (;;) {
    const address = isLocalError(failure) ? undefined : context.pick(tried)
    if (address === undefined) throw upstreamError(failure)
    tried.push(address)
    const { origin } = address
    address.begin()
    const recorded = recordAttempt(context, call, address)
    try {
      const socket = adopt(await address.connect())
      countUntilClosed(socket, address)
      address.succeeded()
      return { socket, origin, recorded }
    } catch (error) {
      failure = error
      address.end()
      recorded?.fail(error, upstreamError(error).code)
      if (!isLocalError(error)) address.failedBy('connect')
    }
  }
}

/** Apart from the above: a closure of that would keep the handshake alive as long as the socket. */
function countUntilClosed(socket: Socket, address: Address): void {
  socket.once('close', () => address.end())
}

/** Retries that may be made at once, whatever came before. */
const minRetries = 10

function contextOf(
  config: UpstreamConfig,
  addresses: readonly Address[],
  { name = '', events = noEvents }: UpstreamOptions
): CallContext {
  const { connections, streams } = config
  const slotsOf = (slots: number) => new Slots({ ...config, slots }, events.onWaited)
  // At most 10 % more load on a back-end in trouble. Where there are several addresses, beside it
  // the requests of one that break at once when it dies.
  const { length } = addresses
  const maxRetries = minRetries + (length > 1 ? Math.ceil(connections / length) : 0)
  let retries = maxRetries
  return {
    name,
    // With a list of headers only if it is one of them.
    passesState: config.passHeaders?.includes('tracestate') ?? true,
    pick: createPick(addresses),
    slots: slotsOf(connections),
    uploads: slotsOf(Math.max(1, Math.floor(connections / 2))),
    streams: slotsOf(streams),
    onRequest: () => {
      retries = Math.min(maxRetries, retries + 0.1)
    },
    mayRetry: () => {
      if (retries < 1) return false
      retries--
      return true
    },
    onRetry: events.onRetry
  }
}

/** A body that the gateway writes keeps its own type. */
function addFixed({ headers, isOwn }: Call, fixed: FixedHeaders) {
  const type = headers['content-type']
  Object.assign(headers, fixed)
  if (isOwn === true && type !== undefined) headers['content-type'] = type
}

async function fetchWhole(
  send: (call: Call) => Promise<UpstreamResponse>,
  { idleTimeout, streamIdle }: UpstreamConfig,
  request: FetchOptions
): Promise<WholeResponse> {
  const { timeoutMs, maxBytes, tooLarge = 'upstream.invalid' } = request
  const { status, headers, body } = await send({
    ...request,
    timeOuts: { idleTimeout, streamIdle, totalTimeout: timeoutMs },
    collectBytes: maxBytes,
    collectsAll: true,
    isOwn: true
  })
  if (Buffer.isBuffer(body)) return { status, headers, body }
  body.destroy()
  const cause = new Error(`the answer is larger than ${maxBytes} bytes`)
  throw new GatewayError(tooLarge, { cause })
}

/**
 * Of the addresses that work the one with the fewest requests in flight, by turns where several
 * have as few; the same of all where none works.
 * @param addresses one at least
 */
function createPick(addresses: readonly Address[]): CallContext['pick'] {
  let turn = 0
  return tried => {
    const { length } = addresses
    turn = (turn + 1) % length
    let best: Address | undefined
    for (let n = 0; n < length; n++) {
      const address = addresses[(turn + n) % length] as Address
      if (tried?.includes(address) === true) continue
      if (best === undefined || isBetter(address, best)) best = address
    }
    return best
  }
}

function isBetter(one: Address, other: Address): boolean {
  const isUsable = one.isUsable
  return isUsable === other.isUsable ? one.inFlight < other.inFlight : isUsable
}
