/** A listener for plain http that only redirects to https, and only to names of the config. */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, Server } from 'node:http'
import type { Config } from '../config/schema/config.ts'
import type { Failures } from '../observability/failures.ts'
import { Trail } from '../observability/trail.ts'
import { checkTarget } from '../proxy/path.ts'
import { unknownRoute } from './hooks/context.ts'
import { createListener, type Records } from './listener.ts'

const headers = {
  'cache-control': 'no-store',
  'content-length': '0',
  'connection': 'close',
  'x-content-type-options': 'nosniff'
}

export function createHttpsRedirect(
  gateway: Config['gateway'],
  records: Records & { readonly failures: Pick<Failures, 'add'> }
): Server {
  const { hosts, ports } = gateway.server
  const [port = 443] = ports
  const suffix = port === 443 ? '' : `:${port}`
  const names = new Set(hosts.map(host => host.toLowerCase()))

  function answerTo({ method = '', url = '', headers: { host = '' } }: IncomingMessage) {
    const name = host.replace(/:\d{1,5}$/, '').toLowerCase()
    // An unknown name is never repeated: it could lead to another site.
    if (!names.has(name)) return { status: 400 }
    try {
      checkTarget(url)
    } catch {
      return { status: 400 }
    }
    // The body of any other request has been sent in the clear: repeating it would hide that.
    if (method !== 'GET' && method !== 'HEAD') return { status: 405, more: { allow: 'GET, HEAD' } }
    return { status: 308, more: { location: `https://${name}${suffix}${url}` } }
  }

  return createListener(
    { gateway },
    (request, response) => {
      const { method = '', url = '', socket } = request
      const trail = new Trail(randomUUID(), method, url, socket.remoteAddress ?? '')
      const { status, more } = answerTo(request)
      response.writeHead(status, { ...headers, 'x-request-id': trail.requestId, ...more }).end()
      records.failures.add(Object.assign(trail, { status, route: unknownRoute }))
    },
    records
  )
}
