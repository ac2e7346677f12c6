/** The back-ends as routes see them: each is one or more addresses behind one queue. */
import type { UpstreamConfig } from '../config/schema/routes.ts'
import { urlsOf } from '../config/schema/upstreams.ts'
import { type ErrorCode, GatewayError, isOfUpstream } from '../errors/errors.ts'
import { Address, type PemFiles } from './address.ts'
import {
  type CallContext,
  createCallContext,
  recordAttempt,
  type RecordedCall,
  sendCall,
  takeStream,
  type UpstreamEvents
} from './call.ts'
import { upstreamError } from './failures.ts'
import type { Call } from './receiver.ts'
import { fixedHeadersOf } from './request-headers.ts'
import { discard, isWhole, type UpstreamResponse, type WholeResponse } from './response.ts'

/** A request of the gateway's own. */
export interface FetchOptions extends RecordedCall, Pick<Call, 'signal'> {
  /** For the whole response. */
  readonly timeoutMs: number
  readonly body?: string
  readonly maxBytes: number
  /** The code for a larger response; `upstream.invalid` without it. */
  readonly tooLarge?: ErrorCode
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

interface UpstreamOptions {
  /** In `routes.yaml`. */
  readonly name?: string
  readonly pemFiles?: PemFiles
  readonly events?: UpstreamEvents | undefined
}

const noEvents: UpstreamEvents = { onAddress: () => {}, onRetry: () => {}, onWaited: () => {} }

/** One back-end. It outlives the routes that use it; its creator closes it. */
export function createUpstream(
  config: UpstreamConfig,
  { name = '', pemFiles = {}, events = noEvents }: UpstreamOptions = {}
) {
  const urls = urlsOf(config)
  const { origin, pathname } = new URL(urls[0] ?? '')
  const base = pathname.replace(/\/$/, '')
  const addresses = urls.map(url => new Address(url, config, pemFiles, events.onAddress))
  const context = createCallContext(name, config, addresses, events)
  const { slots, streams } = context
  const fixedHeaders = fixedHeadersOf(config)

  return {
    /** Scheme, host and port, of the first address. */
    origin,
    /** Of all addresses: redirects to these are redirects within the upstream. */
    origins: new Set(addresses.map(address => address.origin)) as ReadonlySet<string>,
    /** The prefix of every upstream path, without a slash at its end. */
    base,
    config,
    /**
     * Sends a request, and waits for its response to be whole, or to go on as a stream.
     * @throws GatewayError `upstream.*`, `overloaded`, or the reason of the call's signal
     */
    send: (call: Call): Promise<UpstreamResponse> => {
      if (fixedHeaders !== undefined) Object.assign(call.headers, fixedHeaders)
      return sendCall(context, call)
    },
    /**
     * A connection outside the pool, for a protocol that only begins as HTTP.
     * @throws GatewayError `upstream.*`, or `overloaded`
     */
    connect: (call: RecordedCall) => connect(context, call),
    /**
     * A request of the gateway's own, its response collected.
     * @throws GatewayError `upstream.*`, or `overloaded`
     */
    fetchWhole: async (request: FetchOptions): Promise<WholeResponse> => {
      const { timeoutMs, maxBytes, tooLarge = 'upstream.invalid' } = request
      // A body that the gateway writes keeps its own type.
      const { 'content-type': type } = request.headers
      const response = await sendCall(context, {
        ...request,
        path: base + request.path,
        headers: { ...request.headers, ...fixedHeaders, ...(type && { 'content-type': type }) },
        totalMs: timeoutMs,
        collectBytes: maxBytes,
        collectsAll: true
      })
      if (isWhole(response)) return response
      discard(response)
      const cause = new Error(`the answer is larger than ${maxBytes} bytes`)
      throw new GatewayError(tooLarge, { cause })
    },
    /** Requests that have a connection, event streams and WebSockets among them. */
    inFlight: () => slots.running + streams.running,
    /** Requests that wait for one. */
    waiting: () => slots.waiting,
    addresses,
    /** Ends what is running. */
    close: async () => {
      slots.close(new GatewayError('gateway.stopping'))
      await Promise.all(addresses.map(address => address.close()))
    },
    /** Lets what is running finish. */
    retire: async () => {
      await Promise.all(addresses.map(address => address.retire()))
    }
  }
}

/**
 * Connects to an address; where that fails, to another one, since nothing was written yet. It takes
 * a place of event streams until the connection is closed.
 * @throws GatewayError `upstream.*`, or `overloaded`
 */
async function connect(context: CallContext, call: RecordedCall) {
  const { pick } = context
  const place = takeStream(context)
  const tried: Address[] = []
  let failure: GatewayError | undefined
  for (let address = pick(); address !== undefined; address = pick(tried)) {
    tried.push(address)
    const recorded = recordAttempt(context, call, address)
    try {
      const socket = await address.connect()
      socket.once('close', () => place.release())
      return { socket, origin: address.origin, recorded }
    } catch (error) {
      failure = upstreamError(error)
      recorded?.fail(error, failure.code)
      if (isOfUpstream(failure)) address.failedBy('connect')
    }
  }
  place.release()
  throw failure
}
