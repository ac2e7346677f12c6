/**
 * The spans of a request by OpenTelemetry's semantic conventions for HTTP. Queries, header values,
 * bodies, user names and addresses of clients stay out: spans leave the machine.
 */
import {
  type Attributes,
  createTraceState,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace as traces,
  TraceFlags
} from '@opentelemetry/api'
import type { Resource } from '@opentelemetry/resources'
import { AlwaysOnSampler, type SpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import packageJson from '../../../package.json' with { type: 'json' }
import type { Trail } from '../trail.ts'
import { newSpanId, type TraceContext } from './context.ts'

export interface EndedRequest {
  readonly trail: Trail
  readonly trace: TraceContext
  readonly scheme: string
  /** The route's path with its parameters' names; undefined where no route took the request. */
  readonly template: string | undefined
}

interface Step {
  readonly id: string
  readonly name: string
  readonly kind: SpanKind
  readonly attributes: Attributes
  readonly isError?: boolean
  readonly startedAt: number
  readonly ms: number
}

const methods = new Set('CONNECT,DELETE,GET,HEAD,OPTIONS,PATCH,POST,PUT,QUERY,TRACE'.split(','))
const otherMethod = '_OTHER'

/** @param hasRedis whether the steps of the store are asked of Redis */
export function createSpans(processor: SpanProcessor, resource: Resource, hasRedis: boolean) {
  // The ids are known: back-ends have got them.
  let next = { traceId: '', spanId: '' }
  const tracer = new TracerProvider({
    resource,
    sampler: new AlwaysOnSampler(),
    spanProcessors: [processor],
    idGenerator: { generateTraceId: () => next.traceId, generateSpanId: () => next.spanId }
  }).getTracer('console-gateway', packageJson.version)

  function write(step: Step, { trail, trace }: EndedRequest): void {
    const { id: spanId, name, kind, attributes, startedAt, ms } = step
    const { traceId, state } = trace
    const isOwn = spanId === trace.spanId
    const parentId = isOwn ? trace.parentId : trace.spanId
    const parent = parentId !== undefined && {
      traceId,
      spanId: parentId,
      traceFlags: TraceFlags.SAMPLED,
      isRemote: isOwn,
      ...(state !== undefined && { traceState: createTraceState(state) })
    }
    const context = parent ? traces.setSpanContext(ROOT_CONTEXT, parent) : ROOT_CONTEXT
    const startTime = trail.at + startedAt - trail.startedAt
    next = { traceId, spanId }
    const span = tracer.startSpan(name, { kind, attributes, startTime }, context)
    if (step.isError === true) span.setStatus({ code: SpanStatusCode.ERROR })
    span.end(startTime + ms)
  }

  return (request: EndedRequest): void => {
    const { trail, trace, template } = request
    const own: Step = {
      id: trace.spanId,
      name: nameOf(trail.method, template),
      kind: SpanKind.SERVER,
      startedAt: trail.startedAt,
      ms: trail.ms,
      attributes: attributesOf(request),
      isError: isError(trail)
    }
    const steps = [own, ...waitsOf(trail, hasRedis), ...attemptsOf(trail)]
    for (const step of steps) write(step, request)
  }
}

/** Steps that took no time of their own, such as a cached session, are attributes alone. */
function waitsOf(trail: Trail, hasRedis: boolean): Step[] {
  const { sessionMs, sessionAt, limitsMs, limitsAt, shapeMs, shapeAt } = trail
  const atStore = hasRedis
    ? { kind: SpanKind.CLIENT, attributes: { 'db.system.name': 'redis' } }
    : { kind: SpanKind.INTERNAL, attributes: {} }
  const steps: Array<Omit<Step, 'id'>> = [
    { name: 'session', startedAt: sessionAt, ms: sessionMs, ...atStore },
    { name: 'limits', startedAt: limitsAt, ms: limitsMs, ...atStore },
    { name: 'shape', startedAt: shapeAt, ms: shapeMs, kind: SpanKind.INTERNAL, attributes: {} }
  ]
  return steps.filter(({ ms }) => ms > 0).map(step => ({ ...step, id: newSpanId() }))
}

/** Without a span of its own a call belongs to another request, which has it. */
function attemptsOf({ attempts = [], startedAt: beganAt, ms: totalMs }: Trail): Step[] {
  return attempts.flatMap(({ span, startedAt, ms, ...attempt }) => {
    if (span === undefined) return []
    const { upstream, purpose, part, status, failure } = attempt
    const failed = failure ?? (status !== undefined && status >= 400 ? String(status) : undefined)
    const { hostname, port, protocol } = new URL(span.url)
    const defaultPort = protocol === 'https:' ? 443 : 80
    const attributes = {
      'http.request.method': methods.has(span.method) ? span.method : otherMethod,
      'url.full': span.url,
      'server.address': hostname,
      'server.port': port === '' ? defaultPort : Number(port),
      'console_gateway.upstream': upstream,
      'console_gateway.purpose': purpose,
      'http.response.status_code': status,
      'console_gateway.part': part,
      'error.type': failed
    }
    return {
      id: span.id,
      name: nameOf(span.method),
      kind: SpanKind.CLIENT,
      startedAt,
      ms: ms ?? Math.max(0, beganAt + totalMs - startedAt),
      attributes,
      isError: failed !== undefined && failed !== 'left'
    }
  })
}

function nameOf(method: string, template?: string): string {
  const name = methods.has(method) ? method : 'HTTP'
  return template === undefined ? name : `${name} ${template}`
}

function attributesOf({ trail, scheme, template }: EndedRequest): Attributes {
  const { method, status, code, queueMs } = trail
  return {
    'http.request.method': methods.has(method) ? method : otherMethod,
    'http.request.method_original': methods.has(method) ? undefined : method,
    'url.path': trail.path,
    'url.scheme': scheme,
    'http.route': template,
    // 499 was never sent: the client left.
    'http.response.status_code': status === 499 ? undefined : status,
    'error.type': isError(trail) ? (code ?? String(status)) : undefined,
    'console_gateway.request_id': trail.requestId,
    'console_gateway.route': trail.route,
    'console_gateway.code': code,
    'console_gateway.limit': trail.limit,
    'console_gateway.session': trail.sessionFrom,
    'console_gateway.fallback': trail.isFallback ? 'fixed' : undefined,
    'console_gateway.queue_ms': queueMs === 0 ? undefined : queueMs,
    'console_gateway.missing_parts': trail.missing?.join(',')
  }
}

/** Faults of the client are none of the server's span. */
function isError({ outcome, code, isCut }: Trail): boolean {
  return outcome >= 500 || (isCut && code !== undefined)
}
