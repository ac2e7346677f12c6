/**
 * W3C Trace Context: the trace that a request belongs to, read from the caller's headers and
 * written for upstreams (https://www.w3.org/TR/trace-context/).
 */
import type { IncomingHttpHeaders } from 'node:http'
import { ownText } from '../../bounded-map.ts'
import { takeIds } from './random-ids.ts'
import type { Sampler } from './sampler.ts'

export interface TraceContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string
  /** Of the request's own span: 16 hexadecimal digits. */
  readonly spanId: string
  /** Of the caller's span. */
  readonly parentId: string | undefined
  /** The flag for upstreams: somebody records this trace. */
  readonly sampled: boolean
  /** Whether the gateway records its own spans of it. */
  readonly isRecorded: boolean
  /** Whether log lines have its id: somebody records it, the gateway or its caller. */
  readonly isLogged: boolean
  /** `tracestate` for upstreams. */
  readonly state: string | undefined
}

/** The caller's part of a context. */
interface Parent {
  readonly traceId: string
  readonly spanId: string
  readonly sampled: boolean
}

export interface ContextOptions {
  readonly sampler: Sampler
  /** Whether spans are exported. */
  readonly isRecording: boolean
}

const traceparentPattern = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/
const traceparentLength = 55
const noTraceId = '0'.repeat(32)
const noSpanId = '0'.repeat(16)

const maxMembers = 32
/** With empty members, which are allowed and dropped. */
const maxListed = 2 * maxMembers
const maxStateLength = 512
/** Longer members give way first. */
const longMember = 128
const simpleKey = /^[a-z][a-z0-9_*/-]{0,255}$/
const tenantKey = /^[a-z0-9][a-z0-9_*/-]{0,240}@[a-z][a-z0-9_*/-]{0,13}$/
const memberValue = /^[ !-+\--<>-~]{0,255}[!-+\--<>-~]$/

/**
 * The context of a request. Malformed headers count as none, and a new trace begins.
 * perf: 0.16 µs for a new trace, 1.0 µs for a caller's with `tracestate`.
 */
export function contextOf(headers: IncomingHttpHeaders, options: ContextOptions): TraceContext {
  const { sampler, isRecording } = options
  const { traceparent } = headers
  const parent = typeof traceparent === 'string' ? readTraceparent(traceparent) : undefined
  const ids = takeIds()
  const spanId = ids.slice(32)
  if (parent === undefined) {
    const traceId = ids.slice(0, 32)
    const sampled = sampler(traceId, undefined)
    return {
      traceId,
      spanId,
      parentId: undefined,
      sampled,
      isRecorded: sampled && isRecording,
      isLogged: sampled && isRecording,
      state: undefined
    }
  }
  const { tracestate } = headers
  // Without spans of its own the gateway takes no decision: the caller's is passed on.
  const sampled = isRecording ? sampler(parent.traceId, parent.sampled) : parent.sampled
  return {
    traceId: parent.traceId,
    spanId,
    parentId: parent.spanId,
    sampled,
    isRecorded: sampled && isRecording,
    isLogged: sampled,
    state: tracestate === undefined ? undefined : readTracestate(String(tracestate))
  }
}

/**
 * Reads `traceparent` strictly: lower case, no id of zeros. Of a later version the members of this
 * one are read. A header that was sent twice is joined with a comma, and is malformed.
 */
export function readTraceparent(header: string): Parent | undefined {
  const isLonger = header.length > traceparentLength
  const [, version, traceId = noTraceId, spanId = noSpanId, flags = ''] =
    traceparentPattern.exec(isLonger ? ownText(header.slice(0, traceparentLength)) : header) ?? []
  if (version === undefined || version === 'ff') return undefined
  if (isLonger && (version === '00' || header[traceparentLength] !== '-' || header.includes(','))) {
    return undefined
  }
  if (traceId === noTraceId || spanId === noSpanId) return undefined
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

/** @returns a valid `tracestate` of at most 512 characters; undefined where nothing may pass */
export function readTracestate(header: string): string | undefined {
  if (!/^[\t -~]*$/.test(header)) return undefined
  const listed = header.split(',', maxListed + 1)
  if (listed.length > maxListed) return undefined
  const members = listed.map(member => member.trim()).filter(Boolean)
  if (members.length === 0 || members.length > maxMembers) return undefined
  const keys = new Set<string>()
  for (const member of members) {
    const sign = member.indexOf('=')
    const key = member.slice(0, Math.max(0, sign))
    const isKey = simpleKey.test(key) || tenantKey.test(key)
    if (!isKey || keys.has(key) || !memberValue.test(member.slice(sign + 1))) return undefined
    keys.add(key)
  }
  const state = shortened(members).join(',')
  return state === '' ? undefined : ownText(state)
}

/** Drops long members, then the last ones, until the list may be passed on. */
function shortened(members: readonly string[]): readonly string[] {
  let length = members.reduce((sum, member) => sum + member.length + 1, -1)
  if (length <= maxStateLength) return members
  const kept = [...members]
  for (const isFirstToGo of [(member: string) => member.length > longMember, () => true]) {
    for (let index = kept.length - 1; index >= 0 && length > maxStateLength; index--) {
      const member = kept[index] as string
      if (!isFirstToGo(member)) continue
      kept.splice(index, 1)
      length -= member.length + 1
    }
  }
  return kept
}

/**
 * Writes the context into the headers for an upstream. Without spans of its own the gateway names
 * the caller's span, so that the upstream's span hangs on one that exists.
 * @param spanId of the call's own span, where it has one
 */
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
