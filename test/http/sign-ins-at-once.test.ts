/** Many sign-ins at once: no way round the counts, and no right password is turned away. */
import { connect, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { watchArgon2 } from '../support/argon2.ts'
import {
  type Called,
  noLockout,
  password,
  type TestGateway,
  testGateway
} from '../support/gateway.ts'
import { request } from '../support/raw.ts'
import { until } from '../support/until.ts'
import { json, testUpstream } from '../support/upstream.ts'
import { loginPath } from '../support/wire.ts'

const attempt = (
  gateway: TestGateway,
  username: string,
  typed = password,
  address = '198.51.100.1'
) =>
  gateway.call(loginPath, {
    json: { username, password: typed },
    headers: { 'x-forwarded-for': address }
  })

const signIns = (gateway: TestGateway, times: number, typed = password) =>
  Promise.all(Array.from({ length: times }, (_, index) => attempt(gateway, `user-${index}`, typed)))

const count = (answers: readonly Called[], status: number) =>
  answers.filter(answer => answer.status === status).length

/** A gateway before a back-end whose sign-in says yes to the right password, when it is let. */
async function slowSignIn(t: Test, lockout: object = {}) {
  const waiting: Array<() => void> = []
  let [isHeld, running, most, asked] = [true, 0, 0, 0]
  const backend = await testUpstream(t.after, (incoming, response, seen) => {
    const { username: id, password: typed } = JSON.parse(String(seen.body)) as Record<
      string,
      string
    >
    asked++
    most = Math.max(most, ++running)
    const answer = () => {
      running--
      const isRight = typed === password
      json(isRight ? 200 : 401, { code: isRight ? 0 : 1, id })(incoming, response, seen)
    }
    if (isHeld) waiting.push(answer)
    else setImmediate(answer)
  })
  const gateway = await testGateway(t.after, {
    gateway: { server: { trustedProxies: ['127.0.0.1'] } },
    backend: backend.url,
    source: { outcomes: [{ is: 'success', path: 'code', in: [0] }] },
    limits: { lockout }
  })
  const release = () => {
    isHeld = false
    for (const answer of waiting.splice(0)) answer()
  }
  const hold = () => {
    isHeld = true
  }
  const evaluated = async (number: number) =>
    await until(`${number} are evaluated`, () => running === number)
  return { gateway, hold, release, evaluated, most: () => most, asked: () => asked }
}

t.test('100 right sign-ins at once from one address succeed, at most 20 at a time', async t => {
  const { gateway, release, evaluated, most, asked } = await slowSignIn(t)
  const answers = signIns(gateway, 100)
  await evaluated(20)
  release()
  t.equal(count(await answers, 200), 100)
  t.same([most(), asked()], [20, 100])
})

t.test('of 200 guesses from one address 20 are evaluated, and no other waits', async t => {
  const { gateway, release, evaluated, asked } = await slowSignIn(t)
  const answers = signIns(gateway, 200, 'wrong')
  await evaluated(20)
  const elsewhere = attempt(gateway, 'elsewhere', password, '203.0.113.9')
  await evaluated(21)
  release()
  const all = await answers
  t.same([count(all, 401), count(all, 429), asked()], [20, 180, 21])
  t.equal((await elsewhere).status, 200, 'another address does not wait for them')
  const wait = Number(all.find(({ status }) => status === 429)?.headers.get('retry-after'))
  t.ok(wait > 50, 'until the lock ends')
})

t.test('who waited five seconds for others of its address is 429, and harms none', async t => {
  const { gateway, release, evaluated } = await slowSignIn(t, { address: { failures: 2 } })
  const first = signIns(gateway, 2)
  await evaluated(2)
  const late = await attempt(gateway, 'late')
  t.match(late, { status: 429, json: { errorCode: 'limit.exceeded' } })
  t.equal(late.headers.get('retry-after'), '1')
  release()
  t.equal(count(await first, 200), 2)
  t.equal((await attempt(gateway, 'late')).status, 200)
})

t.test('who stands in a line that moves is not turned away, however slow it is', async t => {
  const { gateway, hold, release, asked } = await slowSignIn(t, { address: { failures: 1 } })
  const answers = signIns(gateway, 4)
  const begun = performance.now()
  for (let number = 1; number <= 4; number++) {
    await until('the next one is evaluated', () => asked() === number)
    // Longer in all than one may wait where nothing moves.
    await new Promise(resolve => setTimeout(resolve, 2500))
    release()
    hold()
  }
  t.ok(performance.now() - begun > 5000)
  t.equal(count(await answers, 200), 4)
})

/** Sends a whole sign-in and does not wait for its response. */
function sendSignIn({ url }: TestGateway, username: string): Socket {
  const body = JSON.stringify({ username, password })
  const fields = [
    'X-Forwarded-For: 198.51.100.1',
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`
  ]
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  socket.write(request(`POST ${loginPath}`, fields, body))
  return socket
}

t.test('a sign-in whose client has left is not evaluated, and holds up nobody', async t => {
  const { gateway, release, evaluated, asked } = await slowSignIn(t, { address: { failures: 2 } })
  const first = signIns(gateway, 2)
  await evaluated(2)
  const leaving = Array.from({ length: 5 }, (_, index) => sendSignIn(gateway, `left-${index}`))
  await until('the others wait', async () =>
    (await gateway.metrics()).includes('console_gateway_requests_in_flight 7\n')
  )
  for (const socket of leaving) socket.destroy()
  const left = () => gateway.log.filter(line => line['msg'] === 'request' && line['status'] === 499)
  await until('they have left', () => left().length === 5)
  const last = attempt(gateway, 'last')
  release()
  t.equal(count(await first, 200), 2)
  t.equal((await last).status, 200)
  t.equal(asked(), 3)
})

t.test('a flood of sign-ins leaves other callers alone', async t => {
  const argon2 = watchArgon2(t.after)
  const gateway = await testGateway(t.after, {
    limits: { inFlightPerUser: 500, lockout: noLockout }
  })
  const cookie = await gateway.signIn()
  argon2.hold()
  let settled = 0
  const flood = Array.from({ length: 30 }, (_, index) =>
    attempt(gateway, `user-${index}`, 'wrong').finally(() => settled++)
  )
  await until('few are computed at a time', () => argon2.running() === 2)
  t.equal((await gateway.call('/api/account/profile', { cookie })).status, 200)
  t.same([settled, argon2.running()], [0, 2], 'answered while they all wait for their turn')
  argon2.release()
  t.equal(count(await Promise.all(flood), 401), 30)
})
