/** W3C Trace Context (https://www.w3.org/TR/trace-context-2/). */
import { randomUUID } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { ownText } from '../../bounded-map.ts'

export type TraceContext = ReturnType<typeof contextOf>

export interface Sampler {
  /** Of all traces; the same trace gets the same decision everywhere. */
  readonly ratio: number
  readonly followsCaller: boolean
}

/** Ids of zeros and version ff are invalid. */
const traceparentPattern =
  /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})$/
const traceparentLength = 55

const maxStateLength = 512

/** 32 hexadecimal digits, most of them random, and no half of zeros alone. */
const newTraceId = (): string => randomUUID().replaceAll('-', '')
export const newSpanId = (): string => newTraceId().slice(16)

/** Malformed headers count as none. @param isRecording whether spans are exported */
export function contextOf(
  { traceparent, tracestate }: IncomingHttpHeaders,
  sampler: Sampler,
  isRecording: boolean
) {
  const parent = typeof traceparent === 'string' ? readTraceparent(traceparent) : undefined
  const traceId = parent?.traceId ?? newTraceId()
  // Without spans of its own the gateway takes no decision: the caller's is passed on.
  const followed = sampler.followsCaller || !isRecording ? parent?.sampled : undefined
  const sampled = followed ?? isSampled(traceId, sampler.ratio)
  const states = String(tracestate ?? '')
  const isPassed = parent !== undefined && states !== '' && states.length <= maxStateLength
  return {
    traceId,
    spanId: newSpanId(),
    parentId: parent?.spanId,
    /** The flag for upstreams: somebody records this trace. */
    sampled,
    /** Whether the gateway records its own spans of it. */
    isRecorded: sampled && isRecording,
    isLogged: sampled && (isRecording || parent !== undefined),
    /** `tracestate` for upstreams, which read it: the gateway does not. */
    state: isPassed ? states : undefined
  }
}

function isSampled(traceId: string, ratio: number): boolean {
  return ratio === 1 || Number.parseInt(traceId.slice(19), 16) >= (1 - ratio) * 2 ** 52
}

/** Of a later version the members of this one are read. A header that came twice is malformed. */
export function readTraceparent(header: string) {
  const own = ownText(header.slice(0, traceparentLength))
  const rest = header.slice(traceparentLength)
  const [, version, traceId, spanId, flags = ''] = traceparentPattern.exec(own) ?? []
  if (traceId === undefined || spanId === undefined) return undefined
  if (rest !== '' && (version === '00' || !/^-[^,]*$/.test(rest))) return undefined
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

/** Without spans of its own the gateway names the caller's: a span must hang on one that exists. */
export function writeContext(
  headers: Record<string, string | string[]>,
  { traceId, spanId: ownId, parentId, sampled, isRecorded, state }: TraceContext,
  sendsState: boolean,
  spanId = isRecorded ? ownId : (parentId ?? ownId)
): void {
  headers['traceparent'] = `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`
  if (sendsState && state !== undefined) headers['tracestate'] = state
  else if (headers['tracestate'] !== undefined) delete headers['tracestate']
}
