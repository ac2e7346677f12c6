/**
 * A real OpenID provider on loopback, of another site than `localhost`: accounts, faults, new keys,
 * another clock.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { generateKeyPairSync } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
// @ts-expect-error: it has no types
import MemoryAdapter from 'oidc-provider/lib/adapters/memory_adapter.js'
import { Provider, type ClientMetadata, type Configuration, type JWK } from 'oidc-provider'
import { decodeJwt, importJWK, type JWK as JoseKey, SignJWT } from 'jose'
import { listen } from './ports.ts'

export const oidcClient = { clientId: 'console', clientSecret: 'a-secret-of-the-client-32-bytes!' }
/** Whose access tokens are in the group `importers`. */
const machine = { client_id: 'importer', client_secret: 'a-secret-of-the-machine-32-bytes' }
export const oidcSource = 'sso'
/** Where the gateway's sign-in begins with a source of that name. */
export const oidcPath = `/api/auth/oidc/${oidcSource}`
/** And that of operators. */
export const opsOidcPath = `/ops/sign-in/${oidcSource}`

/** A claim that `require` may name, as Auth0 wants them. */
export const staffClaim = 'https://example.com/staff'

type Claims = Record<string, unknown>
/** It breaks connections off, never answers, answers with a page, or with a status. */
type Fault = 'broken' | 'silent' | 'page' | number

export type TestProvider = Awaited<ReturnType<typeof testProvider>>

/** The clock of what is awaited in it is off by so many milliseconds. */
const clockShift = new AsyncLocalStorage<number>()

function shiftClock(cleanUp: (undo: () => unknown) => void): void {
  const { now } = Date
  Date.now = () => now() + (clockShift.getStore() ?? 0)
  cleanUp(() => {
    Date.now = now
  })
}

function newKey(): JWK {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const kid = `key-${Math.random().toString(36).slice(2)}`
  return { ...privateKey.export({ format: 'jwk' }), kid, alg: 'ES256', use: 'sig' } as JWK
}

const readForm = async (request: IncomingMessage) => new URLSearchParams(await text(request))

/**
 * Everything may be changed while it runs. Call `register` with the gateways' addresses first.
 * @param cleanUp registers what has to be undone
 */
export async function testProvider(cleanUp: (undo: () => unknown) => void) {
  shiftClock(cleanUp)
  const server = createServer()
  const issuer = `http://127.0.0.1:${await listen(server)}`
  const accounts: Record<string, Claims> = {
    alice: {
      preferred_username: 'alice',
      name: 'Alice Admin',
      email: 'alice@example.com',
      groups: ['console-admins', 'staff']
    },
    bob: { preferred_username: 'bob', name: 'Bob', groups: ['staff'] }
  }
  let keys = [newKey()]
  let client: Partial<ClientMetadata> = {}
  let provider: Provider
  let handle: (request: IncomingMessage, response: ServerResponse) => unknown

  /** Its sessions and grants outlive it. */
  const build = () => {
    provider = new Provider(issuer, configuration())
    provider.on('grant.success', ({ oidc, body }) => {
      self.idTokens.push(...[(body as { id_token?: string }).id_token ?? []].flat())
      self.grants.push(String(oidc.params?.['grant_type']))
    })
    provider.on('grant.error', ({ oidc }, { message }) => {
      self.grants.push(`${String(oidc.params?.['grant_type'])}: ${message}`)
    })
    provider.use(async (context, next) => {
      await next()
      const { id_token: idToken } = (context.body ?? {}) as { id_token?: string }
      if (self.claims === undefined || idToken === undefined) return
      const token = new SignJWT({ ...decodeJwt(idToken), ...self.claims })
      const signed = token.setProtectedHeader({ alg: 'ES256', kid: self.key().kid ?? '' })
      Object.assign(context.body as object, {
        id_token: await signed.sign(await importJWK(self.key() as JoseKey, 'ES256'))
      })
    })
    handle = provider.callback()
  }

  const self = {
    issuer,
    /** Claims by `sub`. */
    accounts,
    /** Of access tokens. */
    tokenSeconds: 3600,
    /** Of its clock, in milliseconds. */
    clockShift: 0,
    /** Of ID tokens, in place of the right ones. */
    claims: undefined as object | undefined,
    /** What happens to requests whose path fits `faultAt`. */
    fault: undefined as Fault | undefined,
    faultAt: /./,
    /** Paths, with their queries, that were asked for. */
    asked: [] as string[],
    /** The requests for tokens: the type of grant, and the error if there was one. */
    grants: [] as string[],
    /** That it gave, and those with which it called a gateway. */
    idTokens: [] as string[],
    logoutTokens: [] as string[],
    /** An access token of the machine `importer`, for a resource. */
    machineToken: async (resource: string): Promise<string> => {
      const body = new URLSearchParams({
        grant_type: 'client_credentials',
        ...machine,
        resource
      })
      const response = await fetch(`${issuer}/token`, { method: 'POST', body })
      return ((await response.json()) as { access_token: string }).access_token
    },
    /** The key that signs now. */
    key: () => keys[0] as JWK,
    /** The current instance: its events and stored models. */
    provider: () => provider,
    /** Redirect and sign-out addresses of gateways such as `http://localhost:8080`. */
    register: (...gateways: readonly string[]) => {
      const uris = (path: string) => gateways.map(each => each + path)
      client = {
        redirect_uris: [oidcPath, opsOidcPath].flatMap(path => uris(`${path}/callback`)),
        post_logout_redirect_uris: uris('/'),
        ...(gateways[0] && {
          backchannel_logout_uri: `${gateways[0]}${oidcPath}/backchannel-logout`
        })
      }
      build()
    },
    /** From now on it signs with another key, and the one before is gone. @returns undoes it */
    rotateKeys: () => {
      const before = keys
      keys = [newKey()]
      build()
      return () => {
        keys = before
        build()
      }
    },
    /** The source of `login.sources`. */
    config: (more: object = {}) => ({
      kind: 'oidc',
      issuer,
      clientId: oidcClient.clientId,
      clientSecret: '${OIDC_SECRET}',
      scopes: ['profile', 'email', 'offline_access'],
      user: { roles: 'groups', roleMap: { 'console-admins': 'admin' } },
      ...more
    }),
    environment: { OIDC_SECRET: oidcClient.clientSecret },
    browser: () => providerBrowser(self)
  }

  const configuration = (): Configuration => ({
    // The default one is of one instance.
    adapter: (name: string) => new MemoryAdapter(name),
    jwks: { keys },
    clients: [
      {
        client_id: oidcClient.clientId,
        client_secret: oidcClient.clientSecret,
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        redirect_uris: [],
        id_token_signed_response_alg: 'ES256',
        backchannel_logout_session_required: true,
        ...client
      } as ClientMetadata,
      {
        ...machine,
        grant_types: ['client_credentials'],
        response_types: [],
        redirect_uris: [],
        id_token_signed_response_alg: 'ES256'
      }
    ],
    extraTokenClaims: (_context, { kind }) =>
      kind === 'ClientCredentials' ? { groups: ['importers'] } : undefined,
    scopes: ['openid', 'offline_access', 'profile', 'email'],
    claims: {
      openid: ['sub', 'groups', staffClaim],
      profile: ['name', 'preferred_username'],
      email: ['email']
    },
    cookies: { keys: ['a-key-of-cookies'] },
    ttl: {
      AccessToken: () => self.tokenSeconds,
      IdToken: 3600,
      Grant: 86_400,
      Session: 86_400,
      Interaction: 3600,
      RefreshToken: 86_400,
      AuthorizationCode: 60
    },
    rotateRefreshToken: true,
    issueRefreshToken: async () => true,
    // Nobody is asked for consent.
    loadExistingGrant: async ({ oidc }) => {
      const known = oidc.session?.grantIdFor(oidcClient.clientId)
      const found = known === undefined ? known : await oidc.provider.Grant.find(known)
      if (found !== undefined) return found
      const grant = new oidc.provider.Grant({
        clientId: oidc.client?.clientId ?? '',
        accountId: oidc.session?.accountId ?? ''
      })
      grant.addOIDCScope('openid offline_access profile email')
      await grant.save()
      return grant
    },
    findAccount: (_context, sub) =>
      accounts[sub] && { accountId: sub, claims: async () => ({ sub, ...accounts[sub] }) },
    interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_context, audience) => ({
          scope: '',
          audience,
          accessTokenTTL: self.tokenSeconds,
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: 'ES256' } }
        })
      },
      backchannelLogout: { enabled: true },
      revocation: { enabled: true, allowedPolicy: () => true },
      rpInitiatedLogout: { enabled: true }
    },
    // Its own refuses to call this machine.
    fetch: async (url, { method, headers, body }: RequestInit = {}) => {
      const response = await fetch(url, { method, headers, body } as RequestInit)
      if (body instanceof URLSearchParams) {
        self.logoutTokens.push(body.get('logout_token') ?? '')
      }
      return response
    }
  })

  /** The page on which an account is chosen, and what it posts. */
  async function interact(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== 'POST') {
      response.setHeader('content-type', 'text/html')
      const button = (name: string) => `<button name="account" value="${name}">${name}</button>`
      response.end(`<form method="post">${Object.keys(accounts).map(button).join('')}</form>`)
      return
    }
    const chosen = (await readForm(request)).get('account') ?? ''
    const outcome = chosen === '' ? { error: 'access_denied' } : { login: { accountId: chosen } }
    await provider.interactionFinished(request, response, outcome)
  }

  server.on('request', (request, response) => {
    const path = request.url ?? ''
    self.asked.push(path)
    if (self.fault !== undefined && self.faultAt.test(path)) {
      if (self.fault === 'broken') request.socket.destroy()
      if (self.fault === 'page') response.setHeader('content-type', 'text/html').end('<html>')
      if (typeof self.fault === 'number') response.writeHead(self.fault).end()
      return
    }
    void clockShift.run(self.clockShift, async () => {
      if (path.startsWith('/interaction/')) return await interact(request, response)
      // It takes a form only where its cookies are `SameSite=None`, which needs https.
      if (path === '/session/end' && request.method === 'POST') {
        const form = await readForm(request)
        Object.assign(request, { method: 'GET', url: `${path}?${form.toString()}` })
      }
      await handle(request, response)
    })
  })
  cleanUp(() => {
    server.closeAllConnections()
    server.close()
  })
  build()
  return self
}

/** A browser that follows no redirect and runs no script: its cookies, and its requests. */
export function plainBrowser() {
  const jar = new Map<string, string>()
  const ask = async (
    url: string | URL,
    init: RequestInit = {},
    isSent: (name: string) => boolean = () => true
  ): Promise<Response> => {
    const sent = [...jar].filter(([name]) => isSent(name))
    const cookie = sent.map(([name, value]) => `${name}=${value}`).join('; ')
    const headers = { cookie, ...(init.headers as object) }
    const response = await fetch(url, { ...init, redirect: 'manual', headers })
    for (const set of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(set) ?? []
      if (value === '') jar.delete(name)
      else jar.set(name, value)
    }
    return response
  }
  return { jar, ask }
}

/** A browser's part at the provider: one request that signs in. */
function providerBrowser({ issuer }: { readonly issuer: string }) {
  const { ask } = plainBrowser()
  /**
   * Signs in where the gateway sent the browser.
   * @param account of the sign-in, if one is asked for; '' refuses it
   * @returns where the provider sends the browser in the end
   */
  return async (authorizationUrl: string, account: string): Promise<string> => {
    let url = authorizationUrl
    for (let hops = 0; hops < 10; hops++) {
      let response = await ask(url)
      if (response.status === 200 && url.includes('/interaction/')) {
        response = await ask(url, { method: 'POST', body: new URLSearchParams({ account }) })
      }
      const next = response.headers.get('location')
      if (next === null) throw new Error(`${url}: ${response.status} ${await response.text()}`)
      url = new URL(next, url).href
      if (!url.startsWith(`${issuer}/`)) return url
    }
    throw new Error('the provider redirects without end')
  }
}
