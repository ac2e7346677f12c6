/** The real app of a config without a listener: what it does with a request, and what it asks. */
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
import { GatewayError } from '../errors/errors.ts'
import { createMemoryLockouts } from '../limits/lockouts.ts'
import { adopt } from '../observability/emitters.ts'
import { type FullRequestJson, fullRequestJson } from '../observability/request-json.ts'
import type { Call } from '../proxy/receiver.ts'
import type { UpstreamResponse } from '../proxy/response.ts'
import type { Upstream } from '../proxy/upstream.ts'
import { createLogger, createServices } from '../services/services.ts'
import { contextsOnly } from '../observability/traces/tracer.ts'
import { createSecretId, type Identity, type NewSession } from '../session/types.ts'

/** Its path is that below the upstream's URL, its headers are without those of config. */
export interface UpstreamCall extends Pick<Call, 'method' | 'path' | 'headers'> {
  readonly upstream: string
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

interface Options {
  /** Asks the real upstream; without it upstreams respond what the request says. */
  readonly send?: ((upstream: Upstream, call: Call) => Promise<UpstreamResponse>) | undefined
  /** Whom each password signs in; nobody without it. */
  readonly identity?: Identity | undefined
}

type SignedIn = Pick<NewSession, 'source' | 'identity' | 'credential'>

export type DryApp = Awaited<ReturnType<typeof createDryApp>>
export type DryResult = Awaited<ReturnType<DryApp['ask']>>

export const tokenOfSession = '(token-of-the-session)'

const newRun = (answer?: unknown) => ({
  answer,
  calls: [] as UpstreamCall[],
  shaped: new Map<string, unknown>(),
  record: Promise.withResolvers<FullRequestJson>()
})

export async function createDryApp(config: Config, { send, identity }: Options = {}) {
  const { gateway } = config
  const silent = createLogger({ level: 'silent', format: 'json' }, { write: () => {} })
  const own = createServices(unshared(config), silent, contextsOnly())
  const { counts, secrets, sessions } = own
  const lockouts = createMemoryLockouts()
  const pools = own.upstreams.lease()
  let run = newRun()
  const services: GatewayServices = {
    ...own,
    lockouts,
    running: () => () => {},
    shed: () => {},
    bindStream: () => () => {},
    failures: { add: trail => run.record.resolve(fullRequestJson(trail)) },
    watchShape: (name, value) => void run.shaped.set(name, value),
    upstream: (name, written) => {
      // Health checks would be requests that nobody has asked for.
      const { health: _, ...settings } = written
      const upstream = pools.upstream(name, settings)
      return {
        ...upstream,
        connect: () => Promise.reject(new GatewayError('upstream.refused')),
        send: async call => {
          const { method, headers, recorded } = call
          const part = recorded?.purpose === 'request' ? undefined : (recorded?.part ?? '')
          const path = call.path.slice(upstream.base.length)
          run.calls.push({ upstream: name, method, path, headers: { ...headers }, part })
          return await (send === undefined ? respond(call, run.answer) : send(upstream, call))
        }
      }
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
    ask: async (request: DryRequest) => {
      run = newRun(request.answer)
      const response = await sendTo(server, request)
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
      await pools.release()
      await own.close()
    }
  }
}

async function sendTo(server: Server, { method, target, headers, body, address }: DryRequest) {
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

function respond({ body: sent }: Call, answer: unknown): UpstreamResponse {
  if (sent instanceof Readable) sent.resume()
  const body = Buffer.isBuffer(answer) ? answer : Buffer.from(JSON.stringify(answer ?? {}))
  const headers = { 'content-type': 'application/json', 'content-length': String(body.length) }
  return { status: 200, headers, body }
}

/** Sessions, counts and secrets of its own, and nothing is written down. */
function unshared({ gateway, ...others }: Config): Config {
  const { redis: _, audit: __, session, ...settings } = gateway
  return { ...others, gateway: { ...settings, session: { ...session, secrets: [] } } }
}
