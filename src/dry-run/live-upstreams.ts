/** The real upstreams of a config, for commands: asked as for a client without a session. */
import { randomUUID } from 'node:crypto'
import { reasonOf } from '../app/hooks/errors.ts'
import type { Config } from '../config/schema/config.ts'
import type { UpstreamConfig } from '../config/schema/routes.ts'
import { firstUrlOf } from '../config/schema/upstream-addresses.ts'
import { GatewayError, toGatewayError } from '../errors.ts'
import type { ForwardedFor } from '../proxy/request-headers.ts'
import type { TimeOutOverrides } from '../proxy/time-outs.ts'
import { tlsFilesOf } from '../proxy/tls-files.ts'
import { createUpstream, type Upstream, type UpstreamPool } from '../proxy/upstream.ts'

/** Called with a line for people: the status of a response, or a part that is missing. */
export type Report = (line: string) => void

export class LiveUpstreams {
  readonly #config: Config
  readonly #pools: UpstreamPool[] = []

  constructor(config: Config) {
    this.#config = config
  }

  /**
   * Without health checks: they would be requests that nobody has asked for.
   * @param route whose time-outs count in the place of the upstream's
   */
  open(name: string, route: TimeOutOverrides = {}): Upstream {
    const { routes, authorities } = this.#config
    const configured = routes.upstreams[name]
    if (configured === undefined) throw new Error(`there is no upstream "${name}"`)
    const { health: _health, ...rest } = configured
    const { idleTimeout, streamIdle, totalTimeout } = { ...rest, ...route }
    const config: UpstreamConfig = { ...rest, idleTimeout, streamIdle, totalTimeout }
    const pool = createUpstream(config, { name, tls: tlsFilesOf(config, authorities) })
    this.#pools.push(pool)
    return pool
  }

  async close(): Promise<void> {
    await Promise.all(this.#pools.map(pool => pool.close()))
  }
}

/** The client that upstreams are told of. */
export function clientOf({ gateway }: Config): ForwardedFor {
  const { hosts } = gateway.server
  return {
    address: '127.0.0.1',
    protocol: gateway.session.cookie.secure ? 'https' : 'http',
    host: hosts[0],
    requestId: randomUUID(),
    session: undefined
  }
}

/** The headers of that client. @param chosen by name, in lower case */
export function clientHeaders(chosen: Readonly<Record<string, string>>) {
  return { 'accept': 'application/json', 'user-agent': 'console-gateway', ...chosen }
}

/** @param of the part that it is asked for, in brackets */
export function reporting(upstream: Upstream, report: Report, of = ''): Upstream {
  const url = firstUrlOf(upstream.config)
  return {
    ...upstream,
    fetchWhole: async request => {
      const response = await upstream.fetchWhole(request).catch((thrown: unknown) => {
        throw unanswered(toGatewayError(thrown), url)
      })
      report(`${response.status} from ${url}${of}`)
      return response
    }
  }
}

function unanswered(error: GatewayError, url: string): GatewayError {
  if (!error.code.startsWith('upstream.')) return error
  const cause = new Error(`${url} does not answer`, { cause: error.cause })
  return new GatewayError(error.code, { ...error.detail, cause })
}

/** `upstream.refused: http://… does not answer: connect ECONNREFUSED …` */
export function describeFailure({ code, message, cause }: GatewayError): string {
  return `${code}: ${cause === undefined ? message : reasonOf(cause)}`
}
