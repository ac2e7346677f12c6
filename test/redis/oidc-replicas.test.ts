/** One session of an OpenID provider at three replicas, whose refresh token is good once. */
import t from 'tap'
import { wallClock } from '../support/clock.ts'
import { testGateway } from '../support/gateway.ts'
import { testProvider } from '../support/oidc-provider.ts'
import { oidcVisitor } from '../support/oidc-visitor.ts'
import { testRedis } from '../support/redis.ts'
import { testUpstream } from '../support/upstream.ts'

const passTime = wallClock(t.teardown)
const redis = await testRedis(t.teardown)
const provider = await testProvider(t.teardown)
const backend = await testUpstream(t.teardown)
const files = {
  gateway: {
    console: { root: 'site', signIn: 'sso' },
    login: { sources: { sso: provider.config() } }
  },
  redis: redis.url,
  backend: { url: backend.url, credential: 'bearer' },
  routes: { routes: { orders: {} } },
  code: { 'site/index.html': '<title>console</title>' }
}
const replicas = await Promise.all(
  [1, 2, 3].map(() => testGateway(t.teardown, files, provider.environment))
)
provider.register(...replicas.map(({ url }) => url))

t.test('24 calls at once over three replicas renew once, and nobody is signed out', async t => {
  let turn = 0
  const { signIn, call } = oidcVisitor(() => replicas[turn]?.url ?? '', provider)
  t.match(await signIn('alice'), { status: 303 })
  for (let round = 1; round <= 3; round++) {
    passTime(3_600_000)
    backend.seen.splice(0)
    const calls = Array.from({ length: 24 }, async (_, index) => {
      turn = index % 3
      return await call('/api/orders')
    })
    const answers = await Promise.all(calls)
    t.strictSame(new Set(answers.map(({ status }) => status)), new Set([200]))
    const tokens = new Set(backend.seen.map(({ headers }) => headers.authorization))
    t.equal(tokens.size, 1, 'one new token')
    t.equal(provider.grants.filter(grant => grant === 'refresh_token').length, round)
  }
})

t.test('a flow that one replica began ends at another, once', async t => {
  let turn = 0
  const browser = oidcVisitor(() => replicas[turn]?.url ?? '', provider)
  const callback = await browser.atProvider((await browser.start()).next, 'bob')
  turn = 1
  t.match(await browser.comeBack(callback), { status: 303 })
  turn = 2
  browser.jar.delete('console_sid')
  t.match(await browser.comeBack(callback), { status: 401 }, 'its state is spent everywhere')
})

t.test('without the store no sign-in is begun for a page, and `finish` is 503', async t => {
  const browser = oidcVisitor(() => replicas[0]?.url ?? '', provider)
  const callback = await browser.atProvider((await browser.start()).next, 'bob')
  const grants = provider.grants.length
  await browser.signIn('alice')
  await redis.kill()
  t.match(await browser.ask('/orders'), { status: 200, text: '<title>console</title>' })
  t.match(await browser.comeBack(callback), { status: 503 })
  t.equal(provider.grants.length, grants + 1, 'the code was not exchanged')
})
