/** Serves the console's files, so that page and gateway share an origin; hashed ones for a year. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { fileIn } from '../../config/schema/resolved.ts'
import { oidcPath } from '../../config/schema/login.ts'
import { sendHop } from '../hooks/pages.ts'
import { isCrossSite } from '../hooks/same-origin.ts'

/** Build tools put a hash of the content into a file's name, also where it is compressed. */
const hashed =
  /[.-](?=[A-Za-z0-9_-]*[0-9])[A-Za-z0-9_-]{8,}\.(?:js|mjs|css|woff2?|png|jpe?g|svg|gif|webp|avif|ico|map|wasm)(?:\.br|\.gz)?$/

const consoleRoute = 'console'

export function addConsole(app: FastifyInstance): void {
  const { config, mount: prefix } = app.gateway
  const { console: pages } = config.gateway
  if (pages === undefined) return
  const { contentSecurityPolicy, signIn } = pages
  if (signIn !== undefined) sendToSignIn(app, signIn)
  app.addHook('onRoute', route => {
    if (route.url === `${prefix}/*` && route.config?.route === undefined) {
      route.config = { ...route.config, route: consoleRoute }
    }
  })
  // Imported only when there is a console.
  app.register(import('@fastify/static'), {
    root: fileIn(config, pages.root),
    prefix: `${prefix}/`,
    wildcard: true,
    allowedPath: path => !isApi(path),
    dotfiles: 'deny',
    // `app.js.br` and `app.js.gz` beside `app.js`, as build tools make them.
    preCompressed: true,
    cacheControl: false,
    setHeaders: (response, path) => {
      response.header(
        'cache-control',
        hashed.test(path) ? 'public, max-age=31536000, immutable' : 'no-cache'
      )
      response.header('content-security-policy', contentSecurityPolicy)
    }
  })
}

/** Sends navigations without a session to a source's sign-in; a call of a page could not follow. */
function sendToSignIn(app: FastifyInstance, name: string): void {
  const { config, mount, sessions, sessionKeyIn } = app.gateway
  const source = config.gateway.login.sources[name]
  if (source?.kind !== 'oidc') return
  const start = mount + oidcPath(name, source)
  app.addHook('onRequest', async function requireSignIn(request, reply) {
    const { headers, routeConfig, raw, is404 } = request
    if (headers['sec-fetch-dest'] !== 'document') return
    if (is404 ? !opensPage(request) : routeConfig.route !== consoleRoute) return
    const key = sessionKeyIn(headers.cookie ?? '')
    try {
      if (key !== undefined && 'live' in (await sessions.read(key))) return
    } catch {
      // Whoever cannot be known is not signed out.
      return
    }
    const page = raw.url ?? ''
    if (isCrossSite(request)) return sendHop(reply, page)
    return reply.redirect(`${start}?returnTo=${encodeURIComponent(page)}`, 302)
  })
}

/** No path under /api/ is a page. */
function isApi(path: string) {
  return path === '/api' || path.startsWith('/api/')
}

export function opensPage({ method, raw, headers, server }: FastifyRequest): boolean {
  const { config, mount } = server.gateway
  const path = raw.url ?? ''
  return (
    config.gateway.console !== undefined &&
    (method === 'GET' || method === 'HEAD') &&
    path.startsWith(`${mount}/`) &&
    !isApi(path.slice(mount.length)) &&
    headers.accept?.includes('text/html') === true
  )
}
