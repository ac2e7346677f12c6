import t from 'tap'
import { createReorderBuffer } from '../../../src/limits/replay/reorder-buffer.ts'
import { createReplay, type PastRequest } from '../../../src/limits/replay/replay.ts'
import { createReplayReport } from '../../../src/limits/replay/report.ts'
import type { LimitConfig } from '../../../src/config/schema/limits.ts'

const begin = Date.UTC(2026, 0, 1)
const minute = 60_000
const limit = (given: Partial<LimitConfig>): LimitConfig => ({
  by: ['user'],
  max: 2,
  window: minute,
  kind: 'fixed',
  mode: 'enforce',
  routes: [],
  methods: [],
  roles: [],
  refusedOnly: false,
  ...given
})
const request = (seconds: number, given: Partial<PastRequest> = {}): PastRequest => ({
  at: begin + seconds * 1000,
  endedAt: begin + seconds * 1000,
  route: 'r',
  method: 'GET',
  address: '192.0.2.1',
  caller: undefined,
  ...given
})
const user = (id: string, roles: string[] = [], session = 's') => ({
  caller: { id: session, source: 'log', identity: { id, roles } }
})

async function replayed(limits: Record<string, LimitConfig>, requests: readonly PastRequest[]) {
  const replay = createReplay({ limits, replicas: 1, endedSessions: { max: 1, window: 1 } })
  const report = createReplayReport({ limits })
  for (const each of requests) report.add(each, await replay.take(each))
  replay.close()
  return report.report(replay.lowest())
}

const seconds = (count: number, step = 1) =>
  Array.from({ length: count }, (_, index) => index * step)

t.test('each kind of window refuses by the time of the requests', async t => {
  const of = async (given: Partial<LimitConfig>, at: readonly number[]) => {
    const {
      refused,
      limits: [of]
    } = await replayed(
      { l: limit(given) },
      at.map(each => request(each, user('u')))
    )
    return [refused, of?.lowest]
  }
  t.same(await of({}, [0, 1, 2, 59, 60, 61]), [2, 4])
  t.same(await of({ kind: 'sliding' }, [0, 1, 2, 59, 60, 61]), [4, 6])
  t.same(await of({ max: 60, burst: 2 }, [0, 0, 0, 1, 1]), [2, 4])
})

t.test(
  'who, when and by which limit: shadow refuses nobody, roles and several keys count whom they name, what is off is quiet',
  async t => {
    const report = await replayed(
      {
        shadow: limit({ mode: 'shadow', max: 1 }),
        pairs: limit({ by: ['user', 'address'], max: 3 }),
        editors: limit({ roles: ['editor'], max: 1, routes: ['r'] }),
        off: limit({ mode: 'off' })
      },
      [
        ...seconds(4).map(at => request(at, user('ann'))),
        ...seconds(2).map(at => request(10 + at, user('bo', ['editor']))),
        request(20)
      ]
    )
    t.equal(report.requests, 7)
    t.equal(report.refused, 2)
    t.match(report.limits, [
      { limit: 'shadow', mode: 'shadow', requests: 6, refused: 4, callers: 2, lowest: 4 },
      {
        limit: 'pairs',
        requests: 6,
        refused: 1,
        callers: 1,
        first: '2026-01-01T00:00:03.000Z',
        last: '2026-01-01T00:00:03.000Z',
        lowest: 4
      },
      { limit: 'editors', requests: 2, refused: 1, lowest: 2 },
      { limit: 'off', requests: 0, refused: 0, lowest: undefined }
    ])
    t.match(
      report.callers.find(each => each.limit === 'pairs'),
      { whom: 'user ann, address 192.0.2.1', refused: 1 }
    )
    t.equal(
      report.columns.reduce((sum, column) => sum + column.requests, 0),
      7
    )
    t.equal(
      report.columns.reduce((sum, column) => sum + column.refused, 0),
      2
    )
  }
)

t.test(
  'sign-ins: refused ones stay counted, accepted ones are given back when they are over, spellings of an account are one',
  async t => {
    const signIn = (at: number, account: string, accepted: boolean, lastedMs = 0) =>
      request(at, {
        route: 'login',
        method: 'POST',
        endedAt: begin + at * 1000 + lastedMs,
        signIn: { account, accepted }
      })
    const limits = { accounts: limit({ by: ['account'], routes: ['login'], refusedOnly: true }) }
    t.equal(
      (
        await replayed(limits, [
          signIn(0, 'Ann', false),
          signIn(1, 'ann ', false),
          signIn(2, 'ANN', false),
          signIn(3, 'bo', false)
        ])
      ).refused,
      1
    )
    t.equal(
      (
        await replayed(
          limits,
          seconds(10).map(at => signIn(at, 'ann', true))
        )
      ).refused,
      0
    )
    t.equal(
      (
        await replayed(
          limits,
          seconds(3).map(at => signIn(at, 'ann', true, 5000))
        )
      ).refused,
      1,
      'three at the same time'
    )
  }
)

t.test('a limit may be called constructor', async t => {
  const limits = { constructor: limit({ max: 1 }) }
  const { columns } = await replayed(
    limits,
    [0, 1, 400, 401].map(at => request(at, user('u')))
  )
  t.same(
    columns.flatMap(({ byLimit }) => Object.entries(byLimit)),
    [
      ['constructor', 1],
      ['constructor', 1]
    ]
  )
})

t.test('a long time has few columns, and each request is in one', async t => {
  const report = await replayed(
    { l: limit({ max: 1, by: ['address'] }) },
    seconds(5000, 97).map(at => request(at))
  )
  t.ok(report.columns.length <= 288)
  t.equal(
    report.columns.reduce((sum, column) => sum + column.requests, 0),
    5000
  )
  t.ok(
    report.columns.every(
      ({ at }, index) =>
        index === 0 || at - (report.columns[index - 1]?.at ?? 0) === report.columnMs
    )
  )
})

t.test(
  'requests come in the order in which they began; what comes more than a minute late is counted',
  async t => {
    const order = createReorderBuffer()
    const at = (began: number, ended: number) =>
      order.add(request(began, { endedAt: begin + ended * 1000 }))
    at(10, 10)
    at(0, 40)
    t.same(order.due(), [], 'others may still come before them')
    at(200, 200)
    const of = (due: readonly PastRequest[]) => due.map(each => (each.at - begin) / 1000)
    t.same(of(order.due()), [0, 10])
    at(5, 201)
    at(199, 202)
    t.same(of(order.due(true)), [5, 199, 200])
    t.equal(order.late(), 1)
  }
)
