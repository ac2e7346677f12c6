/**
 * Sign-in at an OpenID provider: the start, the callback, which changes nothing, and `finish`,
 * which opens the session. The callback comes from another site, without the strict cookie. Each
 * sign-in under way has a sealed cookie of its own: tabs do not disturb each other.
 */
import { hash } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { GatewayError, toGatewayError } from '../../errors/errors.ts'
import { type Flow, OidcSource } from '../../login/oidc/source.ts'
import { checkTarget } from '../../proxy/path.ts'
import { createSeal } from '../../session/seal.ts'
import { lock } from '../../session/store.ts'
import type { Gateway } from '../gateway.ts'
import { clientAddress, publicOrigin } from '../hooks/address.ts'
import { sendHop } from '../hooks/pages.ts'
import { isCrossSite } from '../hooks/same-origin.ts'
import { leavingOf } from '../hooks/sending.ts'
import { askAgain } from '../hooks/session.ts'
import { signedOutCookie } from '../hooks/session-cookie.ts'
import { open, recordSignedIn, refuse, unopened } from './vouching.ts'

const flowMs = 600_000
const maxFlows = 8

const stranger =
  'This sign-in was begun in another browser, or is complete already. Please begin again.'

interface Options extends Pick<Gateway, 'secrets' | 'sourceFaults'> {
  readonly takeOnce: (name: string, ttlMs: number) => Promise<boolean>
  readonly secure: boolean
  /** Begins the cookies' names, since cookies do not know the ports of a host. */
  readonly of: 'console' | 'console_ops'
}

export type Flows = ReturnType<typeof createFlows>

export function createFlows({ secrets, takeOnce, secure, of, sourceFaults }: Options) {
  // Lax: it comes along from another site.
  const options = { path: '/', secure, httpOnly: true, sameSite: 'lax' } as const
  const prefix = `${secure ? '__Host-' : ''}${of}_flow_`
  const seal = createSeal(secrets, 'oidc-flow')
  const idOf = (state: string) => hash('sha256', state, 'hex').slice(0, 16)

  /** The flow of this source that the state of a request belongs to. @throws StoreUnavailable */
  async function take(request: FastifyRequest, source: string) {
    const { state } = request.query as Record<string, unknown>
    if (typeof state !== 'string') return undefined
    const name = prefix + idOf(state)
    const { [name]: sealed = '' } = request.cookies
    const flow = seal.open(name, sealed) as (Flow & { readonly until: number }) | undefined
    if (flow?.source !== source || flow.until < Date.now()) return undefined
    return { ...flow, isFirst: await takeOnce(`flow:${idOf(state)}`, flowMs) }
  }

  return {
    /**
     * @param asksAgain whether for the password also where the provider knows the user
     * @returns where the browser goes. @throws GatewayError `upstream.*`
     */
    async begin(
      reply: FastifyReply,
      source: OidcSource,
      { redirectUri, landing }: Pick<Flow, 'redirectUri' | 'landing'>,
      asksAgain: boolean
    ): Promise<string> {
      const { request } = reply
      const beginning = source.begin(redirectUri, landing, asksAgain)
      const [flow, url] = await sourceFaults.watch(source.name, beginning)
      // Browsers send the oldest first (RFC 6265 §5.4).
      const others = Object.keys(request.cookies).filter(name => name.startsWith(prefix))
      for (const name of others.slice(0, -(maxFlows - 1))) reply.clearCookie(name, options)
      const name = prefix + idOf(flow.state)
      const sealed = seal.close(name, { ...flow, until: Date.now() + flowMs })
      reply.setCookie(name, sealed, { ...options, maxAge: flowMs / 1000 })
      return url
    },
    /**
     * @param isSignedIn at this source: the browser may have gone back, or reload
     * @returns the user, unless that is a reload. @throws GatewayError; StoreUnavailable
     */
    async finish(request: FastifyRequest, source: OidcSource, isSignedIn: boolean) {
      // Another site must not finish a sign-in that it began itself, to whatever account.
      if (request.headers['sec-fetch-site'] !== 'same-origin') {
        throw new GatewayError('origin.refused')
      }
      const flow = await take(request, source.name)
      const isFirst = flow?.isFirst === true
      if (!isFirst && !isSignedIn) throw new GatewayError('login.refused', { message: stranger })
      if (!isFirst) return { landing: flow?.landing }
      const completing = source.complete(flow, queryOf(request))
      return { landing: flow.landing, vouched: await sourceFaults.watch(source.name, completing) }
    }
  }
}

export function queryOf({ raw: { url = '' } }: FastifyRequest): string {
  const at = url.indexOf('?')
  return at < 0 ? '' : url.slice(at + 1)
}

/** Of the address as it is kept: coded, a character may have nine of these. */
const maxLength = 400
/** Browsers read `\` as `/`, and skip some control characters. */
const misread = /[\\\u0000-\u001f\u007f-\u009f]/

/** @returns gives the path, with query and fragment, if it is a page; else the first page */
export function createLanding(mount: string, isEndpoint: (path: string) => boolean) {
  const first = `${mount}/`
  return (written: unknown): string => {
    if (typeof written !== 'string' || misread.test(written)) return first
    const url = URL.parse(written, 'http://console')
    if (url?.origin !== 'http://console' || !written.startsWith(first)) return first
    const { pathname, search } = url
    try {
      checkTarget(pathname + search)
    } catch {
      return first
    }
    const path = decodeURIComponent(pathname)
    const address = pathname + search + url.hash
    const isPage =
      address.length <= maxLength &&
      pathname.startsWith(first) &&
      !/^\/api(?:\/|$)/.test(path.slice(mount.length)) &&
      !isEndpoint(path)
    return isPage ? address : first
  }
}

export function addOidc(scope: FastifyInstance, isEndpoint: (path: string) => boolean): void {
  const { gateway } = scope
  const toLanding = createLanding(gateway.mount, isEndpoint)
  const { secrets, cookie, sourceFaults } = gateway
  const { secure } = cookie.options
  const takeOnce: Options['takeOnce'] = (...of) => lock(gateway.sessions.store, ...of)
  const flows = createFlows({ secrets, takeOnce, secure, of: 'console', sourceFaults })
  for (const source of gateway.sources.filter(each => each instanceof OidcSource)) {
    const { path } = source
    const start = gateway.mount + path
    const config = { route: 'login', access: 'public', page: start } as const

    scope.get(path, { config }, async (request, reply) => {
      if (isCrossSite(request)) return sendHop(reply, request.raw.url ?? start)
      const { returnTo } = request.query as Record<string, unknown>
      const redirectUri = `${publicOrigin(request)}${start}/callback`
      // Its last session ended by a sign-out, or by an operator, and not by its time.
      const asksAgain =
        request.cookies[signedOutCookie] !== undefined || request.ended?.reason === 'revoked'
      const flow = { redirectUri, landing: toLanding(returnTo) }
      return reply.redirect(await flows.begin(reply, source, flow, asksAgain), 302)
    })
    scope.get(`${path}/callback`, { config }, (request, reply) =>
      sendHop(reply, `${start}/finish?${queryOf(request)}`)
    )
    const signingIn = { config: { ...config, signsIn: true } }
    scope.get(`${path}/finish`, signingIn, async (request, reply) => {
      request.trail.source = source.name
      const finishing = finish(request, reply, source, flows)
      const landing = await finishing.catch(error => {
        // Else the provider would name the same account again, and never another one.
        if (toGatewayError(error).code.startsWith('login.blocked')) askAgain(reply)
        return refuse(request, error)
      })
      return reply.redirect(landing ?? toLanding(undefined), 303)
    })
  }
}

async function finish(
  request: FastifyRequest,
  reply: FastifyReply,
  source: OidcSource,
  flows: Flows
): Promise<string | undefined> {
  const leaving = leavingOf(reply.raw).signal
  const isSignedIn = request.live?.session.source === source.name
  const { landing, vouched } = await flows.finish(request, source, isSignedIn)
  if (vouched === undefined) return landing
  request.trail.user = vouched.identity.username
  const address = clientAddress(request)
  const session = { ...unopened, ...vouched, source: source.name, address }
  recordSignedIn(request, await open(request, session, leaving))
  const { options } = request.server.gateway.cookie
  reply.clearCookie(signedOutCookie, { ...options, partitioned: false })
  return landing
}
