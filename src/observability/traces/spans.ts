/**
 * The spans of a request that has ended, written from its trail by OpenTelemetry's semantic
 * conventions for HTTP. Queries, header values, bodies, user names and addresses of clients stay
 * out: spans leave the machine.
 */
import type { Trail, TrailAttempt } from '../trail.ts'
import { takeIds } from './random-ids.ts'
import type { TraceContext } from './trace-context.ts'

/** The numbers of OpenTelemetry's SpanKind. */
export const spanKinds = { internal: 1, server: 2, client: 3 } as const

export type Attribute = readonly [name: string, value: string | number]

export interface Span {
  readonly traceId: string
  readonly spanId: string
  readonly parentId: string | undefined
  /** Whether the parent is a span of another process. */
  readonly isParentRemote: boolean
  readonly state: string | undefined
  readonly name: string
  readonly kind: (typeof spanKinds)[keyof typeof spanKinds]
  /** Milliseconds since 1970, with their fraction. */
  readonly startMs: number
  readonly endMs: number
  readonly attributes: readonly Attribute[]
  readonly isError: boolean
}

/** A request whose spans are to be written. */
export interface EndedRequest {
  readonly trail: Trail
  readonly trace: TraceContext
  readonly scheme: string
  /** The route's path with its parameters' names; undefined where no route took the request. */
  readonly template: string | undefined
}

type Inner = Pick<Span, 'spanId' | 'name' | 'kind' | 'attributes' | 'isError'> & {
  /** As of `performance.now()`. */
  readonly startedAt: number
  readonly ms: number
}

const methods = new Set('CONNECT,DELETE,GET,HEAD,OPTIONS,PATCH,POST,PUT,QUERY,TRACE'.split(','))
const otherMethod = '_OTHER'

/** The request's span, and then those of its steps. */
export function spansOf(request: EndedRequest, hasRedis: boolean): Span[] {
  const { trail, trace } = request
  const { traceId, spanId, parentId, state } = trace
  const spans: Span[] = [
    {
      traceId,
      spanId,
      parentId,
      isParentRemote: parentId !== undefined,
      state,
      name: nameOf(request),
      kind: spanKinds.server,
      startMs: trail.at,
      endMs: trail.at + trail.ms,
      attributes: attributesOf(request),
      isError: isError(trail)
    }
  ]
  const add = ({ startedAt, ms, ...span }: Inner) => {
    const startMs = trail.at + startedAt - trail.startedAt
    const endMs = startMs + ms
    spans.push({ ...span, traceId, parentId: spanId, isParentRemote: false, state, startMs, endMs })
  }
  addSteps(trail, hasRedis, add)
  for (const attempt of trail.attempts ?? []) addAttempt(trail, attempt, add)
  return spans
}

/** The number of a request's spans, without writing them. */
export function countSpans({ trail }: EndedRequest): number {
  const { sessionMs, limitsMs, shapeMs, attempts = [] } = trail
  const steps = Number(sessionMs > 0) + Number(limitsMs > 0) + Number(shapeMs > 0)
  return 1 + steps + attempts.reduce((sum, { span }) => sum + Number(span !== undefined), 0)
}

/** Steps that took no time of their own, such as a cached session, are attributes alone. */
function addSteps(trail: Trail, hasRedis: boolean, add: (span: Inner) => void): void {
  const { sessionMs, sessionAt, limitsMs, limitsAt, shapeMs, shapeAt } = trail
  const kind = hasRedis ? spanKinds.client : spanKinds.internal
  const ofStore: Attribute[] = hasRedis ? [['db.system.name', 'redis']] : []
  const step = (name: string, startedAt: number, ms: number) => {
    if (ms === 0) return
    const spanId = takeIds().slice(32)
    const isShape = name === 'shape'
    add({
      spanId,
      name,
      kind: isShape ? spanKinds.internal : kind,
      startedAt,
      ms,
      attributes: isShape ? [] : ofStore,
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
  add: (span: Inner) => void
): void {
  // Without a span of its own the call belongs to another request, which has it.
  if (span === undefined) return
  const failed = failure ?? (status !== undefined && status >= 400 ? String(status) : undefined)
  const { hostname, port, protocol } = new URL(span.url)
  const defaultPort = protocol === 'https:' ? 443 : 80
  const attributes: Attribute[] = [
    ['http.request.method', methods.has(span.method) ? span.method : otherMethod],
    ['url.full', span.url],
    ['server.address', hostname],
    ['server.port', port === '' ? defaultPort : Number(port)],
    ['console_gateway.upstream', upstream],
    ['console_gateway.purpose', purpose]
  ]
  if (status !== undefined) attributes.push(['http.response.status_code', status])
  if (part !== undefined) attributes.push(['console_gateway.part', part])
  if (failed !== undefined) attributes.push(['error.type', failed])
  add({
    spanId: span.spanId,
    name: methods.has(span.method) ? span.method : 'HTTP',
    kind: spanKinds.client,
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

function attributesOf({ trail, scheme, template }: EndedRequest): Attribute[] {
  const { method, status, code, missing } = trail
  const attributes: Attribute[] = [
    ['http.request.method', methods.has(method) ? method : otherMethod],
    ['url.path', trail.path],
    ['url.scheme', scheme],
    ['console_gateway.request_id', trail.requestId],
    ['console_gateway.route', trail.route]
  ]
  const add = (name: string, value: string | number | undefined) => {
    if (value !== undefined && value !== 0) attributes.push([name, value])
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
