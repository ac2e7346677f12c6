/** The real app of a config without sockets, for dry runs: empty stores, recorded upstream calls. */
import { randomBytes } from 'node:crypto'
import { request as httpRequest, type Server } from 'node:http'
import { duplexPair, Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import type { FastifyInstance } from 'fastify'
import { buildApp } from '../app/app.ts'
import type { Config } from '../config/schema/config.ts'
import type { UpstreamConfig } from '../config/schema/routes.ts'
import { firstUrlOf } from '../config/schema/upstream-addresses.ts'
import { createDrift } from '../contract/drift.ts'
import type { OperatorsMaintenance } from '../app/gateway.ts'
import { sessionCookie } from '../app/hooks/session.ts'
import { createCachedSigner } from '../app/hooks/signer.ts'
import { HighestUse } from '../limits/highest-use.ts'
import type { Lockouts } from '../limits/lockouts.ts'
import type { SharedCounts } from '../limits/shared-counts.ts'
import type { CredentialSource } from '../login/credential-source.ts'
import { contextsOnly } from '../services/traces.ts'
import { Metrics } from '../observability/metrics.ts'
import { RequestRates } from '../observability/request-rates.ts'
import { GatewayError } from '../errors.ts'
import { adopt } from '../observability/emitters.ts'
import { createListener } from '../app/listener.ts'
import type { Upstream } from '../proxy/upstream.ts'
import { createLogger } from '../services/services.ts'
import type { GatewayServices } from '../app/gateway.ts'
import { createMemoryStore } from '../session/memory-store.ts'
import type { Credential, Identity } from '../session/record.ts'
import { createSeal } from '../session/seal.ts'
import { createSessions, type Sessions } from '../session/session.ts'

/** A request to an upstream. */
export interface RecordedRequest {
  readonly upstream: string
  readonly method: string
  /** With the query, below the path of the upstream's URL. */
  readonly path: string
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  /** To the first byte of the response. */
  readonly timeoutMs: number | undefined
  /** Whether for a part of a response, and not for the route itself. */
  readonly isPart: boolean
}

export interface OfflineRequest {
  readonly method: string
  /** As in the request line: nothing normalises it on the way. */
  readonly target: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  /** The client's address at the socket. */
  readonly address: string
}

export interface OfflineResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly body: string
}

interface Options {
  readonly counts: SharedCounts
  readonly lockouts: Lockouts
  readonly source: CredentialSource
  readonly inFlight?: Map<string, number>
  /** That of operators. */
  readonly maintenance?: OperatorsMaintenance
  /** Gets the app before any hook or route is added. */
  readonly watch?: (app: FastifyInstance) => void
  /** @returns the upstream's response, as JSON */
  readonly onUpstreamRequest: (request: RecordedRequest) => unknown
}

interface SignedIn {
  /** The credential source that vouches. */
  readonly source: string
  readonly identity: Identity
  readonly credential?: Credential
}

export interface OfflineApp {
  readonly ask: (request: OfflineRequest) => Promise<OfflineResponse>
  /** @returns the `Cookie` header of a new session */
  readonly signIn: (user: SignedIn) => Promise<string>
  readonly close: () => Promise<void>
}

/** Requests of a dry run come one after the other. */
const withoutLoad: Pick<GatewayServices, 'running' | 'shed'> = {
  running: { begin: () => () => {} },
  shed: { count: () => {} }
}

/** Maintenance comes, and ends by the clock: what a config is meant to do is without it. */
export function withoutMaintenance<T extends Config>(config: T): T {
  const { maintenance: _, ...routes } = config.routes
  return { ...config, routes }
}

export async function createOfflineApp(
  config: Config,
  {
    counts,
    lockouts,
    source,
    inFlight = new Map<string, number>(),
    maintenance,
    watch,
    onUpstreamRequest
  }: Options
): Promise<OfflineApp> {
  const { gateway } = config
  const store = createMemoryStore()
  const secrets = [randomBytes(32).toString('base64url')]
  const signer = createCachedSigner(secrets)
  const cookie = sessionCookie(gateway.session.cookie)
  const sessions = createSessions({
    store,
    seal: createSeal(secrets),
    lifeTimes: gateway.session,
    perUser: gateway.session.perUser,
    maxStalenessMs: gateway.session.staleness
  })
  const log = createLogger({ level: 'silent', format: 'json' }, { write: () => {} })
  const metrics = new Metrics()
  const parts: GatewayServices = {
    log,
    sessions,
    secrets,
    counts,
    highestUse: new HighestUse(),
    lockouts,
    inFlight,
    metrics,
    rates: new RequestRates(),
    drift: createDrift({ log, metrics }),
    tracer: contextsOnly(),
    ...withoutLoad,
    bindStream: () => () => {},
    upstream: (name, upstreamConfig) =>
      offlineUpstream(upstreamConfig, request =>
        JSON.stringify(onUpstreamRequest({ upstream: name, ...request }) ?? {})
      ),
    sources: [source],
    ...(maintenance && { maintenance }),
    ...(watch && { watch })
  }
  const app = await buildApp(config, parts)
  const handler = {
    handle: (...exchange: Parameters<typeof app.routing>) => app.routing(...exchange),
    // One request a connection.
    responsesOf: () => []
  }
  const server = createListener({ gateway }, handler, { log, metrics })

  return {
    ask: request => askOffline(server, request),
    signIn: async user => {
      const id = await openSession(sessions, user)
      return `${cookie.name}=${encodeURIComponent(signer.sign(id))}`
    },
    close: async () => {
      server.close()
      await app.close()
      await store.close()
    }
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
async function askOffline(
  server: Server,
  { method, target, headers, body, address }: Parameters<OfflineApp['ask']>[0]
): Promise<OfflineResponse> {
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
  const { promise, resolve, reject } = Promise.withResolvers<OfflineResponse>()
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

/** An upstream without sockets: `respond` returns the JSON of the response. */
function offlineUpstream(
  config: UpstreamConfig,
  respond: (request: Omit<RecordedRequest, 'upstream'>) => string
): Upstream {
  const { origin, pathname } = new URL(firstUrlOf(config))
  const base = pathname.replace(/\/$/, '')
  const headersOf = (bytes: Buffer) => ({
    'content-type': 'application/json',
    'content-length': String(bytes.length)
  })
  return {
    config,
    origin,
    origins: new Set([origin]),
    base,
    connect: () => Promise.reject(new GatewayError('upstream.refused')),
    send: async ({ method, path, headers, body, timeoutMs }) => {
      if (body instanceof Readable) body.resume()
      const target = path.slice(base.length)
      const bytes = Buffer.from(
        respond({ method, path: target, headers, timeoutMs, isPart: false })
      )
      return { status: 200, headers: headersOf(bytes), body: bytes }
    },
    fetchWhole: async ({ method, path, headers, timeoutMs }) => {
      const body = Buffer.from(respond({ method, path, headers, timeoutMs, isPart: true }))
      return { status: 200, headers: headersOf(body), body }
    }
  }
}
