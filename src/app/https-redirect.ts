/** A listener for plain http that only redirects to https, and only to names of the config. */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, Server } from 'node:http'
import { splitPublicHost } from '../config/schema/host-port.ts'
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

/** The origin to which requests for a name of the config are redirected. */
function targetOf(host: string): [name: string, origin: string] {
  const { name, port = 443 } = splitPublicHost(host.toLowerCase())
  return [name, `https://${name}${port === 443 ? '' : `:${port}`}`]
}

export function createHttpsRedirect(
  gateway: Config['gateway'],
  records: Records & { readonly failures: Pick<Failures, 'add'> }
): Server {
  const targets = new Map(gateway.server.hosts.map(targetOf))

  function answerTo({ method = '', url = '', headers: { host = '' } }: IncomingMessage) {
    const name = host.replace(/:\d{1,5}$/, '').toLowerCase()
    const target = targets.get(name)
    // An unknown name is never repeated: it could lead to another site.
    if (target === undefined) return { status: 400 }
    try {
      checkTarget(url)
    } catch {
      return { status: 400 }
    }
    // The body of any other request has been sent in the clear: repeating it would hide that.
    if (method !== 'GET' && method !== 'HEAD') return { status: 405, more: { allow: 'GET, HEAD' } }
    return { status: 308, more: { location: target + url } }
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
