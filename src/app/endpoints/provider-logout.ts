/**
 * Sign-out at an OpenID provider: a page posts the ID token (RP-Initiated Logout 1.0 §2): it
 * stands in no address; the provider posts logout tokens (Back-Channel Logout 1.0 §2.5).
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { malformed } from '../../errors/errors.ts'
import { signOutAtSource } from '../../login/credential-source.ts'
import { logoutTokenMs, readLogout } from '../../login/oidc/logout-token.ts'
import { OidcSource } from '../../login/oidc/source.ts'
import { endByProvider } from '../../session/provider-sessions.ts'
import { createSeal } from '../../session/seal.ts'
import { lock } from '../../session/store.ts'
import type { Session } from '../../session/types.ts'
import type { Gateway } from '../gateway.ts'
import { clientAddress, publicOrigin } from '../hooks/address.ts'
import { sendForm } from '../hooks/pages.ts'
import { readForms } from '../hooks/validation.ts'

const ticketMs = 60_000
/** The address of the page would be too long with more. */
const maxIdToken = 4096

/** Each is good once, within a minute, at any replica. */
function createTickets({ secrets, sessions }: Gateway) {
  const seal = createSeal(secrets, 'provider-logout')
  return {
    make: ({ id, source, credential: { idToken = '' } = {} }: Session): string =>
      seal.close(source, [Date.now(), id, idToken.length > maxIdToken ? '' : idToken]),
    /** @returns the ID token, maybe empty; undefined for a ticket that is not good any more */
    use: async (source: string, ticket: string): Promise<string | undefined> => {
      const opened = seal.open(source, ticket) as [number, string, string] | undefined
      const [madeAt = 0, id, idToken] = opened ?? []
      if (Date.now() - madeAt > ticketMs) return undefined
      // Not by its text: another one may be decoded to the same.
      return (await lock(sessions.store, `logout:${id}`, 2 * ticketMs)) ? idToken : undefined
    }
  }
}

/** @returns gives the path at which the browser signs out at a session's provider */
export function createLogoutUrl(gateway: Gateway) {
  const tickets = createTickets(gateway)
  return (session: Session | undefined): string | undefined => {
    const source = gateway.sources.find(({ name }) => name === session?.source)
    if (session === undefined || !(source instanceof OidcSource)) return undefined
    return `${gateway.mount}${source.path}/logout?ticket=${tickets.make(session)}`
  }
}

export function addProviderLogout(scope: FastifyInstance): void {
  const sources = scope.gateway.sources.filter(each => each instanceof OidcSource)
  const { use } = createTickets(scope.gateway)
  for (const source of sources) addPage(scope, source, use)
  scope.register(async inner => {
    readForms(inner, '')
    for (const source of sources) addBackChannel(inner, source)
  })
}

/** `GET …/logout`, to which a sign-out sends the browser; without a ticket to the console. */
function addPage(
  scope: FastifyInstance,
  { name, path, config, provider }: OidcSource,
  idTokenOf: (source: string, ticket: string) => Promise<string | undefined>
): void {
  const page = `${scope.gateway.mount}/`
  const options = { config: { route: 'logout', access: 'public', page } } as const
  scope.get(`${path}/logout`, options, async (request, reply) => {
    const { ticket } = request.query as { readonly ticket?: unknown }
    const idToken = await idTokenOf(name, String(ticket))
    const configuration = await provider.configuration().catch(() => undefined)
    const endpoint = configuration?.serverMetadata().end_session_endpoint
    if (idToken === undefined || endpoint === undefined) return reply.redirect(page, 303)
    sendForm(reply, endpoint, {
      ...(idToken !== '' && { id_token_hint: idToken }),
      client_id: config.clientId,
      post_logout_redirect_uri: publicOrigin(request) + page
    })
    return reply
  })
}

/** Far more than a form with a token needs. */
const maxBody = 16 * 1024

function addBackChannel(scope: FastifyInstance, source: OidcSource): void {
  scope.route({
    method: 'POST',
    url: `${source.path}/backchannel-logout`,
    bodyLimit: maxBody,
    // Providers read the status.
    config: { route: 'backchannel-logout', access: 'public', maxBody, errorStatus: 'own' },
    handler: async (request, reply) => {
      const ended = await logout(request, source)
      const fields = { event: 'logout.provider', source: source.name, closed: ended.length }
      request.log.info(fields, 'the provider has signed a user out')
      signOutAtSource(scope.gateway, ended, request)
      return reply.send()
    }
  })
}

/** @returns the sessions that were alive. @throws GatewayError `request.*`, `session.*` */
async function logout(request: FastifyRequest, source: OidcSource): Promise<Session[]> {
  const { sessions } = request.server.gateway
  const { logout_token: token = '' } = (request.body ?? {}) as Record<string, string>
  const { name, issuedAt, id } = await readLogout(source.name, source.provider, token)
  const { store } = sessions
  // Not used before its ends are confirmed: else the provider could not send it again.
  if ((await store.addTo(id, 'seen', logoutTokenMs)).has('used')) {
    throw malformed('The logout token was used before.')
  }
  const by = { by: 'upstream', address: clientAddress(request), requestId: request.id } as const
  const ended = await endByProvider(sessions, name, issuedAt, by)
  await store.addTo(id, 'used', logoutTokenMs)
  return ended
}
