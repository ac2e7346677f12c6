/** A listener for plain http that only redirects to https, and only to names of the config. */
import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import { unknownRoute } from './hooks/context.ts'
import type { GatewayConfig } from '../config/schema/gateway.ts'
import { adopt } from '../observability/emitters.ts'
import type { Failures } from '../observability/failures.ts'
import { Trail } from '../observability/trail.ts'
import { checkTarget } from '../proxy/path.ts'
import type { Services } from '../services/services.ts'

/** A request without a body is short, and is answered at once. */
const timeoutMs = 5000

const headers = {
  'cache-control': 'no-store',
  'content-length': '0',
  'connection': 'close',
  'x-content-type-options': 'nosniff'
}

interface Records {
  readonly log: Pick<Services['log'], 'error'>
  readonly failures: Pick<Failures, 'add'>
}

export function createHttpsRedirect(
  { hosts, ports }: Pick<GatewayConfig['server'], 'hosts' | 'ports'>,
  { log, failures }: Records
): Server {
  const [port = 443] = ports
  const suffix = port === 443 ? '' : `:${port}`
  const origins = new Map(
    hosts.map(each => each.toLowerCase()).map(host => [host, `https://${host}${suffix}`])
  )
  const server: Server = adopt(
    createServer(
      {
        headersTimeout: timeoutMs,
        requestTimeout: timeoutMs,
        keepAliveTimeout: 1,
        connectionsCheckingInterval: 1000,
        maxHeaderSize: 16 * 1024,
        insecureHTTPParser: false,
        requireHostHeader: false
      },
      (request, response) => {
        const { method = '', url = '', socket } = request
        const trail = new Trail(randomUUID(), method, url, socket.remoteAddress ?? '')
        const { status, more } = answerTo(request, origins)
        const fields = { ...headers, 'x-request-id': trail.requestId, ...more }
        adopt(response).writeHead(status, fields).end()
        failures.add(Object.assign(trail, { status, route: unknownRoute }))
      }
    ),
    err => {
      if (server.listening) log.error({ err }, 'a connection could not be accepted')
    }
  )
  server.on('clientError', (_error, socket) => socket.destroy())
  server.timeout = timeoutMs
  return server
}

interface Answer {
  readonly status: number
  readonly more?: Readonly<Record<string, string>>
}

function answerTo(
  { method = '', url = '', headers: { host = '' } }: IncomingMessage,
  origins: ReadonlyMap<string, string>
): Answer {
  const origin = origins.get(host.replace(/:\d{1,5}$/, '').toLowerCase())
  // An unknown name is never repeated: it could lead to another site.
  if (origin === undefined || !isWellFormed(url)) return { status: 400 }
  // The body of any other request has been sent in the clear already: repeating it would hide that.
  if (method !== 'GET' && method !== 'HEAD') return { status: 405, more: { allow: 'GET, HEAD' } }
  return { status: 308, more: { location: origin + url } }
}

function isWellFormed(target: string): boolean {
  try {
    checkTarget(target)
    return true
  } catch {
    return false
  }
}
