/** Places in headers (`Location`, `Link`, cookies) become public; no internal host leaves. */
import type { FastifyRequest } from 'fastify'
import { GatewayError } from '../../errors/errors.ts'
import type { Rewrite } from '../../proxy/path.ts'
import { isRedirect, type UpstreamResponse } from '../../proxy/response.ts'
import type { Target } from './compile.ts'

type Headers = Record<string, string | string[]>

/** @returns writes the places of a response into the headers for the client */
export function createPlaces({ upstream, upstreamName, rewrite, written: { redirects } }: Target) {
  /** By this route, or by another one that leads to the place. */
  const toPublic = ({ server }: FastifyRequest, path: string): string | undefined => {
    const others = server.routes.filter(({ target }) => target?.upstreamName === upstreamName)
    const rewrites = [rewrite, ...others.flatMap(({ target }) => target?.rewrite ?? [])]
    const places = rewrites.values().map(each => each.toPublic(path))
    return places.find(place => place !== undefined)
  }

  /** @returns undefined for a place that is none of the upstream's, and does not pass */
  function publicPlace(request: FastifyRequest, written: string): string | undefined {
    const reference = escaped(written)
    const base = upstream.origin + rewrite.toUpstream(request.raw.url ?? '')
    if (reference === '' || !URL.canParse(reference, base)) return undefined
    const url = new URL(reference, base)
    if (url.protocol !== 'http:' && url.protocol !== 'https:') return undefined
    const path = toPublic(request, url.pathname)
    const rest = url.search + url.hash
    const isWithin = upstream.addresses.some(({ origin }) => isAt(request, url, origin))
    if (isWithin) return path === undefined ? undefined : path + rest
    // The gateway itself told the upstream this name, as that of the console.
    const told = request.server.gateway.forwardedHost(request)
    if (url.host === told?.toLowerCase()) {
      const own = path ?? url.pathname
      return own.startsWith('//') ? undefined : own + rest
    }
    return redirects === 'pass' ? reference : undefined
  }

  /** As `publicPlace`, of what is no redirect: what names no host may stay as it is. */
  function placeOf(request: FastifyRequest, written: string): string | undefined {
    const isRelative = !/^(?:[a-z][a-z0-9+.-]*:|[\\/]{2})/i.test(written)
    return publicPlace(request, written) ?? (isRelative ? escaped(written) : undefined)
  }

  /** RFC 8288: a list of `<place>; parameters`. One that does not pass takes all with it. */
  function linkOf(request: FastifyRequest, written: string): string | undefined {
    let isWhole = true
    const link = written.replace(/<([^<>]*)>/g, (_whole, place: string) => {
      const mapped = placeOf(request, place)
      isWhole &&= mapped !== undefined
      return `<${mapped}>`
    })
    return isWhole ? link : undefined
  }

  return (request: FastifyRequest, { status, headers }: UpstreamResponse, sent: Headers): void => {
    const { location, link } = headers
    for (const name of ['location', 'content-location']) {
      const written = headers[name]
      const place = typeof written === 'string' ? placeOf(request, written) : undefined
      if (place !== undefined) sent[name] = place
    }
    if (isRedirect(status)) {
      const written = typeof location === 'string' ? location : ''
      const place = publicPlace(request, written)
      if (place === undefined) {
        // Neither a query nor a password: they may open something.
        const [target = ''] = written.replace(/\/\/[^/?#]*@/, '//').split(/[?#]/, 1)
        const cause = `no route leads to ${JSON.stringify(target.slice(0, 200))}`
        throw new GatewayError('upstream.redirect', { cause })
      }
      sent['location'] = place
    }
    if (link !== undefined) {
      delete sent['link']
      const links = [link].flat().flatMap(each => linkOf(request, each) ?? [])
      if (links.length > 0) sent['link'] = links
    }
    const cookies = sent['set-cookie']
    if (cookies !== undefined) {
      sent['set-cookie'] = [cookies]
        .flat()
        .map(cookie => publicCookie(cookie, path => toPublic(request, path)))
    }
  }
}

/** At the address, or as back-ends write it from the scheme that they were told, some with its port. */
function isAt({ protocol }: FastifyRequest, place: URL, origin: string): boolean {
  const { host, hostname } = new URL(origin)
  const hosts = [host, hostname]
  return (
    place.origin === origin || (place.protocol === `${protocol}:` && hosts.includes(place.host))
  )
}

/** Without its `Domain`, that of the upstream, and with its path as browsers see it. */
function publicCookie(cookie: string, toPublic: Rewrite['toPublic']): string {
  const [pair = '', ...attributes] = cookie.split(';')
  const kept = attributes.flatMap(attribute => {
    const [name = '', value = ''] = attribute.split('=', 2).map(part => part.trim())
    if (/^domain$/i.test(name)) return []
    return /^path$/i.test(name) ? [` Path=${publicPrefix(value, toPublic)}`] : [attribute]
  })
  return [pair, ...kept].join(';')
}

/** A path below which the browser sends the cookie; `/` where no public path leads there. */
function publicPrefix(path: string, toPublic: Rewrite['toPublic']): string {
  if (!path.startsWith('/') || path === '/') return '/'
  const found = toPublic(path) ?? toPublic(`${path}/`)?.replace(/\/$/, '')
  return found === undefined || found === '' ? '/' : found
}

/** Header text has a character a byte, which `URL` would escape once more: raw bytes as escapes. */
function escaped(place: string): string {
  return place.replace(/[\x80-\xff]/g, byte => `%${byte.charCodeAt(0).toString(16).toUpperCase()}`)
}
