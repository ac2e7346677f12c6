/** Logs: every attempt is told, no secret is, and nobody writes lines of their own. */
import t from 'tap'
import { rmSync } from 'node:fs'
import { loadConfig } from '../../src/config/read/load.ts'
import { startGateway } from '../../src/process/gateway.ts'
import { createLogger } from '../../src/services/services.ts'
import { configFolder, cookieOf, password, testGateway } from '../support/gateway.ts'
import { raw, request } from '../support/raw.ts'
import { testUpstream } from '../support/upstream.ts'
import { loginPath, wireRoutes } from '../support/wire.ts'
import { until } from '../support/until.ts'

const backendToken = 'backend-token-7f3a'
const backend = await testUpstream(t.after, (_request, response, { url, body }) => {
  const answer = (status: number, text: string) => {
    response
      .writeHead(status, {
        'content-type': 'application/json',
        'set-cookie': 'inner=inner-cookie-5d1c'
      })
      .end(text)
  }
  if (url === '/login') {
    const { username } = JSON.parse(body.toString()) as { username: string }
    if (username === 'carol') return answer(200, JSON.stringify({ id: 7, token: backendToken }))
    if (username === 'odd') return answer(200, `{"token":"${backendToken}","id":`)
    return answer(401, JSON.stringify({ message: `no, ${body.toString()}` }))
  }
  if (url.startsWith('/shaped')) return answer(200, '{"items":Zq7-short}')
  if (url.startsWith('/public/broken')) return void response.socket?.destroy()
  if (url.startsWith('/public/error')) {
    return answer(500, `{"message":"oops","token":"${backendToken}"}`)
  }
  answer(200, '{}')
})

const lines: string[] = []
const folder = await configFolder({
  gateway: {
    login: {
      sources: {
        'users-file': { kind: 'users-file', file: 'users.yaml' },
        'backend': {
          kind: 'upstream-login',
          upstream: 'backend',
          path: '/login',
          user: { id: 'id' },
          token: 'token',
          outcomes: [{ is: 'refused', status: [401] }]
        }
      }
    },
    identity: { prefix: true }
  },
  routes: {
    ...wireRoutes(
      backend.url,
      { credential: 'bearer' },
      {
        shaped: {
          path: '/api/shaped/*',
          access: 'public',
          upstream: 'backend',
          rewrite: '/shaped/*',
          shape: 'list'
        }
      }
    ),
    shapes: { list: [{ wrap: 'list' }] }
  }
})
const gateway = await startGateway(
  loadConfig(folder, {}),
  createLogger(
    { level: 'trace', format: 'json' },
    {
      write: line => {
        lines.push(line)
      }
    }
  )
)
t.after(async () => {
  await gateway.stop({ noticeMs: 0 })
  rmSync(folder, { recursive: true, force: true })
})

const parsed = () => lines.map(line => JSON.parse(line) as Record<string, unknown>)
const requests = () => parsed().filter(({ msg }) => msg === 'request')
const post = (path: string, body: string, fields: string[] = []) =>
  raw(
    gateway.url,
    request(
      `POST ${path}`,
      ['Content-Type: application/json', `Content-Length: ${Buffer.byteLength(body)}`, ...fields],
      body
    )
  )
const signIn = async (username: string, typed = password) => {
  const answer = await post(loginPath, JSON.stringify({ username, password: typed }))
  return /^set-cookie: (console_sid=[^;]+)/im.exec(answer.head)?.[1] ?? ''
}

t.test('no secret is logged, at no level, whatever goes wrong', async t => {
  const secrets = {
    wrongPassword: 'hunter2-wrong-1c',
    otherPassword: 'hunter3-other-2d',
    authorization: 'client-bearer-3e',
    query: 'query-token-4f',
    cookie: 'foreign-cookie-5a',
    header: 'api-key-6b',
    body: 'body-secret-7c'
  }
  const mine = await signIn('alice')
  const carols = await signIn('carol')
  t.ok(mine !== '' && carols !== '', 'both are signed in')
  await signIn('alice', secrets.wrongPassword)
  await signIn('nobody', secrets.otherPassword)
  await signIn('odd', secrets.otherPassword)
  const fields = (cookie: string) => [
    `Cookie: ${cookie}; other=${secrets.cookie}; TOKEN__=${secrets.cookie}`,
    `Authorization: Bearer ${secrets.authorization}`,
    `Proxy-Authorization: Basic ${secrets.authorization}`,
    `X-Api-Key: ${secrets.header}`,
    `Referer: http://gateway.test/x?token=${secrets.query}`,
    `User-Agent: x ${secrets.header}`
  ]
  for (const cookie of [mine, carols, `${mine}x`, 'console_sid=garbage-8d']) {
    for (const path of [
      '/api/notices',
      '/api/things/1',
      '/api/open/1',
      '/api/open/broken',
      '/api/open/error',
      '/api/shaped/1',
      '/api/nothing',
      '/api/account/profile',
      '/api//bad',
      '/api/open/%zz'
    ]) {
      await raw(
        gateway.url,
        request(
          `GET ${path}?token=${secrets.query}&access_token=${secrets.query}#${secrets.query}`.replace(
            /#.*/,
            ''
          ),
          fields(cookie)
        )
      )
    }
    await post('/api/things/1', `{"secret":"${secrets.body}"}`, fields(cookie))
  }
  for (const body of [
    '{"username":"alice","password":Zq7-short}',
    `{"username":"alice","password":"${secrets.wrongPassword}`,
    `{"username":"alice","password":"${secrets.wrongPassword}"x}`,
    `{"password":"${secrets.wrongPassword}"}`,
    `{"username":["alice"],"password":"${secrets.wrongPassword}"}`,
    `password=${secrets.wrongPassword}`,
    `"${secrets.wrongPassword}"`,
    `{"__proto__":{"password":"${secrets.wrongPassword}"}}`,
    `{"username":"alice","password":"${secrets.wrongPassword.repeat(400)}"}`
  ]) {
    await post(loginPath, body)
  }
  // What never becomes a request.
  for (const bytes of [
    `GET /api/notices?token=${secrets.query} HTTP/1.1\r\nHost: gateway.test\r\nAuthorization: Bearer ${secrets.authorization}\r\nCookie: ${mine}\r\nBroken ${secrets.header}\r\n\r\n`,
    `${secrets.body}\r\n\r\n`,
    request(
      'POST /api/things/1',
      [`Cookie: ${mine}`, 'Transfer-Encoding: chunked', 'Content-Type: text/plain'],
      `${secrets.body}\r\n`
    ),
    `GET /${secrets.query.repeat(2000)} HTTP/1.1\r\n\r\n`,
    request(`GET /x?token=${secrets.query}`, [
      'Connection: Upgrade',
      'Upgrade: websocket',
      `Sec-WebSocket-Protocol: ${secrets.header}`
    ])
  ]) {
    await raw(gateway.url, bytes, { enough: () => false })
  }
  await post('/api/account/logout', '', [`Cookie: ${carols}`])
  const text = lines.join('')
  const ids = [mine, carols].map(cookie => decodeURIComponent(cookie.split('=')[1] ?? ''))
  const forbidden: Record<string, string> = {
    ...secrets,
    password,
    backendToken,
    shortToken: 'Zq7-short',
    innerCookie: 'inner-cookie-5d1c',
    mine,
    carols,
    garbage: 'garbage-8d',
    ...Object.fromEntries(
      ids.flatMap((id, index) => [
        [`id ${index}`, id.split('.')[0] ?? ''],
        [`signature ${index}`, id.split('.')[1] ?? '']
      ])
    ),
    hash: '$argon2id$'
  }
  for (const [name, secret] of Object.entries(forbidden)) {
    t.notOk(
      text.includes(secret),
      `${name} is not in the log${text.includes(secret) ? `: ${lines.find(line => line.includes(secret))?.slice(0, 400)}` : ''}`
    )
  }
  await until('and it was not empty', () => requests().length > 40)
})

t.test('nobody forges a line, or colours the terminal of who reads it', async t => {
  const forged = '{"level":"info","msg":"signed in","user":"root"}'
  const inputs = [
    `alice\r\n${forged}`,
    `alice\n${forged}\n`,
    '\u001b[2J\u001b[31mred\u001b[0m',
    `","user":"root","x":"`,
    '\u0000\u0007\b',
    '\u2028\u2029\u0085',
    '\u202eecila',
    '\ud800',
    'x'.repeat(255)
  ]
  const before = lines.length
  for (const [index, input] of inputs.entries()) {
    const attempts = lines.length
    await post(loginPath, JSON.stringify({ username: input, password: 'x' }))
    const refusal = () =>
      parsed()
        .slice(attempts)
        .find(({ event: name }) => name === 'login.refused')
    await until(`the refusal of name ${index + 1} is logged`, () => refusal() !== undefined)
    const event = refusal()
    t.ok(
      event !== undefined && event['user'] !== 'root' && event['level'] === 'info',
      `name ${index + 1}`
    )
  }
  await raw(
    gateway.url,
    Buffer.from(
      request('GET /api/open/x', [
        `X-Forwarded-For: ${forged}`,
        'User-Agent: \x1b[31m',
        'X-Request-Id: chosen'
      ]),
      'latin1'
    )
  )
  await raw(gateway.url, request('GET /api/%0d%0a%7b%22level%22%3a1%7d'))
  await raw(gateway.url, Buffer.from(request('GET /api/"}{"level":"info"'), 'latin1'))
  for (const line of lines.slice(before)) {
    t.ok(/^\{[^\u0000-\u001f]*\}\n$/.test(line), 'one line, without controls')
    const { level, time, user } = JSON.parse(line) as Record<string, unknown>
    t.match(
      { level, time },
      { level: /^(?:trace|debug|info|warn|error)$/, time: /^\d{4}-\d\d-\d\dT[\d:.]+Z$/ }
    )
    t.not(user, 'root')
  }
})

t.test('each attempt leaves a line that says what became of it', async t => {
  const own = await testGateway(t.after, { routes: wireRoutes(backend.url) })
  const cookie = cookieOf(await own.call(loginPath, { json: { username: 'alice', password } }))
  await own.call(loginPath, { json: { username: 'alice', password: 'no' } })
  await own.call('/api/notices')
  await own.call('/api/admin/x', { cookie: await own.signIn('bob') })
  await own.call('/api/things/1', { cookie, json: {}, headers: { origin: 'https://evil.example' } })
  await raw(own.url, request('GET /api//notices'))
  await raw(own.url, 'broken\r\n\r\n', { enough: () => false })
  await own.call('/api/account/logout', { cookie })
  const logged = (what: string, fields: Record<string, unknown>) =>
    until(`a line of ${what}`, () => {
      return own.log.some(line =>
        Object.entries(fields).every(([name, value]) => line[name] === value)
      )
    })
  await logged('a sign-in', { event: 'login', user: 'alice', address: '127.0.0.1' })
  await logged('a refused one', { event: 'login.refused', user: 'alice', address: '127.0.0.1' })
  await logged('a sign-out', { event: 'logout', user: 'alice' })
  await logged('a call without a session', { msg: 'request', route: 'notices', status: 401 })
  await logged('one without the role', { msg: 'request', route: 'admin', status: 403, user: 'bob' })
  await logged('one from another site', {
    msg: 'request',
    route: 'things',
    status: 403,
    user: 'alice'
  })
  await logged('an odd path', { msg: 'request', path: '/api//notices', status: 400 })
  await logged('what is no request', {
    event: 'connection.refused',
    code: 'request.malformed',
    address: '127.0.0.1'
  })
})

t.end()
