/**
 * Reads on routes with `cache` or `fallback`: answered by the user's own copy where it is fresh, or
 * where the upstream has failed, else by a fixed response.
 */
import { jsonType } from '../shaping/success.ts'
import type { FallbackConfig } from '../config/schema/copies.ts'
import { GatewayError } from '../errors.ts'
import type { Done, UpstreamRequest } from '../proxy/call.ts'
import { type Freshness, freshnessOf, variesBy, type Wishes, wishesOf } from '../proxy/freshness.ts'
import { CollectedBody, type UpstreamResponse } from '../proxy/response.ts'
import type { Live } from '../session/evaluate.ts'
import { copyKey, readsWithout } from './copy-key.ts'
import { ProxiedExchange } from './endpoints/exchange.ts'
import { sendBody } from './endpoints/send-body.ts'
import { liveOf } from './hooks/session.ts'
import type { Copy, ResponseCopies } from './response-copies.ts'
import type { Dispatch } from './shared-calls.ts'

export interface KeepOptions {
  /** Of what the route reads; what two scopes answer is never the same. */
  readonly scope: string
  readonly upstreamName: string
  /** The longest use of a copy; undefined without a cache. */
  readonly cacheMs: number | undefined
  readonly fallback: FallbackConfig | undefined
  /** Whether only what is made of the response tells that it is good. */
  readonly isShaped: boolean
  readonly store: ResponseCopies
  readonly onUsed: (use: 'fresh' | 'validated' | 'stale' | 'fixed') => void
}

/** Headers of requests that want something else than the whole response. */
const conditional = [
  'range',
  'if-range',
  'if-match',
  'if-none-match',
  'if-modified-since',
  'if-unmodified-since'
]
/** Headers of the kept body, which a 304 does not replace. */
const ofBody: ReadonlySet<string> = new Set([
  'content-length',
  'content-encoding',
  'content-type',
  'content-range',
  'etag'
])
const failureStatuses: ReadonlySet<number> = new Set([502, 503, 504])

export function keepReads(dispatch: Dispatch, options: KeepOptions): Dispatch {
  return function dispatchKept(request, exchange, done) {
    const { method, body = null } = request
    const isRead = method === 'GET' || (method === 'HEAD' && options.fallback !== undefined)
    if (!isRead || body !== null || !(exchange instanceof ProxiedExchange)) {
      return dispatch(request, exchange, done)
    }
    const read = new KeptRead(dispatch, options, exchange, done)
    if (exchange.isHead) read.beginHead()
    else read.begin()
  }
}

/** Upstream and path, without the query. */
export function targetOf(upstreamName: string, path: string): string {
  const mark = path.indexOf('?')
  return `${upstreamName} ${mark < 0 ? path : path.slice(0, mark)}`
}

/** One read, with the copy that its user has. */
class KeptRead {
  readonly #dispatch: Dispatch
  readonly #options: KeepOptions
  readonly #exchange: ProxiedExchange
  readonly #done: Done
  readonly #live: Live | undefined
  readonly #key: string
  readonly #wishes: Wishes
  readonly #askedAt = performance.now()
  #copy: Copy | undefined
  #isValidating = false

  constructor(dispatch: Dispatch, options: KeepOptions, exchange: ProxiedExchange, done: Done) {
    this.#dispatch = dispatch
    this.#options = options
    this.#exchange = exchange
    this.#done = done
    const { headers, path, request } = exchange
    const { scope, store, cacheMs, fallback } = options
    const isKept = cacheMs !== undefined || fallback?.lastGood === true
    const isPlain = isKept && !conditional.some(name => headers[name] !== undefined)
    this.#live = isPlain ? liveOf(request) : undefined
    this.#key =
      this.#live === undefined
        ? ''
        : copyKey(scope, this.#live, { method: 'GET', path, headers }, readsWithout)
    this.#wishes = wishesOf(headers)
    this.#copy = this.#live && store.get(this.#key)
  }

  begin(): void {
    const copy = this.#copy
    if (copy !== undefined && this.#options.cacheMs !== undefined) {
      const left = this.#freshFor(copy)
      if (left > 0) return this.#sendCopy(copy, 'fresh', `hit; ttl=${Math.floor(left / 1000)}`)
      this.#isValidating = conditionOf(copy) !== undefined
    }
    this.#ask(this.#isValidating ? conditionOf(copy) : undefined)
  }

  /** Its response is no copy, and a copy only stands in for a failure. */
  beginHead(): void {
    this.#dispatch(this.#exchange, this.#exchange, (error, response) => {
      if (hasFailed(error, response) && this.#fallBack(response)) return
      if (response === undefined) this.#done(error)
      else this.#done(null, response)
    })
  }

  #ask(condition: Record<string, string> | undefined): void {
    const { method, path, headers } = this.#exchange
    const request: UpstreamRequest = { method, path, headers: { ...headers, ...condition } }
    this.#dispatch(request, this.#exchange, (error, response) => {
      if (hasFailed(error, response) && this.#fallBack(response)) return
      if (response === undefined) return this.#done(error)
      if (this.#isValidating && response.status === 304) return this.#validated(response)
      this.#send(response)
    })
  }

  /** @returns whether something was sent in the place of the failure */
  #fallBack(response: UpstreamResponse | undefined): boolean {
    const { fallback } = this.#options
    const { reply, isGone } = this.#exchange
    if (fallback === undefined || isGone || reply.sent) return false
    const copy = this.#copy
    const mayUse =
      fallback.lastGood &&
      copy?.freshness.mayBeStale === true &&
      performance.now() - copy.receivedAt < fallback.maxAge
    if (mayUse) {
      response?.body.destroy()
      this.#sendCopy(copy, 'stale', 'hit; detail=stale-on-error')
      return true
    }
    const body = fixedBodyOf(fallback, liveOf(this.#exchange.request)?.session.identity.roles ?? [])
    if (body === undefined) return false
    response?.body.destroy()
    this.#use('fixed')
    reply
      .code(fallback.status)
      .header('content-type', jsonType)
      .header('cache-status', 'console-gateway; fwd=miss; detail=fixed')
    const text = JSON.stringify(body)
    if (this.#exchange.isHead) reply.header('content-length', Buffer.byteLength(text)).send()
    else sendBody(reply, text)
    return true
  }

  /** The copy is still right: the headers of the 304 replace its own (RFC 9111 §4.3.4). */
  #validated({ headers }: UpstreamResponse): void {
    const copy = this.#copy
    const isOther =
      headers['etag'] !== undefined &&
      copy?.headers['etag'] !== undefined &&
      weak(headers['etag']) !== weak(copy.headers['etag'])
    if (copy === undefined || isOther) {
      this.#options.store.drop(this.#key)
      this.#isValidating = false
      return this.#ask(undefined)
    }
    const newer = Object.entries(headers).filter(
      ([name, value]) => value !== undefined && !ofBody.has(name)
    )
    const updated = this.#copyOf({ ...copy.headers, ...Object.fromEntries(newer) }, copy.bytes)
    this.#keep(updated)
    this.#sendCopy(updated, 'validated', 'fwd=stale; fwd-status=304')
  }

  #send(response: UpstreamResponse): void {
    const { status, headers, body } = response
    if (this.#live === undefined) return this.#done(null, response)
    const copy =
      status === 200 && body instanceof CollectedBody
        ? this.#copyOf(headers, body.bytes)
        : undefined
    const isKept = copy !== undefined && this.#mayKeep(copy)
    if (isKept) this.#keep(copy)
    // An older copy is not what the user may see now; a fault of the upstream says nothing of that.
    else if (status < 500) this.#options.store.drop(this.#key)
    if (this.#options.cacheMs === undefined) return this.#done(null, response)
    const why = this.#copy === undefined ? 'uri-miss' : 'stale'
    const mark = `fwd=${why}; fwd-status=${status}${isKept ? '; stored' : ''}`
    this.#done(null, { status, body, headers: marked(headers, mark) })
  }

  #mayKeep({ headers, freshness }: Copy): boolean {
    return (
      freshness.mayStore &&
      this.#wishes.mayStore &&
      headers['set-cookie'] === undefined &&
      // Two requests that differ in these have the same key.
      !variesBy(headers, readsWithout)
    )
  }

  #copyOf(headers: UpstreamResponse['headers'], bytes: Buffer): Copy {
    const { upstreamName } = this.#options
    const now = performance.now()
    return {
      headers,
      bytes,
      freshness: freshnessOf(headers, Date.now(), now - this.#askedAt),
      receivedAt: now,
      target: targetOf(upstreamName, this.#exchange.path)
    }
  }

  #keep(copy: Copy): void {
    const { store, isShaped } = this.#options
    const { request, reply } = this.#exchange
    const live = this.#live
    if (live === undefined) return
    const keep = () => store.set(this.#key, live, this.#askedAt, copy)
    if (!isShaped) return keep()
    // Its status may be 200, and its body an error: that is known when it has been sent.
    request.onResponseClose.push(() => {
      const { errorCode, ownErrorStatus } = request
      if (ownErrorStatus !== undefined && ownErrorStatus < 500) store.drop(this.#key)
      else if (reply.raw.writableFinished && errorCode === undefined) keep()
    })
  }

  #sendCopy(copy: Copy, use: 'fresh' | 'validated' | 'stale', mark: string): void {
    this.#use(use)
    this.#exchange.reply.header('age', String(Math.floor(ageOf(copy) / 1000)))
    this.#done(null, {
      status: 200,
      headers: marked(copy.headers, mark),
      body: new CollectedBody(copy.bytes)
    })
  }

  #use(use: Parameters<KeepOptions['onUsed']>[0]): void {
    this.#exchange.trail.copy = use
    this.#options.onUsed(use)
  }

  /** Milliseconds in which a copy may still be used without asking; 0 if it may not. */
  #freshFor(copy: Copy): number {
    const { freshness, receivedAt } = copy
    const { mustValidate, maxAgeMs, minFreshMs } = this.#wishes
    if (freshness.mustValidate || mustValidate) return 0
    const age = ageOf(copy)
    const keptFor = performance.now() - receivedAt
    const left = Math.min(
      freshness.lifetimeMs - age,
      (this.#options.cacheMs ?? 0) - keptFor,
      maxAgeMs - age
    )
    return left >= minFreshMs ? Math.max(0, left) : 0
  }
}

function ageOf({ freshness, receivedAt }: { freshness: Freshness; receivedAt: number }): number {
  return freshness.initialAgeMs + performance.now() - receivedAt
}

function hasFailed(error: GatewayError | null, response: UpstreamResponse | undefined): boolean {
  if (response !== undefined) return failureStatuses.has(response.status)
  return error !== null && error.code.startsWith('upstream.') && failureStatuses.has(error.status)
}

/** The condition that validates a copy (RFC 9110 §13.1); undefined where it has no validator. */
function conditionOf(copy: Copy | undefined): Record<string, string> | undefined {
  const { etag, 'last-modified': modified } = copy?.headers ?? {}
  if (typeof etag !== 'string' && typeof modified !== 'string') return undefined
  return {
    ...(typeof etag === 'string' && { 'if-none-match': etag }),
    ...(typeof modified === 'string' && { 'if-modified-since': modified })
  }
}

function weak(tag: string | string[]): string {
  return String(tag).replace(/^W\//, '')
}

/** Adds to the marks of caches behind this one (RFC 9211 §2). */
function marked(headers: UpstreamResponse['headers'], mark: string): UpstreamResponse['headers'] {
  const before = headers['cache-status']
  const status = `console-gateway; ${mark}`
  return {
    ...headers,
    'cache-status': before === undefined ? status : `${String(before)}, ${status}`
  }
}

/** The body of the first role that the user has. */
function fixedBodyOf({ body, byRole = {} }: FallbackConfig, roles: readonly string[]): unknown {
  const role = Object.keys(byRole).find(name => roles.includes(name))
  return role === undefined ? body : byRole[role]
}
