/** What replicas know of each other, and the requests of all that `why` finds. */
import t, { type Test } from 'tap'
import type { FoundRequests } from '../../src/observability/failures.ts'
import { run } from '../support/command.ts'
import {
  configFolder,
  noLockout,
  type TestGateway,
  testGateway,
  writeConfig
} from '../support/gateway.ts'
import { startGatewayProcess } from '../support/gateway-process.ts'
import { answers, raw, request } from '../support/raw.ts'
import { testRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

const limits = (max: number) => ({
  lockout: noLockout,
  limits: { login: { by: 'address', max, window: '1m', routes: ['login'] } }
})
const filesOn = (url: string) => ({ redis: { url, commandTimeout: '5s' }, limits: limits(5) })

type Replica = Pick<TestGateway, 'folder' | 'opsJson'>

const hashOf = async ({ opsJson }: Replica): Promise<string> => (await opsJson('status')).hash

/** A replica within this process. */
const single = async (t: Test, url: string) => await testGateway(t.after, filesOn(url))

/** A replica as a process of its own, which signals can reach. */
const apart = async (t: Test, url: string) =>
  await startGatewayProcess(t.after, await configFolder(filesOn(url)))

async function inTouch(replicas: readonly Replica[]) {
  // The first word of one that starts may be that it is not ready yet.
  await until('all replicas hear each other', async () => {
    for (const replica of replicas) {
      const { replicas: heard } = await replica.opsJson('replicas')
      const ready = heard.filter((each: { ready: boolean }) => each.ready)
      if (ready.length < replicas.length) return false
    }
    return true
  })
}

t.test('the status of all: who runs what, who refused files, and who is silent', async t => {
  const { url } = await testRedis(t.after)
  const a = await single(t, url)
  const b = await single(t, url)
  const c = await apart(t, url)
  const all = [a, b, c]
  await inTouch(all)
  const first = await hashOf(a)
  const { replicas, info } = await c.opsJson('replicas')
  t.equal(info, undefined)
  t.equal(replicas[0].pid, (await c.opsJson('status')).pid, 'the one that was asked first')
  for (const replica of replicas) {
    t.match(replica, { ready: true, generation: 1, configHash: first, files: 'running' })
  }

  writeConfig(b.folder, 'limits.yaml', limits(20))
  t.match(await b.opsJson('reload', {}), { outcome: 'reloaded', generation: 2 })
  const second = await hashOf(b)
  t.not(second, first)
  writeConfig(c.folder, 'limits.yaml', 'limits: no\n')
  t.match(await c.opsJson('reload', {}), { outcome: 'refused' })
  const of = async (replica: Replica, fits: (each: any) => boolean) =>
    (await replica.opsJson('replicas')).replicas.filter(fits).length
  await until('the others know', async () => {
    const refused = ({ files, fault }: any) => files === 'refused' && /limits\.yaml:1/.test(fault)
    return (
      (await of(a, ({ configHash }) => configHash === first)) === 2 &&
      (await of(a, ({ configHash }) => configHash === second)) === 1 &&
      (await of(a, refused)) === 1
    )
  })
  t.match(await run(['status', '--all', '--config', c.folder]), {
    code: 3,
    out: /limits\.yaml:1[^]*replicas run 2 different configs/
  })

  const { id } = (await c.opsJson('replicas')).replicas[0]
  c.signal('SIGSTOP')
  await until('it is silent', async () => (await of(a, each => each.isSilent)) === 1)
  t.equal(await of(a, each => each.isSilent && each.id === id), 1)
  c.signal('SIGCONT')
  await until('it speaks', async () => (await of(a, each => each.isSilent)) === 0)
  await c.stop()
  t.equal(await of(a, () => true), 2, 'who ends says goodbye')
})

t.test('what somebody else writes there changes nothing', async t => {
  const redis = await testRedis(t.after)
  const { cli } = redis
  const a = await single(t, redis.url)
  await until('it has told', async () => (await cli('EXISTS', '{cg}:replicas')) === '1')
  await cli('ZADD', '{cg}:replicas', String(Date.now()), '{"id":"evil"}')
  await cli('SET', '{cg}:maintenance', '[{"maintenance":{"routes":[]}}]')
  await a.logged(({ event }) => event === 'maintenance.foreign')
  t.equal((await a.opsJson('replicas')).replicas.length, 1)
  t.same((await a.opsJson('maintenance')).operators, [])
})

const idOf = ({ headers }: { readonly headers: Headers }) => headers.get('x-request-id') ?? ''
const find = async (asked: Replica, id: string): Promise<FoundRequests> =>
  await asked.opsJson(`requests?id=${id}`)
const isFound = async (asked: Replica, id: string) => (await find(asked, id)).requests.length === 1

t.test('any replica answers, also after the end of the one that had the request', async t => {
  const redis = await testRedis(t.after)
  const other = await apart(t, redis.url)
  const asked = await single(t, redis.url)
  const first = idOf(await fetch(`${other.url}/api/nowhere`))
  await until('the other replica tells it', async () => await isFound(asked, first))
  const last = idOf(await fetch(`${other.url}/api/nowhere`, { method: 'POST' }))
  await other.stop()
  for (const id of [first, last]) {
    const { requests, oldestAt } = await find(asked, id)
    t.match(requests, [{ requestId: id, status: 404, code: 'route.unknown', replica: /-.{8}$/ }])
    t.ok(oldestAt)
  }
  t.match(await asked.opsJson('requests?status=4xx&last=1'), {
    requests: [{ requestId: last }],
    hasMore: true
  })
})

t.test('while Redis is away they are in memory, and go there when it is back', async t => {
  const redis = await testRedis(t.after)
  const [one, other] = [await single(t, redis.url), await single(t, redis.url)]
  await redis.kill()
  await one.logged(({ msg }) => String(msg).startsWith('Redis unavailable'))
  const id = idOf(await one.call('/api/nowhere'))
  await until('it is found here', async () => await isFound(one, id))
  t.match(await find(one, id), { problem: /only requests of this replica/ })
  await redis.start()
  await until('the other one finds it', async () => await isFound(other, id))
  t.notOk((await find(one, id)).problem)
})

t.test('of a flood a hundred in a second are kept, the others are counted', async t => {
  const gateway = await testGateway(t.after)
  // All in one write: also a busy machine takes them within a second or two.
  const enough = (received: string) => answers(received) === 451
  const { whole } = await raw(gateway.url, request('GET /api/nowhere').repeat(451), { enough })
  t.equal(answers(whole), 451)
  let kept = 0
  await until('all are kept or counted', async () => {
    kept = (await gateway.opsJson('requests?last=500')).requests.length
    const metrics = await gateway.metrics()
    const dropped = /^console_gateway_requests_not_kept_total (\d+)/m.exec(metrics)?.[1]
    return kept + Number(dropped ?? 0) === 451
  })
  t.ok(kept >= 100 && kept < 451, `${kept} kept`)
})
