/** `init` with an OpenAPI document, and with a recording (HAR) of the console's traffic. */
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import { run, start } from '../../support/command.ts'
import { filesIn, newFolder, signInAndGet } from '../../support/init.ts'
import { type TestUpstream, testUpstream } from '../../support/upstream.ts'

const password = 'pass-phrase-of-Zoe'
const token = 'tok-0123456789abcdef'
const rows = Array.from({ length: 5 }, (_, index) => ({
  id: index + 1,
  customer: `Customer ${index}`
}))
const env = { LISTEN: '127.0.0.1:0', OPS_LISTEN: '127.0.0.1:0' }

/** A back-end with true statuses and an OpenAPI document. */
async function shop(t: Test, document?: object): Promise<TestUpstream> {
  return await testUpstream(t.after, (request, response, { method, url, body }) => {
    const [path = '', search] = url.split('?')
    const answer = (status: number, value: unknown) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
    if (path === '/openapi.json' && document !== undefined) return void answer(200, document)
    if (`${method} ${path}` === 'POST /v1/sessions/login') {
      const { mail, passphrase } = JSON.parse(String(body)) as Record<string, string>
      const isRight = mail === 'zoe@example.com' && passphrase === password
      return void answer(isRight ? 200 : 401, isRight ? { access_token: token } : { message: 'no' })
    }
    if (path !== '/v1/orders' && path !== '/v1/whoami') return void answer(404, { message: 'no' })
    if (request.headers.authorization !== `Bearer ${token}`) return void answer(401, {})
    if (path === '/v1/whoami') {
      const user = {
        id: 'z-1',
        email: 'zoe@example.com',
        full_name: 'Zoe Zimmer',
        roles: ['admin']
      }
      return void answer(200, user)
    }
    const query = new URLSearchParams(search)
    const size = Number(query.get('limit') ?? 3)
    const skipped = Number(query.get('offset') ?? 0)
    answer(200, { items: rows.slice(skipped, skipped + size), total: rows.length })
  })
}

const openapi = {
  openapi: '3.1.0',
  servers: [{ url: '/v1' }],
  paths: {
    '/sessions/login': {
      post: {
        requestBody: {
          content: { 'application/json': { schema: { $ref: '#/components/schemas/Login' } } }
        }
      }
    },
    '/whoami': { get: { responses: {} } },
    '/orders': {
      get: {
        parameters: [
          { name: 'offset', in: 'query' },
          { name: 'limit', in: 'query' }
        ],
        responses: {
          200: {
            content: { 'application/json': { schema: { $ref: '#/components/schemas/Page' } } }
          }
        }
      }
    },
    '/orders/{id}': { get: { responses: {} } }
  },
  components: {
    schemas: {
      Login: { properties: { mail: {}, passphrase: {}, user_agent: {} } },
      Page: { allOf: [{ properties: { items: { type: 'array' } } }] }
    }
  }
}

async function tryFolder(t: Test, folder: string, path: string): Promise<void> {
  t.match(await run(['check', '--config', folder]), { code: 0 })
  const gateway = start(t.after, folder, env)
  const said = await gateway.says('for operators on')
  const url = /listening on (http:\S+?),? /.exec(said)?.[1] ?? ''
  const { login } = parse(readFileSync(join(folder, 'gateway.yaml'), 'utf8')) as {
    login: { fields?: { username: string; password: string } }
  }
  const { fields = { username: 'username', password: 'password' } } = login
  const { status, list } = await signInAndGet(
    url,
    { [fields.username]: 'zoe@example.com', [fields.password]: password },
    `${path}?current=2&pageSize=2`
  )
  t.equal(status, 200)
  t.match(list, { data: [{ id: 3 }, { id: 4 }], total: 5 }, 'page 2 of the console')
}

t.test('an OpenAPI document at a common place tells sign-in, user, lists and paging', async t => {
  const backend = await shop(t, openapi)
  const folder = newFolder(t.after)
  const words = ['--backend-url', backend.url, '--user', 'zoe@example.com', '--yes']
  const { code, out, err } = await run(['init', folder, ...words], { input: password })
  t.same({ code, err }, { code: 0, err: '' })
  t.match(out, 'Read /openapi.json: 1 lists or records.')
  t.match(out, 'It answers who the user is at /v1/whoami.')
  await tryFolder(t, folder, '/api/v1/orders')
  const posts = backend.seen.filter(({ method }) => method !== 'GET').map(({ url }) => url)
  t.ok(
    posts.every(url => /login|logout/.test(url)),
    posts.join()
  )
})

t.test('a document in YAML is read from a file; what is none is refused', async t => {
  const backend = await shop(t)
  const folder = newFolder(t.after)
  const file = join(dirname(folder), 'shop.yaml')
  writeFileSync(file, JSON.stringify(openapi))
  const words = ['--backend-url', backend.url, '--user', 'zoe@example.com', '--yes', '--openapi']
  t.match(await run(['init', folder, ...words, file], { input: password }), { code: 0, err: '' })
  const other = newFolder(t.after)
  const refused = async (place: string) => await run(['init', other, ...words, place])
  t.match(await refused('http://elsewhere.example/openapi.json'), {
    code: 1,
    err: /neither a file/
  })
  t.match(await refused('/v1/nothing'), { code: 1, err: /is not an OpenAPI document/ })
  writeFileSync(file, '{ a: [')
  t.match(await refused(file), { code: 1, err: /neither JSON nor YAML/ })
})

interface Recorded {
  readonly method?: string
  readonly path: string
  readonly sent?: object
  readonly body: unknown
}

/** A recording of a console at another host, with a prefix of its development server. */
function recording(entries: readonly Recorded[]): object {
  return {
    log: {
      entries: entries.map(({ method = 'GET', path, sent, body }) => ({
        request: {
          method,
          url: `http://localhost:5173${path}`,
          headers: [
            { name: 'Authorization', value: 'Bearer recorded-token-of-another-day' },
            { name: 'Cookie', value: 'sid=recorded-cookie-value; theme=dark' }
          ],
          ...(sent !== undefined && {
            postData: { mimeType: 'application/json', text: JSON.stringify(sent) }
          })
        },
        response: {
          headers: [{ name: 'Set-Cookie', value: 'sid=recorded-other-cookie; Path=/' }],
          content: { mimeType: 'application/json', text: JSON.stringify(body) }
        }
      }))
    }
  }
}

t.test('a recording tells the console’s paths and paging, and nothing of it leaks', async t => {
  const backend = await shop(t)
  const folder = newFolder(t.after)
  const file = join(dirname(folder), 'traffic.har')
  const user = { id: 'u-77', email: 'zoe@example.com', full_name: 'Recorded Rita', roles: ['boss'] }
  writeFileSync(
    file,
    JSON.stringify(
      recording([
        {
          method: 'POST',
          path: '/dev/v1/sessions/login',
          sent: { mail: 'zoe@example.com', passphrase: 'recorded pass phrase' },
          body: { access_token: 'recorded-access-token' }
        },
        { path: '/dev/v1/whoami', body: user },
        {
          path: '/dev/v1/orders?current=1&pageSize=20&customer=Customer%20Secret',
          body: { items: [{ id: 1, customer: 'Customer Secret' }], total: 1 }
        },
        { path: '/dev/v1/people/rita', body: { id: 'rita', phone: '030-1234567' } },
        { path: '/dev/v1/people/4711', body: { id: 4711 } },
        { method: 'POST', path: '/dev/v1/orders', sent: { customer: 'X' }, body: { id: 2 } }
      ])
    )
  )
  const words = ['--backend-url', backend.url, '--har', file, '--user', 'zoe@example.com', '--yes']
  const { code, out, err } = await run(['init', folder, ...words], { input: password })
  t.same({ code, err }, { code: 0, err: '' })
  const routes = parse(readFileSync(join(folder, 'routes.yaml'), 'utf8')) as {
    endpoints: object
    routes: object
    paging: object
    upstreams: object
  }
  t.match(routes, {
    upstreams: { backend: { credential: 'bearer', paging: { offset: 'offset', size: 'limit' } } },
    paging: { page: 'current', size: 'pageSize' },
    endpoints: { login: { path: '/dev/v1/sessions/login' }, profile: { path: '/dev/v1/whoami' } },
    routes: {
      orders: { path: '/dev/v1/orders', rewrite: '/v1/orders', methods: ['GET', 'POST'] }
    }
  })
  t.same(Object.keys(routes.routes), ['orders'], 'paths with data are no routes')
  const everything = [out, ...filesIn(folder)].join('\n')
  const secrets = [
    password,
    token,
    'recorded',
    'Recorded',
    'Rita',
    'rita',
    'Customer S',
    '4711',
    'u-77'
  ]
  for (const value of [...secrets, '030-', 'zoe@', 'Zimmer', 'z-1', 'boss', 'dark']) {
    t.notOk(everything.includes(value), value)
  }
})
