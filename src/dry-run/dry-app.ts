/** The real app of a config without a listener: what it does with a request, and what it asks. */
import { randomBytes } from 'node:crypto'
import { request as httpRequest, type Server } from 'node:http'
import { duplexPair, Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { setTimeout as wait } from 'node:timers/promises'
import { buildApp } from '../app/app.ts'
import type { GatewayServices } from '../app/gateway.ts'
import { sessionCookie } from '../app/hooks/session.ts'
import { createCachedSigner } from '../app/hooks/signer.ts'
import { createListener } from '../app/listener.ts'
import type { Config } from '../config/schema/config.ts'
import type { UpstreamConfig } from '../config/schema/routes.ts'
import { firstUrlOf } from '../config/schema/upstream-addresses.ts'
import { createDrift } from '../contract/drift.ts'
import { GatewayError } from '../errors/errors.ts'
import { HighestUse } from '../limits/highest-use.ts'
import { createMemoryLockouts, type Lockouts } from '../limits/lockouts.ts'
import { SharedCounts } from '../limits/shared-counts.ts'
import { adopt } from '../observability/emitters.ts'
import { Metrics } from '../observability/metrics.ts'
import { RequestRates } from '../observability/request-rates.ts'
import { type FullRequestJson, fullRequestJson } from '../observability/request-json.ts'
import type { Upstream } from '../proxy/upstream.ts'
import { createLogger } from '../services/services.ts'
import { contextsOnly } from '../services/traces.ts'
import { createMemoryStore } from '../session/memory-store.ts'
import type { Credential, Identity } from '../session/record.ts'
import { createSeal } from '../session/seal.ts'
import { createSessions, type Sessions } from '../session/session.ts'

/** A request to an upstream. */
export interface UpstreamCall {
  readonly upstream: string
  readonly method: string
  /** With the query, below the path of the upstream's URL. */
  readonly path: string
  /** Without those that config gives the upstream. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  /** The part of the response that it is for; undefined for the route itself. */
  readonly part: string | undefined
}

export interface DryRequest {
  readonly method: string
  /** As in the request line: nothing normalises it on the way. */
  readonly target: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  /** The client's address at the socket. */
  readonly address: string
}

export interface DryResult {
  readonly status: number
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly body: string
  /** As `why` shows it. */
  readonly record: FullRequestJson | undefined
  readonly calls: readonly UpstreamCall[]
  /** What each shape got, by its name. */
  readonly shaped: ReadonlyMap<string, unknown>
}

interface SignedIn {
  /** The credential source that vouches. */
  readonly source: string
  readonly identity: Identity
  readonly credential?: Credential
}

interface Options {
  /** Opens the real upstream of a name, or gives the bytes of its response. */
  readonly upstreams: {
    readonly open?: (name: string, config: UpstreamConfig) => Upstream
    /** @returns the response, as JSON, or its bytes */
    readonly answer?: (call: UpstreamCall) => unknown
  }
  /** Whom each password signs in; nobody without it. */
  readonly identity?: Identity
  /** Called with the app before anything is added to it. */
  readonly watch?: GatewayServices['watch']
}

export interface DryApp {
  /** One at a time. */
  readonly ask: (request: DryRequest) => Promise<DryResult>
  /** @returns the `Cookie` header of a new session */
  readonly signIn: (user: SignedIn) => Promise<string>
  /** Limits and lockouts count from zero again. */
  readonly forget: () => void
  readonly close: () => Promise<void>
}

/** Maintenance comes, and ends by the clock: what a config is meant to do is without it. */
export function withoutMaintenance<T extends Config>(config: T): T {
  const { maintenance: _, ...routes } = config.routes
  return { ...config, routes }
}

/** What one request did. */
interface Run {
  readonly calls: UpstreamCall[]
  readonly shaped: Map<string, unknown>
  readonly record: PromiseWithResolvers<FullRequestJson>
}

const newRun = (): Run => ({ calls: [], shaped: new Map(), record: Promise.withResolvers() })

export async function createDryApp(
  config: Config,
  { upstreams, identity, watch }: Options
): Promise<DryApp> {
  const { gateway } = config
  const store = createMemoryStore()
  const secrets = [randomBytes(32).toString('base64url')]
  const sessions = createSessions({
    store,
    seal: createSeal(secrets),
    lifeTimes: gateway.session,
    perUser: gateway.session.perUser,
    maxStalenessMs: gateway.session.staleness
  })
  const log = createLogger({ level: 'silent', format: 'json' }, { write: () => {} })
  const metrics = new Metrics()
  const counts = new SharedCounts(undefined)
  let lockouts = createMemoryLockouts()
  let run = newRun()
  const services: GatewayServices = {
    log,
    sessions,
    secrets,
    counts,
    metrics,
    highestUse: new HighestUse(),
    lockouts: latest(() => lockouts),
    inFlight: new Map(),
    rates: new RequestRates(),
    drift: createDrift({ log, metrics }),
    tracer: contextsOnly(),
    running: { begin: () => () => {} },
    shed: { count: () => {} },
    bindStream: () => () => {},
    failures: { add: trail => run.record.resolve(fullRequestJson(trail)) },
    watch,
    watchShape: (name, value) => void run.shaped.set(name, value),
    upstream: upstreamsOf(upstreams, call => void run.calls.push(call)),
    sources: [
      {
        name: 'dry-run',
        verify: async () => (identity ? { vouched: true, identity } : { vouched: false })
      }
    ]
  }
  const app = await buildApp(config, services)
  const handler = {
    handle: (...exchange: Parameters<typeof app.routing>) => app.routing(...exchange),
    // One request a connection.
    responsesOf: () => []
  }
  const server = createListener({ gateway }, handler, services)
  const cookie = sessionCookie(gateway.session.cookie)
  const signer = createCachedSigner(secrets)

  return {
    ask: async request => {
      run = newRun()
      const response = await ask(server, request)
      // It is complete when the connection is closed.
      const record = await Promise.race([run.record.promise, wait(1000, undefined, { ref: false })])
      return { ...response, record, calls: run.calls, shaped: run.shaped }
    },
    signIn: async user => {
      const id = await openSession(sessions, user)
      return `${cookie.name}=${encodeURIComponent(signer.sign(id))}`
    },
    forget: () => {
      counts.clear()
      lockouts = createMemoryLockouts()
    },
    close: async () => {
      server.close()
      await app.close()
      await counts.close()
      await store.close()
    }
  }
}

function latest(lockouts: () => Lockouts): Lockouts {
  return {
    take: buckets => lockouts().take(buckets),
    giveBack: (buckets, taken) => lockouts().giveBack(buckets, taken),
    list: () => lockouts().list(),
    lift: keys => lockouts().lift(keys)
  }
}

/** @returns the id of the new session */
async function openSession(
  sessions: Sessions,
  { source, identity, credential }: SignedIn
): Promise<string> {
  const id = randomBytes(16).toString('hex')
  await sessions.open(id, {
    identity,
    source,
    remembered: false,
    address: '',
    agent: '',
    ...(credential && { credential })
  })
  return id
}

/** Sends a request over a connection without a socket. */
async function ask(
  server: Server,
  { method, target, headers, body, address }: DryRequest
): Promise<Pick<DryResult, 'status' | 'headers' | 'body'>> {
  const [ours, theirs] = duplexPair()
  server.emit('connection', adopt(Object.assign(theirs, { remoteAddress: address })))
  const request = adopt(
    httpRequest({
      createConnection: () => adopt(ours),
      method,
      path: target,
      headers: {
        ...headers,
        connection: 'close',
        ...(body !== undefined && { 'content-length': Buffer.byteLength(body) })
      }
    })
  )
  const { promise, resolve, reject } = Promise.withResolvers<Awaited<ReturnType<typeof ask>>>()
  request.once('error', reject).once('response', response => {
    const { statusCode: status = 0, headers: responseHeaders } = response
    text(response).then(
      received => resolve({ status, headers: responseHeaders, body: received }),
      reject
    )
  })
  request.end(body)
  try {
    return await promise
  } finally {
    ours.destroy()
    theirs.destroy()
  }
}

function upstreamsOf(
  { open, answer = () => ({}) }: Options['upstreams'],
  note: (call: UpstreamCall) => void
): GatewayServices['upstream'] {
  return (name, config) =>
    noting(name, open?.(name, config) ?? answering(name, config, answer), note)
}

/** The upstream, with a note of each call. */
function noting(name: string, upstream: Upstream, note: (call: UpstreamCall) => void): Upstream {
  return {
    ...upstream,
    send: call => {
      const { method, path, headers } = call
      note({
        upstream: name,
        method,
        path: path.slice(upstream.base.length),
        // It may get more of them, and those may be secret.
        headers: { ...headers },
        part: undefined
      })
      return upstream.send(call)
    },
    fetchWhole: request => {
      const { method, path, headers, recorded } = request
      note({ upstream: name, method, path, headers: { ...headers }, part: recorded?.part ?? '' })
      return upstream.fetchWhole(request)
    }
  }
}

/** An upstream without sockets. */
function answering(
  name: string,
  config: UpstreamConfig,
  answer: (call: UpstreamCall) => unknown
): Upstream {
  const { origin, pathname } = new URL(firstUrlOf(config))
  const base = pathname.replace(/\/$/, '')
  const responseTo = (call: UpstreamCall) => {
    const value = answer(call) ?? {}
    const body = Buffer.isBuffer(value) ? value : Buffer.from(JSON.stringify(value))
    const type = { 'content-type': 'application/json', 'content-length': String(body.length) }
    return { status: 200, headers: type, body }
  }
  return {
    config,
    origin,
    origins: new Set([origin]),
    base,
    connect: () => Promise.reject(new GatewayError('upstream.refused')),
    send: async ({ method, path, headers, body }) => {
      if (body instanceof Readable) body.resume()
      const target = path.slice(base.length)
      return responseTo({ upstream: name, method, path: target, headers, part: undefined })
    },
    fetchWhole: async ({ method, path, headers, recorded }) =>
      responseTo({ upstream: name, method, path, headers, part: recorded?.part ?? '' })
  }
}
