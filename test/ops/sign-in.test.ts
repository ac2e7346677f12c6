/** Sign-in without a name, links, and the ends of an operator's session. */
import t from 'tap'
import { testGateway } from '../support/gateway.ts'
import { linesIn } from '../support/ledger.ts'
import { callOps, postForm, signInToOps } from '../support/operator.ts'
import { textOf } from '../support/ops-pages.ts'
import { testSecret } from '../support/ops.ts'
import { testRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

const me = '/ops/api/me'
const environment = { SECRET: 'a session secret of at least thirty-two' }
const withRole = { gateway: { ops: { role: 'admin' } } }

async function post(opsUrl: string, fields: Record<string, string>, path = '/ops/') {
  const answer = await postForm(opsUrl, { act: 'sign-in', ...fields }, {}, path)
  return { ...answer, cookie: answer.headers['set-cookie']?.[0]?.split(';', 1)[0] }
}

const statusAt = async (opsUrl: string, cookie: string | undefined) =>
  (await callOps(opsUrl, me, { headers: { cookie } })).status

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
})

t.test('with ops.role the form takes no secret', async t => {
  const { opsUrl } = await testGateway(t.after, withRole)
  t.equal((await post(opsUrl, { secret: testSecret })).status, 401)
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
