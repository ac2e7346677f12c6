/**
 * Sign-in at an OpenID provider: the start, the callback, which changes nothing, and `finish`,
 * which opens the session. The callback comes from another site, without the strict cookie.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { toGatewayError } from '../../errors/errors.ts'
import { OidcSource } from '../../login/oidc/source.ts'
import { clientAddress, publicOrigin } from '../hooks/address.ts'
import { sendHop } from '../hooks/pages.ts'
import { isCrossSite } from '../hooks/same-origin.ts'
import { leavingOf } from '../hooks/sending.ts'
import { createFlows, type Flows, queryOf, createLanding } from './flows.ts'
import { open, recordSignedIn, refuse, unopened } from './vouching.ts'

export function addOidc(scope: FastifyInstance, isEndpoint: (path: string) => boolean): void {
  const { gateway } = scope
  const toLanding = createLanding(gateway.mount, isEndpoint)
  const { secrets, cookie, sourceFaults } = gateway
  const { store } = gateway.sessions
  const flows = createFlows({
    secrets,
    store,
    secure: cookie.options.secure,
    of: 'console',
    sourceFaults
  })
  for (const source of gateway.sources.filter(each => each instanceof OidcSource)) {
    const { path } = source
    const start = gateway.mount + path
    const config = { route: 'login', access: 'public', page: start } as const

    scope.get(path, { config }, async (request, reply) => {
      if (isCrossSite(request)) return sendHop(reply, request.raw.url ?? start)
      const { returnTo } = request.query as Record<string, unknown>
      const redirectUri = `${publicOrigin(request)}${start}/callback`
      const asksAgain = flows.wasSignedOut(request)
      const landing = toLanding(returnTo)
      const beginning = { redirectUri, landing, asksAgain }
      return reply.redirect(await flows.begin(request, reply, source, beginning), 302)
    })
    scope.get(`${path}/callback`, { config }, (request, reply) =>
      sendHop(reply, `${start}/finish?${queryOf(request)}`)
    )
    scope.get(
      `${path}/finish`,
      { config: { ...config, signsIn: true } },
      async (request, reply) => {
        request.trail.source = source.name
        const landing = await finish(request, reply, source, flows).catch(error =>
          refuse(request, toGatewayError(error))
        )
        return reply.redirect(landing ?? toLanding(undefined), 303)
      }
    )
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
  flows.forgetSignOut(reply)
  return landing
}
