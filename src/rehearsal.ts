/** The real app of a config without sockets: it decides as a running gateway does, and upstreams only note what they are asked. */
import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { buildApp } from './app.ts'
import type { Config } from './config/load.ts'
import type { UpstreamConfig } from './config/routes.ts'
import { createDrift } from './contract/drift.ts'
import { sessionCookie } from './hooks/session.ts'
import { rememberingSigner } from './hooks/signer.ts'
import { type Counters, createMemoryCounters } from './limits/counters.ts'
import { createLeases, type Leases } from './limits/leases.ts'
import { createMemoryLockouts, type Lockouts } from './limits/lockout.ts'
import { createMemoryTally } from './limits/memory-tally.ts'
import { createMetrics } from './metrics.ts'
import { CollectedBody } from './proxy/answer.ts'
import { createExpressions } from './proxy/expressions.ts'
import { exchangeKey, type Upstream } from './proxy/upstream.ts'
import { createLogger, type GenerationServices } from './services.ts'
import { createMemoryStore } from './session/memory-store.ts'
import type { Credential, Identity } from './session/record.ts'
import { createSeal } from './session/seal.ts'
import { createSessions } from './session/session.ts'

export interface Wish {
  readonly method: string
  /** With the query. */
  readonly url: string
  readonly address: string
  /** Who is signed in; nobody without it. */
  readonly identity?: Identity
  readonly credential?: Credential
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON. */
  readonly body?: unknown
  /** The same again, so often in all; what is told is of the last. */
  readonly times?: number
  /** What upstreams answer, as JSON. */
  readonly answer?: unknown
}

/** What an upstream was asked for. */
export interface Asked {
  readonly upstream: string
  readonly method: string
  /** Below the upstream's own path. */
  readonly path: string
  readonly headers: Readonly<Record<string, unknown>>
  readonly timeoutMs: number | undefined
  /** Not the route's own upstream, but one of its parts. */
  readonly isPart: boolean
}

export interface Rehearsed {
  readonly status: number
  readonly headers: Readonly<Record<string, unknown>>
  /** Of the envelope, where the answer is an error. */
  readonly code: string | undefined
  readonly message: string | undefined
  /** By the name in config; undefined where nothing took the request. */
  readonly route: string | undefined
  readonly asked: readonly Asked[]
}

export interface Rehearsal {
  /** Each time as if it were the first: nothing counted, nobody else signed in. */
  readonly ask: (wish: Wish) => Promise<Rehearsed>
  readonly close: () => Promise<void>
}

/** @throws what building the app throws */
export async function createRehearsal (config: Config): Promise<Rehearsal> {
  const { gateway } = config
  const store = createMemoryStore()
  const expressions = createExpressions()
  const secrets = [randomBytes(32).toString('base64url')]
  const signer = rememberingSigner(secrets)
  const cookie = sessionCookie(gateway.session.cookie)
  let counted = createMemoryCounters()
  const counters: Counters = { hit: (key, windowMs) => counted.hit(key, windowMs), giveBack: key => counted.giveBack(key), close: () => counted.close() }
  let leased = createLeases({ tally: createMemoryTally() })
  const leases: Leases = { peek: (rules, keys) => leased.peek(rules, keys), ask: (rules, keys) => leased.ask(rules, keys), look: (rules, keys) => leased.look(rules, keys), close: () => leased.close() }
  let locked = createMemoryLockouts()
  const lockouts: Lockouts = { attempt: (...given) => locked.attempt(...given), look: (...given) => locked.look(...given), giveBack: (...given) => locked.giveBack(...given), list: () => locked.list(), lift: keys => locked.lift(keys), close: () => locked.close() }
  const sessions = createSessions({ store, seal: createSeal(secrets), lifeTimes: gateway.session, perUser: gateway.session.perUser, boundMs: gateway.session.staleness })
  const metrics = createMetrics()
  let route: string | undefined
  // The line of a request says which route took it.
  const log = createLogger({ level: 'info', format: 'json' }, { write: line => {
    const told = JSON.parse(line) as { msg?: string, route?: string }
    if (told.msg === 'request') ({ route } = told)
  } })
  let asked: Asked[] = []
  let answer: unknown
  let cases = 0
  const parts: GenerationServices = {
    log,
    sessions,
    secrets,
    counters,
    leases,
    lockouts,
    inFlight: new Map(),
    expressions,
    metrics,
    drift: createDrift({ log: { info: () => {}, warn: () => {} }, metrics }),
    running: { begin: () => () => {} },
    upstream: (name, upstreamConfig) => noting(upstreamConfig, told => {
      asked.push({ upstream: name, ...told })
      return JSON.stringify(answer ?? {})
    }),
    sources: [{ name: 'rehearsal', verify: async () => ({ vouched: false }) }]
  }
  const app = await buildApp(config, parts)

  async function forget (): Promise<void> {
    counted.close()
    await leased.close()
    locked.close()
  }

  return {
    ask: async ({ method, url, address, identity, credential, headers = {}, body, times = 1, answer: given }) => {
      await forget()
      counted = createMemoryCounters()
      leased = createLeases({ tally: createMemoryTally() })
      locked = createMemoryLockouts()
      answer = given
      const id = `rehearsal-${++cases}`
      if (identity !== undefined) await sessions.open(id, { identity, ...(credential !== undefined && { credential }), source: 'rehearsal', remembered: false, address: '', agent: '' })
      let last: Awaited<ReturnType<typeof app.inject>> | undefined
      for (let n = 0; n < times; n++) {
        asked = []
        route = undefined
        last = await app.inject({
          method: method as 'GET',
          url,
          remoteAddress: address,
          headers: { host: gateway.server.hosts[0] ?? 'localhost', ...(identity !== undefined && { cookie: `${cookie.name}=${encodeURIComponent(signer.sign(id))}` }), ...headers },
          ...(body !== undefined && { payload: body as object })
        })
      }
      if (last === undefined) throw new RangeError('nothing was asked')
      return { status: last.statusCode, headers: last.headers, ...failureOf(last.body), route, asked }
    },
    close: async () => {
      await app.close()
      await forget()
      await store.close()
      await expressions.close()
    }
  }
}

function failureOf (body: string): { code: string | undefined, message: string | undefined } {
  try {
    const { errorCode, errorMessage } = JSON.parse(body) as { errorCode?: unknown, errorMessage?: unknown }
    return { code: typeof errorCode === 'string' ? errorCode : undefined, message: typeof errorMessage === 'string' ? errorMessage : undefined }
  } catch {
    return { code: undefined, message: undefined }
  }
}

/** An upstream without sockets. */
function noting (config: UpstreamConfig, onAsked: (asked: Omit<Asked, 'upstream'>) => string): Upstream {
  const { origin, pathname } = new URL(config.url)
  const base = pathname.replace(/\/$/, '')
  const fields = (bytes: Buffer) => ({ 'content-type': 'application/json', 'content-length': String(bytes.length) })
  return {
    config,
    origin,
    base,
    ask: ({ method, path, headers }, { timeoutMs }, done) => {
      const bytes = Buffer.from(onAsked({ method, path: path.slice(base.length), headers: { ...headers as object }, timeoutMs, isPart: false }))
      done(null, { status: 200, headers: fields(bytes), body: new CollectedBody(bytes) })
    },
    request: ({ method, path, headers, body }, done) => {
      if (body instanceof Readable) body.resume()
      const { [exchangeKey]: exchange, ...own } = headers as Record<PropertyKey, unknown> & { [exchangeKey]?: { timeoutMs: number } }
      const bytes = Buffer.from(onAsked({ method, path: path.slice(base.length), headers: own, timeoutMs: exchange?.timeoutMs, isPart: false }))
      done(null, { statusCode: 200, headers: fields(bytes), body: new CollectedBody(bytes) })
    },
    send: async ({ method, path, headers, timeoutMs }) => {
      const body = Buffer.from(onAsked({ method, path, headers: { ...headers }, timeoutMs, isPart: true }))
      return { status: 200, headers: fields(body), body }
    }
  }
}
