/** The real app of a config without a listener: what it does with a request, and what it asks. */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type IncomingMessage, request as httpRequest, type Server } from 'node:http'
import { duplexPair, Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { setTimeout as wait } from 'node:timers/promises'
import { buildApp } from '../app/app.ts'
import type { GatewayServices } from '../app/gateway.ts'
import { sessionCookie, signedCookie } from '../app/hooks/session-cookie.ts'
import { createListener } from '../app/listener.ts'
import type { Config } from '../config/schema/config.ts'
import type { UpstreamConfig } from '../config/schema/routes.ts'
import { urlsOf } from '../config/schema/upstreams.ts'
import { Drift } from '../contract/drift.ts'
import { GatewayError } from '../errors/errors.ts'
import { SourceFaults } from '../login/credential-source.ts'
import { HighestUse } from '../limits/highest-use.ts'
import { createMemoryLockouts } from '../limits/lockouts.ts'
import { SharedCounts } from '../limits/shared-counts.ts'
import { adopt } from '../observability/emitters.ts'
import { Metrics } from '../observability/metrics.ts'
import { type FullRequestJson, fullRequestJson } from '../observability/request-json.ts'
import type { Upstream } from '../proxy/upstream.ts'
import { createLogger } from '../services/services.ts'
import { contextsOnly } from '../observability/traces/tracer.ts'
import { MemoryStore } from '../session/memory-store.ts'
import { Sessions } from '../session/sessions.ts'
import { createSecretId, type Credential, type Identity } from '../session/types.ts'
import { createSeal } from '../session/seal.ts'

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
  readonly address: string
  /** The response of each upstream, as JSON or bytes. Default: `{}`. */
  readonly answer?: unknown
}

export interface DryResult {
  readonly status: number
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly body: string
  readonly record: FullRequestJson | undefined
  readonly calls: readonly UpstreamCall[]
  readonly shaped: ReadonlyMap<string, unknown>
}

interface SignedIn {
  readonly source: string
  readonly identity: Identity
  readonly credential?: Credential
}

interface Options {
  /** Opens the real upstream of a name; without it upstreams respond what the request says. */
  readonly open?: ((name: string, config: UpstreamConfig) => Upstream) | undefined
  /** Whom each password signs in; nobody without it. */
  readonly identity?: Identity | undefined
  /** Called with the app before anything is added to it. */
  readonly watch?: GatewayServices['watch']
}

export type DryApp = Awaited<ReturnType<typeof createDryApp>>

export const tokenOfSession = '(token-of-the-session)'

const newRun = (answer?: unknown) => ({
  answer,
  calls: [] as UpstreamCall[],
  shaped: new Map<string, unknown>(),
  record: Promise.withResolvers<FullRequestJson>()
})

export async function createDryApp(config: Config, { open, identity, watch }: Options = {}) {
  const { gateway } = config
  const store = new MemoryStore()
  const secrets = [randomBytes(32).toString('base64url')]
  const sessions = new Sessions({
    store,
    seal: createSeal(secrets),
    config: gateway.session
  })
  const counts = new SharedCounts(undefined)
  const lockouts = createMemoryLockouts()
  let run = newRun()
  const services: GatewayServices = {
    ...unseen(),
    sessions,
    secrets,
    counts,
    highestUse: new HighestUse(),
    lockouts,
    sourceFaults: new SourceFaults(),
    inFlight: new Map(),
    running: () => () => {},
    shed: () => {},
    bindStream: () => () => {},
    failures: { add: trail => run.record.resolve(fullRequestJson(trail)) },
    watch,
    watchShape: (name, value) => void run.shaped.set(name, value),
    upstream: (name, settings) => {
      const upstream = open?.(name, settings) ?? offline(settings, () => run.answer)
      return noting(upstream, name, () => run.calls)
    },
    sources: [
      {
        name: 'dry-run',
        verify: async () => (identity ? { vouched: true, identity } : { vouched: false })
      }
    ]
  }
  const app = await buildApp(config, services)
  const server = createListener(
    { gateway },
    (request, response) => app.routing(request, response),
    services
  )
  return {
    ask: async (request: DryRequest): Promise<DryResult> => {
      run = newRun(request.answer)
      const response = await send(server, request)
      // It is complete when the connection is closed.
      const record = await Promise.race([run.record.promise, wait(1000, undefined, { ref: false })])
      return { ...response, record, calls: run.calls, shaped: run.shaped }
    },
    /** @returns the `Cookie` header of a new session */
    signIn: async ({ source, identity: user, credential }: SignedIn): Promise<string> => {
      const id = createSecretId({ source, id: user.id })
      const opening = { source, identity: user, ...(credential && { credential }) }
      const names = [...app.gateway.exchanges.keys()]
      const tokens = Object.fromEntries(names.map(name => [name, { token: tokenOfSession }]))
      await sessions.open(id, { ...opening, tokens, remembered: false, address: '', agent: '' })
      return `${sessionCookie(gateway.session.cookie).name}=${signedCookie(secrets, id)}`
    },
    /** Limits and lockouts count from zero again. */
    forget: (): void => {
      counts.clear()
      lockouts.clear()
    },
    close: async (): Promise<void> => {
      server.close()
      await app.close()
      await counts.close()
    }
  }
}

async function send(
  server: Server,
  { method, target, headers, body, address }: DryRequest
): Promise<Pick<DryResult, 'status' | 'headers' | 'body'>> {
  const [ours, theirs] = duplexPair()
  server.emit('connection', adopt(Object.assign(theirs, { remoteAddress: address })))
  const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }
  try {
    const request = adopt(
      httpRequest({
        createConnection: () => adopt(ours),
        method,
        path: target,
        headers: { ...headers, ...length, connection: 'close' }
      })
    )
    request.end(body)
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    const { statusCode: status = 0 } = response
    return { status, headers: response.headers, body: await text(response) }
  } finally {
    ours.destroy()
    theirs.destroy()
  }
}

function offline(config: UpstreamConfig, answer: () => unknown): Upstream {
  const { origin, pathname } = new URL(urlsOf(config)[0] ?? '')
  const respond = () => {
    const value = answer() ?? {}
    const body = Buffer.isBuffer(value) ? value : Buffer.from(JSON.stringify(value))
    const type = { 'content-type': 'application/json', 'content-length': String(body.length) }
    return { status: 200, headers: type, body }
  }
  return {
    config,
    origin,
    origins: new Set([origin]),
    base: pathname.replace(/\/$/, ''),
    connect: () => Promise.reject(new GatewayError('upstream.refused')),
    send: async ({ body }) => {
      if (body instanceof Readable) body.resume()
      return respond()
    },
    fetchWhole: async () => respond()
  }
}

function noting(upstream: Upstream, name: string, calls: () => UpstreamCall[]): Upstream {
  // A call may get more headers, and those may be secret.
  const note = (
    { method, headers }: Pick<UpstreamCall, 'method' | 'headers'>,
    path: string,
    part?: string
  ) => void calls().push({ upstream: name, method, path, headers: { ...headers }, part })
  return {
    ...upstream,
    send: call => {
      note(call, call.path.slice(upstream.base.length))
      return upstream.send(call)
    },
    fetchWhole: request => {
      note(request, request.path, request.recorded?.part ?? '')
      return upstream.fetchWhole(request)
    }
  }
}

function unseen() {
  const log = createLogger({ level: 'silent', format: 'json' }, { write: () => {} })
  const metrics = new Metrics()
  return { log, metrics, drift: new Drift({ log, metrics }), tracer: contextsOnly() }
}
