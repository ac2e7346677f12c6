/** Access tokens of machines, of a real OpenID provider, in the place of keys for scripts. */
import { createServer } from 'node:http'
import { generateKeyPair, exportJWK } from 'jose'
import { Provider } from 'oidc-provider'
import t from 'tap'
import { testGateway } from '../support/gateway.ts'
import { listen } from '../support/ports.ts'
import { openStream, streamingBackend } from '../support/streams.ts'
import { until } from '../support/until.ts'

const audience = 'https://console.example/api'
const backend = await streamingBackend(t.after)
const server = createServer()
const issuer = `http://127.0.0.1:${await listen(server)}`
t.after(() => {
  server.closeAllConnections()
  server.close()
})

let seconds = 3600
/** With a key of its own, which all call alike. */
async function newProvider(): Promise<Provider> {
  const { privateKey } = await generateKeyPair('ES256', { extractable: true })
  const key = { ...(await exportJWK(privateKey)), kid: 'a', alg: 'ES256', use: 'sig' }
  return new Provider(issuer, {
    jwks: { keys: [key] as never },
    clients: [
      {
        client_id: 'importer',
        client_secret: 'a-secret-of-the-machine-32-bytes',
        grant_types: ['client_credentials'],
        response_types: [],
        redirect_uris: [],
        id_token_signed_response_alg: 'ES256'
      }
    ],
    extraTokenClaims: () => ({ groups: ['importers'] }),
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_context, resource) => ({
          scope: '',
          audience: resource,
          accessTokenTTL: seconds,
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: 'ES256' } }
        })
      }
    }
  })
}

const [provider, stranger] = [await newProvider(), await newProvider()]
let isAway = false
let current = provider
server.on('request', (request, response) => {
  if (isAway) request.socket.destroy()
  else void current.callback()(request, response)
})

async function tokenOf(from: Provider, resource = audience): Promise<string> {
  current = from
  const body = new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: 'importer',
    client_secret: 'a-secret-of-the-machine-32-bytes',
    resource
  })
  const response = await fetch(`${issuer}/token`, { method: 'POST', body })
  current = provider
  return ((await response.json()) as { access_token: string }).access_token
}

const gatewayWith = async (after: (undo: () => unknown) => void, clientId = 'console') =>
  await testGateway(after, {
    gateway: {
      identity: { source: 'x-user-source' },
      login: {
        sources: {
          'users-file': { kind: 'users-file' },
          'sso': {
            ...{ kind: 'oidc', issuer, clientId, audience },
            user: { roles: 'groups', roleMap: { importers: 'user' } }
          }
        }
      }
    },
    routes: {
      upstreams: { b: { url: backend.url } },
      routes: {
        orders: {
          ...{ path: '/api/orders/*', upstream: 'b', methods: ['GET', 'POST'], keys: true },
          ...{ access: { roles: ['user'] }, passHeaders: ['authorization'] }
        },
        closed: { path: '/api/closed', upstream: 'b' }
      }
    }
  })
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

t.test('a machine calls with a token of the right audience, and nothing else passes', async t => {
  const gateway = await gatewayWith(t.after)
  const token = await tokenOf(provider)
  const cookie = await gateway.signIn('bob')
  const [head = '', claims = '', signature = ''] = token.split('.')
  const none = Buffer.from('{"alg":"none","typ":"JWT"}').toString('base64url')
  for (const [sent, path, status, errorCode, withCookie] of [
    [token, '/api/orders/1', 200],
    [token, '/api/account/profile', 200],
    [token, '/api/closed', 403, 'route.keys'],
    [await tokenOf(stranger), '/api/orders/1', 401, 'key.invalid'],
    [await tokenOf(stranger), '/api/orders/1', 401, 'key.invalid', true],
    [`${none}.${claims}.`, '/api/orders/1', 401, 'key.invalid'],
    [`${head}.${claims}.${signature.slice(0, -4)}AAAA`, '/api/orders/1', 401, 'key.invalid'],
    [await tokenOf(provider, 'https://other.example'), '/api/orders/1', 401, 'session.none'],
    [await tokenOf(provider, 'https://other.example'), '/api/orders/1', 200, undefined, true],
    ['eyJhbGciOiJub25lIn0.e30.', '/api/orders/1', 401, 'session.none']
  ] as const) {
    const called = await gateway.call(path, {
      headers: bearer(sent),
      ...(withCookie === true && { cookie })
    })
    t.match([called.status, called.json.errorCode], [status, errorCode], `${path} ${errorCode}`)
  }
  await gateway.call('/api/orders/1', { headers: bearer(token) })
  const { headers } = backend.seen.at(-1) ?? {}
  t.match(headers, { 'x-user-id': 'importer', 'x-user-roles': 'user', 'x-user-source': 'sso' })
  t.equal(headers?.authorization, undefined)
  t.notMatch(JSON.stringify(gateway.log), signature)
})

t.test('a token ends with its time, and for whom is blocked; its streams do too', async t => {
  const gateway = await gatewayWith(t.after)
  seconds = 3
  const headers = bearer(await tokenOf(provider))
  seconds = 3600
  const events = await openStream(t.after, `${gateway.url}/api/orders/events`, { headers })
  t.equal(events.status, 200)
  await events.ended
  t.match(events.text(), /tick/)

  await gateway.ops('/ops/api/users/block', { json: { name: 'importer' } })
  const another = bearer(await tokenOf(provider))
  const refused = await gateway.call('/api/orders/1', { headers: another })
  t.match(refused, { status: 403, json: { errorCode: 'login.blocked-by-operator' } })
})

t.test('while the provider is away a token cannot be checked: 503', async t => {
  const headers = bearer(await tokenOf(provider))
  // Of another client: it has read nothing yet.
  const gateway = await gatewayWith(t.after, 'another')
  isAway = true
  const { status, json } = await gateway.call('/api/orders/1', { headers })
  t.match([status, json.errorCode], [503, 'upstream.refused'])
  isAway = false
  await until('it can again', async () => {
    return (await gateway.call('/api/orders/1', { headers })).status === 200
  })
})

t.end()
