/** Logs: every attempt is told, no secret is, and nobody writes lines of their own. */
import t from 'tap'
import { password, testGateway } from '../support/gateway.ts'
import { raw, request } from '../support/raw.ts'
import { testUpstream } from '../support/upstream.ts'
import { loginPath, wireRoutes } from '../support/wire.ts'

const secrets = {
  wrongPassword: 'hunter2-wrong-1c',
  authorization: 'client-bearer-3e',
  query: 'query-token-4f',
  cookie: 'foreign-cookie-5a',
  header: 'api-key-6b',
  body: 'body-secret-7c',
  garbage: 'garbage-8d',
  short: 'Zq7-short',
  token: 'backend-token-7f3a',
  innerCookie: 'inner-cookie-5d1c',
  password,
  hash: '$argon2id$'
}
const backend = await testUpstream(t.teardown, (_request, response, { url, body }) => {
  const answer = (status: number, text: string) => {
    const headers = { 'content-type': 'application/json', 'set-cookie': `a=${secrets.innerCookie}` }
    response.writeHead(status, headers).end(text)
  }
  if (url === '/login') {
    const { username } = JSON.parse(body.toString()) as { username: string }
    if (username === 'carol') return answer(200, JSON.stringify({ id: 7, token: secrets.token }))
    if (username === 'odd') return answer(200, `{"token":"${secrets.token}","id":`)
    return answer(401, JSON.stringify({ message: `no, ${body.toString()}` }))
  }
  if (url.startsWith('/public/broken')) return void response.socket?.destroy()
  if (url.startsWith('/public/error')) return answer(500, `{"token":"${secrets.token}"}`)
  answer(200, url.includes('/shaped') ? `{"items":${secrets.short}}` : '{}')
})

const shaped = { path: '/api/shaped/*', access: 'public', upstream: 'backend', shape: 'list' }
const gateway = await testGateway(t.teardown, {
  gateway: {
    login: { sources: { 'users-file': { kind: 'users-file' } } },
    identity: { prefix: true }
  },
  source: { upstream: 'backend', token: 'token', outcomes: [{ is: 'refused', status: [401] }] },
  routes: {
    ...wireRoutes(backend.url, { credential: 'bearer' }, { shaped }),
    shapes: { list: [{ wrap: 'list' }] }
  }
})

const post = (path: string, body: string, fields: string[] = []) => {
  const length = `Content-Length: ${Buffer.byteLength(body)}`
  const all = ['Content-Type: application/json', length, ...fields]
  return raw(gateway.url, request(`POST ${path}`, all, body))
}

t.test('no secret is logged, at no level, whatever goes wrong', async t => {
  const { wrongPassword, query } = secrets
  const mine = await gateway.signIn()
  const carols = await gateway.signIn('carol')
  for (const typed of [
    `{"username":"alice","password":"${wrongPassword}"}`,
    `{"username":"odd","password":"${wrongPassword}"}`,
    `{"username":["alice"],"password":"${wrongPassword}"}`,
    `{"username":"alice","password":"${wrongPassword.repeat(400)}"}`,
    `{"username":"alice","password":${secrets.short}}`,
    `{"username":"alice","password":"${wrongPassword}`,
    `{"__proto__":{"password":"${wrongPassword}"}}`,
    `password=${wrongPassword}`
  ]) {
    await post(loginPath, typed)
  }
  for (const cookie of [mine, carols, `${mine}x`, `console_sid=${secrets.garbage}`]) {
    const fields = [
      `Cookie: ${cookie}; other=${secrets.cookie}; TOKEN__=${secrets.cookie}`,
      `Authorization: Bearer ${secrets.authorization}`,
      `Proxy-Authorization: Basic ${secrets.authorization}`,
      `X-Api-Key: ${secrets.header}`,
      `Referer: http://gateway.test/x?token=${query}`
    ]
    const ofBackEnd = ['notices', 'open/1', 'open/broken', 'open/error', 'shaped/1']
    for (const path of [...ofBackEnd, 'nothing', 'account/profile', '/bad', 'open/%zz']) {
      const target = `/api/${path}?token=${query}&access_token=${query}`
      await raw(gateway.url, request(`GET ${target}`, fields))
    }
    await post('/api/things/1', `{"secret":"${secrets.body}"}`, fields)
  }
  const bad = [`Cookie: ${mine}`, `Authorization: Bearer ${secrets.authorization}`, secrets.header]
  const chunked = [`Cookie: ${mine}`, 'Transfer-Encoding: chunked', 'Content-Type: text/plain']
  const upgrade = ['Connection: Upgrade', 'Upgrade: websocket']
  for (const bytes of [
    request(`GET /api/notices?token=${query}`, bad),
    `${secrets.body}\r\n\r\n`,
    request('POST /api/things/1', chunked, `${secrets.body}\r\n`),
    `GET /${query.repeat(2000)} HTTP/1.1\r\n\r\n`,
    request(`GET /x?token=${query}`, [...upgrade, `Sec-WebSocket-Protocol: ${secrets.header}`])
  ]) {
    await raw(gateway.url, bytes, { enough: () => false })
  }
  await post('/api/account/logout', '', [`Cookie: ${carols}`])
  for (const event of ['login', 'logout', 'login.refused']) {
    const line = await gateway.logged(each => each['event'] === event)
    t.match(line, { user: /^(?:alice|carol)$/, address: '127.0.0.1' }, event)
  }
  const parts = [mine, carols].flatMap(cookie => {
    const value = decodeURIComponent(cookie.split('=')[1] ?? '')
    return [cookie, ...value.split('.')]
  })
  const lines = gateway.log.map(line => JSON.stringify(line))
  t.ok(lines.length > 40)
  for (const secret of [...Object.values(secrets), ...parts]) {
    t.same(lines.filter(line => line.includes(secret)).slice(0, 1), [], secret)
  }
})

t.test('nobody forges a line, or colours the terminal of who reads it', async t => {
  const forged = '{"level":"info","msg":"signed in","user":"root"}'
  const before = gateway.log.length
  const names = [
    ...[`alice\r\n${forged}`, '\u001b[2J\u001b[31mred\u001b[0m', `","user":"root","x":"`],
    ...['\u0000\u0007\b', '\u2028\u2029\u0085', '\u202eecila', '\ud800']
  ]
  for (const [index, name] of names.entries()) {
    const from = gateway.log.length
    await post(loginPath, JSON.stringify({ username: name, password: 'x' }))
    const line = await gateway.logged(({ event }) => event === 'login.refused', from)
    t.match(line, { level: 'info' }, `name ${index}`)
    t.not(line['user'], 'root')
  }
  const agent = [`X-Forwarded-For: ${forged}`, 'User-Agent: \x1b[31m', 'X-Request-Id: chosen']
  await raw(gateway.url, Buffer.from(request('GET /api/open/x', agent), 'latin1'))
  await raw(gateway.url, request('GET /api/%0d%0a%7b%22level%22%3a1%7d'))
  await raw(gateway.url, request('GET /api/"}{"level":"info"'))
  // Each was parsed, and so is one line: JSON takes no raw control characters.
  for (const line of gateway.log.slice(before)) {
    t.match(line, { level: /^(?:debug|info|warn|error)$/, time: /^\d{4}-\d\d-\d\dT[\d:.]+Z$/ })
    t.not(line['user'], 'root')
  }
})
