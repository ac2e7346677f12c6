/** The use of limits, and what another number would do, by the record of a running gateway. */
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import type { Suggestions } from '../../src/limits/usage/suggest.ts'
import type { LimitUse, WhatIf } from '../../src/limits/usage/what-if.ts'
import { type TestGateway, testGateway } from '../support/gateway.ts'
import { testUpstream } from '../support/upstream.ts'

async function read<T>(gateway: TestGateway, path: string): Promise<T> {
  const response = await gateway.ops(`/ops/api/limits${path}`)
  if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`)
  return (await response.json()) as T
}

async function gatewayWith(t: Test, limits: object) {
  const backend = await testUpstream(t.after)
  return await testGateway(t.after, {
    routes: {
      upstreams: { b: { url: backend.url } },
      routes: { a: { path: '/api/a', upstream: 'b', access: 'session' } }
    },
    limits: { limits }
  })
}

async function send(gateway: TestGateway, requests: Readonly<Record<string, number>>) {
  for (const [user, count] of Object.entries(requests)) {
    const cookie = await gateway.signIn(user)
    for (let n = 0; n < count; n++) await gateway.call('/api/a', { cookie })
  }
}

const ofRoute = { by: 'user', window: '1h', routes: ['a'] }

t.test('use stands against the number, with who is near and what shadows refuse', async t => {
  const gateway = await gatewayWith(t, {
    enforced: { ...ofRoute, max: 10 },
    shadow: { ...ofRoute, max: 4, mode: 'shadow' },
    wide: { ...ofRoute, max: 1000 }
  })
  await send(gateway, { alice: 9, bob: 3 })
  const { isRecorded, limits } = await read<{ isRecorded: boolean; limits: LimitUse[] }>(
    gateway,
    ''
  )
  t.equal(isRecorded, true)
  const [enforced, shadow, wide] = limits
  t.match(enforced, {
    limit: 'enforced',
    mode: 'enforce',
    key: 'max',
    max: 10,
    windowMs: 3_600_000,
    requests: 12,
    refused: 0,
    shadowRefused: 0,
    highest: 9,
    near: [
      {
        whom: 'user 1 of users-file',
        caller: { user: '1', source: 'users-file' },
        used: 9
      }
    ]
  })
  t.match(shadow, { refused: 0, shadowRefused: 5, near: [{ used: 9, refused: 5 }] })
  t.match(wide, { near: [] })
})

t.test('"what if" counts refusals, and its lowest number is that of `limits suggest`', async t => {
  const gateway = await gatewayWith(t, { calls: { ...ofRoute, max: 50 } })
  await send(gateway, { alice: 40, bob: 12 })
  const lower = await read<WhatIf>(gateway, '/what-if?limit=calls&factor=0.5')
  t.match(lower, {
    limit: 'calls',
    inForce: 50,
    number: 25,
    refused: 15,
    refusedCallers: { from: 1, to: 1 },
    callers: [{ whom: 'user 1 of users-file', refused: 15 }]
  })
  t.same(parse(lower.yaml), { limits: { calls: { max: 25 } } })
  const none = await read<WhatIf>(gateway, '/what-if?limit=calls&factor=0.8')
  t.match(none, { number: 40, refused: 0, refusedCallers: { from: 0, to: 0 }, callers: [] })
  const all = await read<WhatIf>(gateway, '/what-if?limit=calls&factor=0.1')
  t.match(all, { number: 5, refused: 42, refusedCallers: { from: 2, to: 2 } })
  const suggested = await read<Suggestions>(gateway, '/suggest?sinceMs=86400000')
  t.equal(lower.lowest, suggested.limits[0]?.lowest?.to)
  t.equal(lower.lowest, 40)
})

t.test('the number that it gives refuses what it says', async t => {
  const requests = { alice: 30, bob: 20 }
  const before = await gatewayWith(t, { calls: { ...ofRoute, max: 100 } })
  await send(before, requests)
  const said = await read<WhatIf>(before, '/what-if?limit=calls&factor=0.12')
  t.equal(said.number, 12)
  const after = await gatewayWith(t, { calls: { ...ofRoute, max: said.number } })
  await send(after, requests)
  const { limits } = await read<{ limits: LimitUse[] }>(after, '')
  t.equal(said.refused, 26)
  t.equal(limits[0]?.refused, said.refused)
})

t.test('a burst is what a bucket is tried with; max follows where it must', async t => {
  const gateway = await gatewayWith(t, { bucket: { ...ofRoute, max: 20, burst: 10 } })
  await send(gateway, { alice: 8 })
  const answer = await read<WhatIf>(gateway, '/what-if?limit=bucket&factor=0.5')
  t.match(answer, { key: 'burst', inForce: 10, number: 5, refusedCallers: { from: 1 } })
  t.same(parse(answer.yaml), { limits: { bucket: { burst: 5 } } })
  const more = await read<WhatIf>(gateway, '/what-if?limit=bucket&factor=3')
  t.same(parse(more.yaml), { limits: { bucket: { max: 30, burst: 30 } } })
})

t.test('what cannot be answered says what to write instead', async t => {
  const gateway = await gatewayWith(t, { calls: { ...ofRoute, max: 50 } })
  const refusal = async (query: string) => {
    const response = await gateway.ops(`/ops/api/limits/what-if?${query}`)
    t.equal(response.status, 400, query)
    return ((await response.json()) as { error: string }).error
  }
  t.match(await refusal('limit=call'), /no limit "call"\. Did you mean "calls"\?/)
  t.match(await refusal('limit=calls&factor=-1'), /factor up to 100/)
  t.match(await refusal('factor=0.8'), /Name a limit/)
  const silent = await testGateway(t.after, {
    gateway: { ops: { useRecord: '0s' } },
    limits: { limits: { calls: { by: 'user', max: 5, window: '1m' } } }
  })
  t.match(await read(silent, ''), { isRecorded: false, limits: [{ limit: 'calls', requests: 0 }] })
})
