/**
 * The spans of a request that has ended, written from its trail by OpenTelemetry's semantic
 * conventions for HTTP. Queries, header values, bodies, user names and addresses of clients stay
 * out: spans leave the machine.
 */
import {
  type Attributes,
  type HrTime,
  SpanKind,
  SpanStatusCode,
  TraceFlags
} from '@opentelemetry/api'
import type { ReadableSpan } from '@opentelemetry/sdk-trace'
import type { Trail, TrailAttempt } from '../trail.ts'
import { takeIds } from './random-ids.ts'
import type { TraceContext } from './context.ts'

/** What all spans of a process have in common. */
export interface SpanOrigin extends Pick<ReadableSpan, 'resource' | 'instrumentationScope'> {
  readonly hasRedis: boolean
}

/** A request whose spans are to be written. */
export interface EndedRequest {
  readonly trail: Trail
  readonly trace: TraceContext
  readonly scheme: string
  /** The route's path with its parameters' names; undefined where no route took the request. */
  readonly template: string | undefined
}

interface Step {
  readonly spanId: string
  readonly name: string
  readonly kind: SpanKind
  readonly attributes: Attributes
  readonly isError: boolean
  /** As of `performance.now()`. */
  readonly startedAt: number
  readonly ms: number
}

const methods = new Set('CONNECT,DELETE,GET,HEAD,OPTIONS,PATCH,POST,PUT,QUERY,TRACE'.split(','))
const otherMethod = '_OTHER'

/** The request's span, and then those of its steps. */
export function spansOf(request: EndedRequest, origin: SpanOrigin): ReadableSpan[] {
  const { trail, trace } = request
  const { spanId, parentId } = trace
  const ownStep: Step = {
    spanId,
    name: nameOf(request),
    kind: SpanKind.SERVER,
    startedAt: trail.startedAt,
    ms: trail.ms,
    attributes: attributesOf(request),
    isError: isError(trail)
  }
  const inner: Step[] = []
  addSteps(trail, origin.hasRedis, step => inner.push(step))
  for (const attempt of trail.attempts ?? []) addAttempt(trail, attempt, step => inner.push(step))
  return [
    spanOf(ownStep, request, origin, parentId),
    ...inner.map(step => spanOf(step, request, origin, spanId))
  ]
}

function spanOf(
  { spanId, name, kind, startedAt, ms, attributes, isError: hasFailed }: Step,
  { trail, trace }: EndedRequest,
  { resource, instrumentationScope }: SpanOrigin,
  parentId: string | undefined
): ReadableSpan {
  const startMs = trail.at + startedAt - trail.startedAt
  const contextOf = (id: string, isRemote = false) => ({
    traceId: trace.traceId,
    spanId: id,
    traceFlags: TraceFlags.SAMPLED,
    isRemote
  })
  const isRemote = spanId === trace.spanId
  const context = { ...contextOf(spanId), ...stateOf(trace.state) }
  return {
    name,
    kind,
    spanContext: () => context,
    ...(parentId !== undefined && { parentSpanContext: contextOf(parentId, isRemote) }),
    startTime: hrTime(startMs),
    endTime: hrTime(startMs + ms),
    duration: hrTime(ms),
    status: { code: hasFailed ? SpanStatusCode.ERROR : SpanStatusCode.UNSET },
    attributes,
    links: [],
    events: [],
    ended: true,
    resource,
    instrumentationScope,
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0
  }
}

/** The exporter writes it as it came, and asks for nothing else. */
function stateOf(state: string | undefined) {
  if (state === undefined) return {}
  const unused = () => {
    throw new Error('the state of a trace is only written')
  }
  return { traceState: { serialize: () => state, get: unused, set: unused, unset: unused } }
}

function hrTime(ms: number): HrTime {
  const seconds = Math.trunc(ms / 1000)
  return [seconds, Math.round((ms - seconds * 1000) * 1e6)]
}

/** Steps that took no time of their own, such as a cached session, are attributes alone. */
function addSteps(trail: Trail, hasRedis: boolean, add: (step: Step) => void): void {
  const { sessionMs, sessionAt, limitsMs, limitsAt, shapeMs, shapeAt } = trail
  const kind = hasRedis ? SpanKind.CLIENT : SpanKind.INTERNAL
  const ofStore: Attributes = hasRedis ? { 'db.system.name': 'redis' } : {}
  const step = (name: string, startedAt: number, ms: number) => {
    if (ms === 0) return
    const spanId = takeIds().slice(32)
    const isShape = name === 'shape'
    add({
      spanId,
      name,
      kind: isShape ? SpanKind.INTERNAL : kind,
      startedAt,
      ms,
      attributes: isShape ? {} : ofStore,
      isError: false
    })
  }
  step('session', sessionAt, sessionMs)
  step('limits', limitsAt, limitsMs)
  step('shape', shapeAt, shapeMs)
}

function addAttempt(
  trail: Trail,
  { upstream, purpose, part, status, failure, startedAt, ms, span }: TrailAttempt,
  add: (step: Step) => void
): void {
  // Without a span of its own the call belongs to another request, which has it.
  if (span === undefined) return
  const failed = failure ?? (status !== undefined && status >= 400 ? String(status) : undefined)
  const { hostname, port, protocol } = new URL(span.url)
  const defaultPort = protocol === 'https:' ? 443 : 80
  const attributes: Attributes = {
    'http.request.method': methods.has(span.method) ? span.method : otherMethod,
    'url.full': span.url,
    'server.address': hostname,
    'server.port': port === '' ? defaultPort : Number(port),
    'console_gateway.upstream': upstream,
    'console_gateway.purpose': purpose
  }
  if (status !== undefined) attributes['http.response.status_code'] = status
  if (part !== undefined) attributes['console_gateway.part'] = part
  if (failed !== undefined) attributes['error.type'] = failed
  add({
    spanId: span.spanId,
    name: methods.has(span.method) ? span.method : 'HTTP',
    kind: SpanKind.CLIENT,
    startedAt,
    ms: ms ?? Math.max(0, trail.startedAt + trail.ms - startedAt),
    attributes,
    isError: failed !== undefined && failed !== 'left'
  })
}

function nameOf({ trail: { method }, template }: EndedRequest): string {
  const name = methods.has(method) ? method : 'HTTP'
  return template === undefined ? name : `${name} ${template}`
}

function attributesOf({ trail, scheme, template }: EndedRequest): Attributes {
  const { method, status, code, missing } = trail
  const attributes: Attributes = {
    'http.request.method': methods.has(method) ? method : otherMethod,
    'url.path': trail.path,
    'url.scheme': scheme,
    'console_gateway.request_id': trail.requestId,
    'console_gateway.route': trail.route
  }
  const add = (name: string, value: string | number | undefined) => {
    if (value !== undefined && value !== 0) attributes[name] = value
  }
  if (!methods.has(method)) add('http.request.method_original', method)
  add('http.route', template)
  // 499 was never sent: the client left.
  if (status !== 499) add('http.response.status_code', status)
  if (isError(trail)) add('error.type', code ?? String(status))
  add('console_gateway.code', code)
  add('console_gateway.limit', trail.limit)
  add('console_gateway.session', trail.sessionFrom)
  add('console_gateway.fallback', trail.isFallback ? 'fixed' : undefined)
  add('console_gateway.queue_ms', trail.queueMs)
  add('console_gateway.missing_parts', missing?.join(','))
  return attributes
}

/** Faults of the client are none of the server's span. */
function isError({ status, code, isCut }: Trail): boolean {
  return status >= 500 || (isCut && code !== undefined)
}
