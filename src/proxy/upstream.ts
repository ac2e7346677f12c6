/**
 * A back-end: one or more addresses behind one queue. A request is sent once, with two exceptions:
 * where no connection was found it may go elsewhere, since nothing was written; a safe one without
 * a body is asked again, once, where its connection broke and nothing has gone to the client.
 */
import { Readable } from 'node:stream'
import { setTimeout as wait } from 'node:timers/promises'
import type { UpstreamConfig } from '../config/schema/routes.ts'
import { GatewayError, isOfUpstream } from '../errors/errors.ts'
import { overloaded, Slots } from '../limits/slots.ts'
import { safeMethods } from '../observability/failures.ts'
import { writeContext } from '../observability/traces/context.ts'
import { TrailAttempt } from '../observability/trail.ts'
import { Address, createPick, type OnAddress } from './address.ts'
import { type Call, Receiver } from './receiver.ts'
import { fixedHeadersOf } from './request-headers.ts'
import {
  discard,
  failureStatuses,
  isEventStream,
  upstreamError,
  type UpstreamResponse,
  type WholeResponse
} from './response.ts'

/** What is recorded of a call. */
type RecordedCall = Pick<Call, 'method' | 'path' | 'headers' | 'recorded'>

/** A request of the gateway's own; its time is that for the whole response. */
interface FetchOptions extends Omit<Call, 'totalMs' | 'collectBytes' | 'collectsAll'> {
  readonly maxBytes: number
}

export interface UpstreamEvents {
  readonly onAddress: OnAddress
  /** A request goes to an address once more, or elsewhere since it found no connection. */
  readonly onRetry: (kind: 'again' | 'elsewhere') => void
  /** A request has waited for a connection, which it got or gave up. */
  readonly onWaited: (ms: number) => void
}

export type Upstream = ReturnType<typeof createUpstream>

const noEvents: UpstreamEvents = { onAddress: () => {}, onRetry: () => {}, onWaited: () => {} }

/** One back-end. It outlives the routes that use it; its creator closes it. */
export function createUpstream(config: UpstreamConfig, name = '', events = noEvents) {
  const { url: urls = [] } = config
  const { origin, pathname } = new URL(urls[0] ?? '')
  const base = pathname.replace(/\/$/, '')
  const addresses = urls.map(url => new Address(url, config, events.onAddress))
  const context = createContext(name, config, addresses, events)
  const { slots, streams } = context
  const fixedHeaders = fixedHeadersOf(config)

  return {
    /** Scheme, host and port, of the first address. */
    origin,
    /** The prefix of every upstream path, without a slash at its end. */
    base,
    config,
    /** @throws GatewayError `upstream.*`, `overloaded`, the reason of the call's signal */
    send: (call: Call): Promise<UpstreamResponse> => {
      const { headers, isOwn } = call
      const { 'content-type': type } = headers
      if (fixedHeaders !== undefined) Object.assign(headers, fixedHeaders)
      if (isOwn && type !== undefined) headers['content-type'] = type
      return sendCall(context, call)
    },
    /** Outside the pool. @returns also the headers that are to be sent @throws GatewayError */
    connect: (call: RecordedCall) =>
      connect(context, { ...call, headers: { ...call.headers, ...fixedHeaders } }),
    /** Requests that have a connection, event streams and WebSockets among them. */
    inFlight: () => slots.running + streams.running,
    /** Requests that wait for one. */
    waiting: () => slots.waiting,
    addresses,
    /** Lets what is running finish. */
    close: async () => void (await Promise.all(addresses.map(address => address.close())))
  }
}

/** A request of the gateway's own. @throws GatewayError `upstream.*`, `overloaded` */
export async function fetchWhole(
  { base, send }: Pick<Upstream, 'base' | 'send'>,
  { maxBytes, ...call }: FetchOptions
): Promise<WholeResponse> {
  const response = await send({
    ...call,
    isOwn: true,
    path: base + call.path,
    totalMs: call.timeoutMs,
    collectBytes: maxBytes,
    collectsAll: true
  })
  const { body } = response
  if (Buffer.isBuffer(body)) return { ...response, body }
  discard(response)
  const cause = `the answer is larger than ${maxBytes} bytes`
  throw new GatewayError('upstream.invalid', { cause })
}

type Context = ReturnType<typeof createContext>

/** Shared by all calls of one upstream. */
function createContext(
  name: string,
  { connections, queue, passHeaders }: UpstreamConfig,
  addresses: readonly Address[],
  { onWaited, onRetry }: UpstreamEvents
) {
  return {
    name,
    /** Whether it may get `tracestate`: with a list of headers only if that is one of them. */
    passesState: passHeaders?.includes('tracestate') ?? true,
    pick: createPick(addresses),
    /** Of all requests but event streams. */
    slots: new Slots(connections, queue, onWaited),
    /** Of event streams and WebSockets, which may never end: they wait for no one. */
    streams: new Slots(connections * 5, 0),
    onRetry
  }
}

/** @throws GatewayError `upstream.*`, `overloaded`, or the reason of the signal */
async function sendCall(context: Context, call: Call): Promise<UpstreamResponse> {
  const { pick, slots, streams, onRetry } = context
  // As every EventSource does.
  const asksForEvents = String(call.headers['accept']).startsWith('text/event-stream')
  const place = asksForEvents ? streams : slots
  if (!place.tryTake()) await waitFor(context, place, call)
  const startedAt = performance.now()
  let mayRepeat = safeMethods.has(call.method) && (call.body ?? null) === null
  /** They gave no connection. */
  const unreached: Address[] = []
  let pauseMs = 20
  let failure: GatewayError | undefined
  let address = pick()
  while (address !== undefined) {
    const receiver = new Receiver(call, startedAt, address, recordAttempt(context, call, address))
    const outcome = await receiver.receive()
    if ('status' in outcome) {
      if (failureStatuses.has(outcome.status)) address.failedBy('request')
      else address.succeeded()
      return leavePlace(context, place, receiver, outcome)
    }
    failure = upstreamError(outcome.error)
    const hasLeft = call.signal?.aborted === true
    receiver.recorded?.fail(outcome.error, hasLeft ? 'left' : failure.code)
    const isUnreached = outcome.isUnsent && isOfUpstream(failure)
    const isBroken = failure.code === 'upstream.reset' || failure.code === 'upstream.refused'
    const isLate = failure.code.startsWith('upstream.timeout') && !(call.body instanceof Readable)
    // What the client did says nothing of an address.
    if (isUnreached && !hasLeft) address.failedBy('connect')
    else if ((isLate || isBroken) && !hasLeft) address.failedBy('request')
    let next: Address | undefined
    if (!hasLeft && receiver.isOver) {
      if (isUnreached && performance.now() - startedAt < call.timeoutMs) {
        unreached.push(address)
        next = pick(unreached)
        if (next !== undefined) onRetry('elsewhere')
        else if (failure.code === 'upstream.refused') {
          next = unreached.find(({ mayReturn }) => mayReturn)
          if (next !== undefined) {
            await wait(pauseMs, undefined, { signal: call.signal }).catch(() => {})
            pauseMs *= 2
            onRetry('again')
            unreached.length = 0
          }
        }
      }
      if (next === undefined && mayRepeat && isBroken) {
        mayRepeat = false
        onRetry('again')
        next = pick([...unreached, address]) ?? address
      }
    }
    if (next === undefined) receiver.releaseAfter(place)
    address = next
  }
  throw failure
}

/** @throws as `sendCall` does */
async function waitFor({ slots }: Context, place: Slots, call: Call): Promise<void> {
  const { signal, recorded } = call
  if (place !== slots) throw tooManyStreams()
  const askedAt = performance.now()
  await slots.take(signal)
  if (recorded !== undefined) recorded.trail.queueMs += performance.now() - askedAt
}

/** The place is free as soon as the connection is. @throws GatewayError `overloaded` */
function leavePlace(
  { slots, streams }: Context,
  place: Slots,
  receiver: Receiver,
  response: UpstreamResponse
): UpstreamResponse {
  const { body, headers } = response
  const isLate = place === slots && body instanceof Readable && isEventStream(headers)
  // Events that were not asked for as such leave their slot to others.
  const isMoved = isLate && streams.tryTake()
  if (isMoved) slots.release()
  receiver.releaseAfter(isMoved ? streams : place)
  if (!isLate || isMoved) return response
  discard(response)
  throw tooManyStreams()
}

function tooManyStreams(): GatewayError {
  return overloaded('too many event streams and WebSockets of the upstream are open', 'streams')
}

/**
 * Where an address fails, another one: nothing was written yet. It takes a place of event streams
 * until the connection is closed. @throws GatewayError `upstream.*`, or `overloaded`
 */
async function connect(context: Context, call: RecordedCall) {
  const { pick, streams } = context
  if (!streams.tryTake()) throw tooManyStreams()
  const tried: Address[] = []
  let failure: GatewayError | undefined
  for (let address = pick(); address !== undefined; address = pick(tried)) {
    tried.push(address)
    const recorded = recordAttempt(context, call, address)
    try {
      const socket = await address.connect()
      socket.once('close', () => streams.release())
      return { socket, origin: address.origin, headers: call.headers, recorded }
    } catch (error) {
      failure = upstreamError(error)
      recorded?.fail(error, failure.code)
      if (isOfUpstream(failure)) address.failedBy('connect')
    }
  }
  streams.release()
  throw failure
}

/** Of a call at an address, in the record and the trace of the request that it is for. */
function recordAttempt(
  { name, passesState }: Context,
  { recorded, method, path, headers }: RecordedCall,
  { origin }: Address
): TrailAttempt | undefined {
  if (recorded === undefined) return undefined
  const { trail } = recorded
  const attempt = trail.addAttempt(new TrailAttempt(name, origin, recorded))
  if (trail.trace !== undefined) {
    if (trail.trace.isRecorded) attempt.beginSpan(method, path)
    writeContext(headers, trail.trace, passesState, attempt.span?.id)
  }
  return attempt
}
