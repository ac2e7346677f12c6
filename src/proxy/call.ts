/**
 * One request to an upstream: its attempts, and the one response that it gets. A request is sent
 * once, with two exceptions. One that found no connection may go to another address whatever it
 * is, since nothing was written. One that is safe and has no body is asked again, once, where its
 * connection broke and nothing has gone to the client.
 */
import { Readable } from 'node:stream'
import type { UpstreamConfig } from '../config/schema/routes.ts'
import { GatewayError, isOfUpstream } from '../errors/errors.ts'
import { safeMethods } from '../observability/failures.ts'
import { writeContext } from '../observability/traces/context.ts'
import { TrailAttempt } from '../observability/trail.ts'
import { type Address, createPick, type OnAddress } from './address.ts'
import { upstreamError } from './failures.ts'
import { type Call, type Failed, Receiver } from './receiver.ts'
import { discard, failureStatuses, isEventStream, type UpstreamResponse } from './response.ts'
import { overloaded, Slots } from '../limits/slots.ts'

/** What is recorded of one. */
export type RecordedCall = Pick<Call, 'method' | 'path' | 'headers' | 'recorded'>

export interface UpstreamEvents {
  readonly onAddress: OnAddress
  /** A request goes to an address once more, or elsewhere since it found no connection. */
  readonly onRetry: (kind: 'again' | 'elsewhere') => void
  /** A request has waited for a connection, which it got or gave up. */
  readonly onWaited: (ms: number) => void
}

export type CallContext = ReturnType<typeof createCallContext>

/** Shared by all calls of one upstream. @param name in `routes.yaml` */
export function createCallContext(
  name: string,
  config: UpstreamConfig,
  addresses: readonly Address[],
  { onWaited, onRetry }: UpstreamEvents
) {
  const { connections, queue } = config
  const slotsOf = (slots: number) => new Slots(slots, queue, onWaited)
  return {
    name,
    /** Whether it may get `tracestate`: with a list of headers only if that is one of them. */
    passesState: config.passHeaders?.includes('tracestate') ?? true,
    pick: createPick(addresses),
    /** Of all requests but event streams. */
    slots: slotsOf(connections),
    /** Of event streams and WebSockets, which may never end: they wait for no one. */
    streams: slotsOf(connections * 5),
    onRetry
  }
}

/** A call on its way. */
interface Run {
  readonly call: Call
  /** As of `performance.now()`. */
  readonly startedAt: number
  /** They gave no connection. */
  readonly unreached: Address[]
  mayRepeat: boolean
}

/** @throws GatewayError `upstream.*`, `overloaded`, or the reason of the signal */
export async function sendCall(context: CallContext, call: Call): Promise<UpstreamResponse> {
  const { pick, slots, streams } = context
  let place = asksForEvents(call) ? takeStream(context) : slots
  if (place === slots && !slots.tryTake()) await waitForSlot(slots, call)
  const startedAt = performance.now()
  const mayRepeat = safeMethods.has(call.method) && (call.body ?? null) === null
  const run: Run = { call, startedAt, unreached: [], mayRepeat }
  let address = pick()
  let failure: GatewayError | undefined
  while (address !== undefined) {
    const receiver = new Receiver(call, startedAt, address, recordAttempt(context, call, address))
    receiver.dispatch()
    const outcome = await receiver.outcome
    if ('status' in outcome) {
      if (failureStatuses.has(outcome.status)) address.failedBy('request')
      else address.succeeded()
      const isLate =
        place === slots && outcome.body instanceof Readable && isEventStream(outcome.headers)
      if (isLate && streams.tryTake()) {
        // Events that were not asked for as such leave their slot to others.
        slots.release()
        place = streams
      }
      receiver.releaseAfter(place)
      if (!isLate || place === streams) return outcome
      discard(outcome)
      throw tooManyStreams()
    }
    failure = upstreamError(outcome.error)
    address = afterFailure(context, run, receiver, { failure, ...outcome })
    if (address === undefined) receiver.releaseAfter(place)
  }
  throw failure
}

/** @throws as `sendCall` does */
async function waitForSlot(slots: Slots, { signal, recorded }: Call): Promise<void> {
  const askedAt = performance.now()
  await slots.take(signal)
  if (recorded !== undefined) recorded.trail.queueMs += performance.now() - askedAt
}

/** @throws GatewayError `overloaded` */
export function takeStream({ streams }: CallContext): Slots {
  if (streams.tryTake()) return streams
  throw tooManyStreams()
}

/** As every EventSource does. */
function asksForEvents({ headers: { accept } }: Call): boolean {
  return typeof accept === 'string' && accept.startsWith('text/event-stream')
}

function tooManyStreams(): GatewayError {
  return overloaded('too many event streams and WebSockets of the upstream are open', 'streams')
}

/** @returns the address for another attempt, if there may be one */
function afterFailure(
  { pick, onRetry }: CallContext,
  run: Run,
  { address, recorded, isOver }: Receiver,
  { error, failure, isUnsent }: Failed & { readonly failure: GatewayError }
): Address | undefined {
  const { call, startedAt, unreached } = run
  const { code } = failure
  const hasLeft = call.signal?.aborted === true
  recorded?.fail(error, hasLeft ? 'left' : code)
  // What the client did says nothing of an address.
  if (hasLeft) return undefined
  const isUnreached = isUnsent && isOfUpstream(failure)
  const isTimeout = code.startsWith('upstream.timeout') && !(call.body instanceof Readable)
  if (isUnreached) address.failedBy('connect')
  else if (isTimeout || isBroken(code)) address.failedBy('request')
  if (!isOver) return undefined
  if (isUnreached && performance.now() - startedAt < call.timeoutMs) {
    unreached.push(address)
    const other = pick(unreached)
    if (other !== undefined) {
      onRetry('elsewhere')
      return other
    }
  }
  if (!run.mayRepeat || !isBroken(code)) return undefined
  run.mayRepeat = false
  onRetry('again')
  return pick([...unreached, address]) ?? address
}

/** Whether the back-end broke the exchange; a time-out is another matter. */
function isBroken(code: GatewayError['code']): boolean {
  return code === 'upstream.reset' || code === 'upstream.refused'
}

/** Of one at an address, in the record and the trace of the request that it is for. */
export function recordAttempt(
  { name, passesState }: CallContext,
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
