/** Requests that `why` finds: at any replica, after a restart, in a flood, and without Redis. */
import t from 'tap'
import type { FoundRequests } from '../../src/observability/failures.ts'
import { start } from '../support/command.ts'
import { configFolder, testGateway } from '../support/gateway.ts'
import { answers, raw, request } from '../support/raw.ts'
import { testRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

const environment = { SESSION_SECRET: 'a secret of at least thirty-two characters' }

const replicaOn = (url: string) => ({
  gateway: { redis: { url }, session: { secrets: ['${SESSION_SECRET}'] } }
})

const idOf = ({ headers }: { readonly headers: Headers }) => headers.get('x-request-id') ?? ''

t.test('any replica answers, also after the end of the one that had the request', async t => {
  const redis = await testRedis(t.after)
  const other = start(t.after, await configFolder(replicaOn(redis.url)), environment)
  const { url } = await other.listens()
  const asked = await testGateway(t.after, replicaOn(redis.url), environment)
  const find = async (id: string) => {
    const response = await asked.ops(`/ops/api/requests?id=${id}`)
    return (await response.json()) as FoundRequests
  }
  const first = idOf(await fetch(`${url}/api/nowhere`))
  await until('the other replica tells it', async () => (await find(first)).requests.length === 1)
  const last = idOf(await fetch(`${url}/api/nowhere`, { method: 'POST' }))
  other.signal('SIGTERM')
  await other.ended
  for (const id of [first, last]) {
    const { requests, oldestAt } = await find(id)
    t.match(requests, [{ requestId: id, status: 404, code: 'route.unknown', replica: /-.{8}$/ }])
    t.ok(oldestAt)
  }
  const list = await asked.ops('/ops/api/requests?status=4xx&last=1')
  t.match(await list.json(), { requests: [{ requestId: last }], hasMore: true })
})

t.test('while Redis is away they are in memory, and go there when it is back', async t => {
  const redis = await testRedis(t.after)
  const one = await testGateway(t.after, replicaOn(redis.url), environment)
  const other = await testGateway(t.after, replicaOn(redis.url), environment)
  await redis.kill()
  await one.logged(({ msg }) => String(msg).startsWith('Redis unavailable'))
  const id = idOf(await one.call('/api/nowhere'))
  const find = async (gateway: typeof one) =>
    (await (await gateway.ops(`/ops/api/requests?id=${id}`)).json()) as FoundRequests
  await until('it is found here', async () => (await find(one)).requests.length === 1)
  t.match(await find(one), { problem: /only requests of this replica/ })
  await redis.start()
  await until('the other one finds it', async () => (await find(other)).requests.length === 1)
  t.notOk((await find(one)).problem)
})

t.test('of a flood a hundred in a second are kept, the others are counted', async t => {
  const gateway = await testGateway(t.after)
  // All in one write: also a busy machine takes them within a second or two.
  const enough = (received: string) => answers(received) === 451
  const { whole } = await raw(gateway.url, request('GET /api/nowhere').repeat(451), { enough })
  t.equal(answers(whole), 451)
  const metrics = async () => await (await gateway.ops('/metrics')).text()
  let kept = 0
  await until('all are kept or counted', async () => {
    const response = await gateway.ops('/ops/api/requests?last=500')
    kept = ((await response.json()) as FoundRequests).requests.length
    const dropped = /^console_gateway_requests_not_kept_total (\d+)/m.exec(await metrics())?.[1]
    return kept + Number(dropped ?? 0) === 451
  })
  t.ok(kept >= 100 && kept < 451, `${kept} kept`)
})
