/** Tries what `routes.yaml` expects of itself: the real app, without sockets; upstreams only note what they are asked. */
import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import { buildApp } from './app.ts'
import type { Expectation } from './config/expectations.ts'
import type { Fault } from './config/faults.ts'
import type { LoadedConfig } from './config/load.ts'
import { createDrift } from './contract/drift.ts'
import type { UpstreamConfig } from './config/routes.ts'
import { sessionCookie } from './hooks/session.ts'
import { rememberingSigner } from './hooks/signer.ts'
import { type Counters, createMemoryCounters } from './limits/counters.ts'
import { createLeases, type Leases } from './limits/leases.ts'
import { createMemoryTally } from './limits/memory-tally.ts'
import { createMetrics } from './metrics.ts'
import { CollectedBody } from './proxy/answer.ts'
import { createExpressions } from './proxy/expressions.ts'
import type { Upstream } from './proxy/upstream.ts'
import { createLogger, type GenerationServices } from './services.ts'
import { createMemoryStore } from './session/memory-store.ts'
import { createSeal } from './session/seal.ts'
import { createSessions } from './session/session.ts'

interface Asked {
  readonly upstream: string
  readonly path: string
}

type Answered = Awaited<ReturnType<FastifyInstance['inject']>>

/** One fault for each expectation that does not hold. */
export async function expectationFaults (config: LoadedConfig): Promise<Fault[]> {
  const { gateway, routes } = config
  const store = createMemoryStore()
  const expressions = createExpressions()
  const secrets = [randomBytes(32).toString('base64url')]
  const signer = rememberingSigner(secrets)
  const cookie = sessionCookie(gateway.session.cookie)
  // Each case starts with nothing counted.
  let counted = createMemoryCounters()
  const counters: Counters = { hit: (key, windowMs) => counted.hit(key, windowMs), giveBack: key => counted.giveBack(key), close: () => counted.close() }
  let leased = createLeases({ tally: createMemoryTally() })
  const leases: Leases = { peek: (rules, keys) => leased.peek(rules, keys), ask: (rules, keys) => leased.ask(rules, keys), close: () => leased.close() }
  const sessions = createSessions({ store, seal: createSeal(secrets), lifeTimes: gateway.session, perUser: gateway.session.perUser, boundMs: gateway.session.staleness })
  const log = createLogger({ level: 'silent', format: 'json' }, { write: () => {} })
  const metrics = createMetrics()
  let asked: Asked | undefined
  let answer: unknown
  const parts: GenerationServices = {
    log,
    sessions,
    secrets,
    counters,
    leases,
    inFlight: new Map(),
    expressions,
    metrics,
    drift: createDrift({ log, metrics }),
    running: { begin: () => {}, end: () => {} },
    upstream: (name, upstreamConfig) => noting(upstreamConfig, path => {
      asked = { upstream: name, path }
      return JSON.stringify(answer ?? {})
    }),
    sources: [{ name: 'expect', verify: async () => ({ vouched: false }) }]
  }
  const app = await buildApp(config, parts)

  async function forget (): Promise<void> {
    counted.close()
    await leased.close()
  }

  async function faultsOf (name: string, expected: Expectation, index: number): Promise<Fault[]> {
    await forget()
    counted = createMemoryCounters()
    leased = createLeases({ tally: createMemoryTally() })
    asked = undefined
    ;({ answer } = expected)
    const [method = '', url = ''] = expected.request.split(' ')
    const id = `${name}-${index}`
    if (expected.roles !== undefined) await sessions.open(id, { identity: { id, username: name, name, roles: expected.roles, profile: {} }, source: 'expect', remembered: false, address: '', agent: '' })
    let answered: Answered | undefined
    for (let n = 0; n < expected.times; n++) {
      answered = await app.inject({
        method: method as 'GET',
        url,
        remoteAddress: expected.address ?? `198.18.${index >> 8 & 255}.${index & 255}`,
        headers: { host: gateway.server.hosts[0] ?? 'localhost', ...(expected.roles !== undefined && { cookie: `${cookie.name}=${encodeURIComponent(signer.sign(id))}` }), ...expected.headers },
        ...(expected.body !== undefined && { payload: expected.body as object })
      })
    }
    return answered === undefined ? [] : differences(expected, answered, asked).map(([key, message]) => config.fault('routes', ['expect', name, key], message))
  }

  try {
    const faults: Fault[] = []
    for (const [index, [name, expected]] of Object.entries(routes.expect).entries()) faults.push(...await faultsOf(name, expected, index))
    return faults
  } finally {
    await app.close()
    await forget()
    await store.close()
    await expressions.close()
  }
}

function differences (expected: Expectation, { statusCode, body }: Answered, asked: Asked | undefined): Array<readonly [key: string, message: string]> {
  const code = codeOf(body)
  const was = `got ${statusCode}${code === undefined ? '' : ` ${code}`}`
  const went = asked === undefined ? `no upstream was asked (${was})` : `${asked.upstream} was asked for ${asked.path}`
  const found: Array<readonly [string, string]> = []
  if (expected.status !== undefined && expected.status !== statusCode) found.push(['status', `expected ${expected.status}, ${was}`])
  if (expected.code !== undefined && expected.code !== code) found.push(['code', `expected ${expected.code}, ${was}`])
  if (expected.upstream !== undefined && expected.upstream !== asked?.upstream) found.push(['upstream', `expected ${expected.upstream}; ${went}`])
  if (expected.upstreamPath !== undefined && expected.upstreamPath !== asked?.path) found.push(['upstreamPath', `expected ${expected.upstreamPath}; ${went}`])
  return found
}

function codeOf (body: string): string | undefined {
  try {
    const { errorCode } = JSON.parse(body) as { errorCode?: unknown }
    return typeof errorCode === 'string' ? errorCode : undefined
  } catch {
    return undefined
  }
}

/** An upstream without sockets: `onAsked` gets the path below the upstream's own, and gives the JSON of the answer. */
function noting (config: UpstreamConfig, onAsked: (path: string) => string): Upstream {
  const { origin, pathname } = new URL(config.url)
  const base = pathname.replace(/\/$/, '')
  const answer = (path: string) => Buffer.from(onAsked(path))
  const fields = (bytes: Buffer) => ({ 'content-type': 'application/json', 'content-length': String(bytes.length) })
  return {
    config,
    origin,
    base,
    ask: ({ path }, _exchange, done) => {
      const bytes = answer(path.slice(base.length))
      done(null, { status: 200, headers: fields(bytes), body: new CollectedBody(bytes) })
    },
    request: ({ path, body }, done) => {
      if (body instanceof Readable) body.resume()
      const bytes = answer(path.slice(base.length))
      done(null, { statusCode: 200, headers: fields(bytes), body: new CollectedBody(bytes) })
    },
    send: async ({ path }) => {
      const body = answer(path)
      return { status: 200, headers: fields(body), body }
    }
  }
}
