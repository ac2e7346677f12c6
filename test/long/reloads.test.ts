/** Reloads of a large config while requests go on. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { stringify } from 'yaml'
import { testGateway } from '../support/gateway.ts'
import { again } from '../support/until.ts'
import { testUpstream } from '../support/upstream.ts'

const reloads = 118
const callers = 8

t.test('118 reloads of 200 routes under traffic: no request fails, none is lost', async t => {
  const backend = await testUpstream(t.after)
  const routes = (timeout: number) => ({
    upstreams: { backend: { url: backend.url } },
    routes: Object.fromEntries(
      Array.from({ length: 200 }, (_, n) => [
        `r${n}`,
        { path: `/api/r${n}`, access: 'public', upstream: 'backend', timeout: `${timeout}s` }
      ])
    ),
    expect: { closed: { request: 'GET /api/account/profile', status: 401 } }
  })
  const gateway = await testGateway(t.after, { routes: routes(1000) })
  let turn = 0
  const statuses = new Map<number, number>()
  const duringReload: number[] = []
  const call = async () => {
    const { status } = await gateway.call(`/api/r${turn++ % 200}`)
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
  }
  const ends = Array.from({ length: callers }, () => again(call))
  const answered = () => [...statuses.values()].reduce((sum, count) => sum + count, 0)
  for (let n = 1; n <= reloads; n++) {
    writeFileSync(join(gateway.folder, 'routes.yaml'), stringify(routes(1000 + n)))
    const before = answered()
    const { outcome } = await gateway.reload('operator')
    duringReload.push(answered() - before)
    if (outcome !== 'reloaded') t.fail(`reload ${n}: ${outcome}`)
  }
  await Promise.all(ends.map(end => end()))
  t.same([...statuses.keys()], [200])
  t.equal(backend.seen.length, answered(), 'each was forwarded once')
  const fewest = Math.min(...duringReload)
  t.ok(fewest >= callers, `during each reload at least ${callers} were answered, not ${fewest}`)
  const { json } = await gateway.call('/api/account/profile')
  t.equal(json.errorCode, 'session.none')
})
