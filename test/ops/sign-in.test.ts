/** Sign-in of operators, by whom and by what, and the ends of their sessions. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { stringify } from 'yaml'
import { noLockout, testGateway } from '../support/gateway.ts'
import { linesIn } from '../support/ledger.ts'
import { callOps, postForm, signInToOps } from '../support/operator.ts'
import { textOf } from '../support/ops-pages.ts'
import { testSecret } from '../support/ops.ts'
import { testRedis } from '../support/redis.ts'
import { password } from '../support/sign-in.ts'
import { until } from '../support/until.ts'
import { testUpstream } from '../support/upstream.ts'
import { hashOf } from '../support/users.ts'

const me = '/ops/api/me'
const environment = { SECRET: 'a session secret of at least thirty-two' }
const withRole = { gateway: { ops: { role: 'admin' } } }

async function post(opsUrl: string, fields: Record<string, string>, path = '/ops/') {
  const answer = await postForm(opsUrl, { act: 'sign-in', ...fields }, {}, path)
  return { ...answer, cookie: answer.headers['set-cookie']?.[0]?.split(';', 1)[0] }
}

const statusAt = async (opsUrl: string, cookie: string | undefined) =>
  (await callOps(opsUrl, me, { headers: { cookie } })).status

t.test('a user of a users file with ops.role signs in, sees, acts and signs out', async t => {
  const { opsUrl, log, signIn } = await testGateway(t.after, withRole)
  await signIn('bob')
  const { status, json, cookie, headers } = await signInToOps(opsUrl)
  t.equal(status, 303)
  t.match(json, { name: 'alice', via: 'session', source: 'users-file' })
  t.ok(json.until > Date.now() + 3_500_000 && json.until <= Date.now() + 3_600_000)
  t.match(headers['set-cookie']?.[0], /^console_ops=[\w.-]+; Path=\/; HttpOnly; SameSite=Strict$/)
  t.match((await callOps(opsUrl, me, { headers: { cookie } })).json, { name: 'alice' })
  t.match((await callOps(opsUrl, '/readyz', { headers: { cookie } })).json, {
    sessions: 'in this process'
  })
  const act = { json: { user: 'bob' }, headers: { cookie } }
  t.match((await callOps(opsUrl, '/ops/api/sessions/close', act)).json, { closed: 1 })
  const out = await postForm(opsUrl, { act: 'sign-out' }, { cookie })
  t.match(out, { status: 303, headers: { 'set-cookie': [/^console_ops=;.*Max-Age=0$/] } })
  t.match(await callOps(opsUrl, me, { headers: { cookie } }), {
    status: 401,
    json: { code: 'ops.session' }
  })
  const secrets = [password, cookie.split('=')[1] ?? '']
  for (const secret of secrets) t.notOk(JSON.stringify(log).includes(secret))
})

t.test('nobody signs in by name without ops.role, and the answer says so', async t => {
  const { opsUrl } = await testGateway(t.after)
  t.match(await signInToOps(opsUrl), {
    status: 403,
    cookie: '',
    json: { error: /ops\.role is not set/ }
  })
})

t.test('a user without the role, or of another source, is no operator', async t => {
  const usersFile = (file: string) => ({ kind: 'users-file', file })
  const sources = { 'users-file': usersFile('users.yaml'), 'staff': usersFile('staff.yaml') }
  const hash = hashOf(password)
  const users = {
    sven: { password: hash, roles: ['admin'] },
    tim: { password: hash, roles: ['user'] }
  }
  const { opsUrl } = await testGateway(t.after, {
    gateway: { ops: { role: 'admin', sources: ['staff'] }, login: { sources } },
    code: { 'staff.yaml': stringify({ users }) }
  })
  t.match(await signInToOps(opsUrl, 'sven'), { status: 303, json: { source: 'staff' } })
  t.match(await signInToOps(opsUrl, 'tim'), { status: 403, json: { code: 'ops.role' } })
  t.match(
    await signInToOps(opsUrl, 'alice'),
    { status: 401, json: { code: 'login.refused' } },
    'an admin of another source is as unknown here as anybody'
  )
})

t.test('operators of a back-end come from a source that ops.sources names only', async t => {
  const backend = await testUpstream(t.after, (_request, response, { body }) => {
    const { username, password: given } = JSON.parse(body.toString()) as Record<string, string>
    const isRight = given === password && username !== undefined
    response.statusCode = isRight ? 200 : 401
    response.setHeader('content-type', 'application/json')
    response.end(
      JSON.stringify({ id: `${username}-id`, roles: [username === 'olga' ? 'admin' : 'user'] })
    )
  })
  const backendSource = {
    kind: 'upstream-login',
    upstream: 'b',
    path: '/login',
    body: { username: '{username}', password: '{password}' },
    user: { id: 'id', roles: 'roles' }
  }
  const files = (sources: readonly string[]) => ({
    gateway: { ops: { role: 'admin', sources }, login: { sources: { staff: backendSource } } },
    routes: { upstreams: { b: { url: backend.url } } }
  })
  const { opsUrl, log } = await testGateway(t.after, files(['staff']))
  const { status, json, cookie } = await signInToOps(opsUrl, 'olga')
  t.match({ status, json }, { status: 303, json: { name: 'olga', source: 'staff' } })
  t.equal((await callOps(opsUrl, me, { headers: { cookie } })).status, 200)
  t.match(await signInToOps(opsUrl, 'tim'), { status: 403, json: { code: 'ops.role' } })
  t.match(await signInToOps(opsUrl, 'olga', { password: 'wrong' }), {
    status: 401,
    json: { code: 'login.refused' }
  })
  t.notOk(JSON.stringify(log).includes(password))
  const asked = backend.seen.length
  const without = await testGateway(t.after, files([]))
  t.notOk((await signInToOps(without.opsUrl, 'olga')).status === 303, 'no source is named')
  t.equal(backend.seen.length, asked, 'and the back-end hears of no guess')
})

t.test('guesses are counted apart from the console’s', async t => {
  const account = { failures: 3, every: '1m' }
  const { opsUrl, call, signIn, ops } = await testGateway(t.after, {
    ...withRole,
    limits: { lockout: { ...noLockout, account } }
  })
  const wrong = { username: 'alice', password: 'wrong' }
  for (let attempt = 0; attempt < 5; attempt++) await call('/api/auth/admin/login', { json: wrong })
  const locked = await call('/api/auth/admin/login', { json: { ...wrong, password } })
  t.equal(locked.status, 429, 'the console')
  t.equal((await signInToOps(opsUrl)).status, 303, 'the page')
  for (let attempt = 0; attempt < 5; attempt++) {
    await signInToOps(opsUrl, 'bob', { password: 'wrong' })
  }
  t.match(await signInToOps(opsUrl, 'bob'), {
    status: 429,
    json: { code: 'login.locked' },
    headers: { 'retry-after': /^\d+$/ }
  })
  t.ok(await signIn('bob'))
  t.match(await (await ops('/ops/api/lockouts')).json(), {
    lockouts: [{ account: 'alice' }, { kind: 'account at the operators’ page', account: 'bob' }]
  })
  await ops('/ops/api/lockouts/lift', { json: { account: 'bob' } })
  t.match(await signInToOps(opsUrl, 'bob'), { status: 403, json: { code: 'ops.role' } })
})

t.test('the session ends with a changed password, a lost role, or the user', async t => {
  const changes = [
    ['another password', { password: 'other', roles: ['admin'] }],
    ['without the role', { password, roles: ['user'] }],
    ['disabled', { password, roles: ['admin'], disabled: true }]
  ] as const
  const hash = hashOf(password)
  const other = hashOf('other')
  const hashed = (text: string) => (text === password ? hash : other)
  for (const [name, change] of changes) {
    const user = { password: hash, roles: ['admin'] }
    const gateway = await testGateway(t.after, { ...withRole, users: { users: { alice: user } } })
    const { cookie } = await signInToOps(gateway.opsUrl)
    t.equal((await callOps(gateway.opsUrl, me, { headers: { cookie } })).status, 200)
    const changed = { ...change, password: hashed(change.password) }
    const users = { alice: changed }
    writeFileSync(join(gateway.folder, 'users.yaml'), stringify({ users }))
    await gateway.ops('/ops/api/reload', { json: { yes: true } })
    const { status } = await callOps(gateway.opsUrl, me, { headers: { cookie } })
    t.equal(status, 401, name)
  }
})

t.test('without ops.role the form asks for the secret, whose guesses are counted', async t => {
  const { opsUrl } = await testGateway(t.after, {
    limits: { lockout: { accountAndAddress: 'off', account: 'off', address: { failures: 3 } } }
  })
  const page = textOf((await callOps(opsUrl, '/ops/', {})).text)
  t.match(page, /Operators’ secret.*console-gateway ops/)
  t.notMatch(page, /User name/)
  const right = await post(opsUrl, { secret: testSecret })
  t.match(right, { status: 303, headers: { location: '/ops/' } })
  const { json } = await callOps(opsUrl, me, { headers: { cookie: right.cookie } })
  t.match(json, { name: 'operator', via: 'session' })
  const guess = async () => (await post(opsUrl, { secret: 'a guess' })).status
  t.same([await guess(), await guess(), await guess(), await guess()], [401, 401, 401, 429])
  t.equal((await post(opsUrl, { secret: testSecret })).status, 429)
  t.equal(await statusAt(opsUrl, right.cookie), 200, 'who is signed in stays so')
})

t.test('where config has neither role nor secret, the form says how to open the page', async t => {
  const { opsUrl } = await testGateway(t.after, { gateway: { ops: { secret: '${NONE:-}' } } })
  const { text } = await callOps(opsUrl, '/ops/', {})
  t.match(textOf(text), /Run console-gateway ops where the gateway runs/)
  t.notMatch(text, /<input/)
  t.equal((await post(opsUrl, { secret: '' })).status, 401)
  const byName = await testGateway(t.after, withRole)
  t.equal((await post(byName.opsUrl, { secret: testSecret })).status, 401, 'nor with a role')
})

t.test('a link opens the page once, and not when it is old', async t => {
  const gateway = await testGateway(t.after, withRole)
  const { opsUrl, opsLink } = gateway
  const open = async (link: string, method = 'GET') =>
    await callOps(opsUrl, link.slice(opsUrl.length), { method })
  const link = opsLink(60_000)
  t.equal((await open(link, 'HEAD')).status, 401, 'a program that looks at links uses none up')
  const opened = await open(link)
  t.match(opened, { status: 303, headers: { location: '/ops/' } })
  const cookie = opened.headers['set-cookie']?.[0]?.split(';', 1)[0]
  const { json } = await callOps(opsUrl, me, { headers: { cookie } })
  t.match(json, { name: 'local', via: 'session' })
  for (const each of [link, opsLink(0), `${opsUrl}/ops/link/guessed`]) {
    const again = await open(each)
    t.match(again, {
      status: 303,
      headers: { 'location': '/ops/?link=over', 'set-cookie': undefined }
    })
    const { text } = await callOps(opsUrl, '/ops/?link=over', {})
    t.match(textOf(text), /used before, or is too old.*console-gateway ops/)
  }
  t.equal((await post(opsUrl, { username: 'alice', password: 'x' }, '/ops/?link=over')).status, 401)
  const more = await callOps(opsUrl, '/ops/api/link', { json: {}, headers: { cookie } })
  t.match(more, { status: 401 }, 'no session makes another')
  t.match(await (await gateway.ops('/ops/api/link', { json: {} })).json(), {
    url: new RegExp(`^${opsUrl}/ops/link/`)
  })
})

t.test('a sign-out ends a stolen cookie at all replicas within a second', async t => {
  const { url } = await testRedis(t.after)
  const replica = async () =>
    await testGateway(
      t.after,
      {
        gateway: {
          ops: { role: 'admin' },
          redis: { url },
          session: { secrets: ['${SECRET}'] },
          audit: { key: '${SECRET}' }
        }
      },
      environment
    )
  const [one, two] = [await replica(), await replica()]
  const statuses = async (cookie: string) => [
    await statusAt(one.opsUrl, cookie),
    await statusAt(two.opsUrl, cookie)
  ]
  const { cookie: stolen } = await signInToOps(one.opsUrl)
  const { cookie } = await signInToOps(two.opsUrl)
  t.same(await statuses(stolen), [200, 200])
  const began = performance.now()
  await postForm(one.opsUrl, { act: 'sign-out' }, { cookie })
  t.equal(await statusAt(one.opsUrl, stolen), 401)
  await until('the other replica knows', async () => (await statusAt(two.opsUrl, stolen)) === 401)
  t.comment(`${Math.round(performance.now() - began)} ms`)
  t.same(await statuses(cookie), [401, 401])
  const { cookie: next } = await signInToOps(two.opsUrl)
  t.same(await statuses(next), [200, 200])
  const acts = linesIn(one.folder).flatMap(({ act, operator, outcome }) =>
    act === undefined ? [] : [[act, operator, outcome]]
  )
  t.same(acts, [
    ['ops.sign-in', 'alice', 'done'],
    ['ops.sign-out', 'alice', 'done']
  ])
  const three = await replica()
  await until(
    'a new replica knows, too',
    async () => (await statusAt(three.opsUrl, stolen)) === 401
  )
  t.equal(await statusAt(three.opsUrl, next), 200)
})

t.test('a user whom an operator blocks is none any more, and does not become one', async t => {
  const { opsUrl, ops } = await testGateway(t.after, withRole)
  const { cookie } = await signInToOps(opsUrl)
  t.equal((await ops('/ops/api/users/block', { json: { name: 'alice' } })).status, 200)
  t.equal(await statusAt(opsUrl, cookie), 401)
  t.match(await signInToOps(opsUrl), { status: 403, json: { code: 'ops.role' } })
  await ops('/ops/api/users/unblock', { json: { name: 'alice' } })
  t.equal(await statusAt(opsUrl, cookie), 200)
})
