import t from 'tap'
import { createStoreClock } from '../../src/session/store-clock.ts'

/** A clock whose parts the test moves: its own ticks, the wall clock, the store's time. */
function setUp() {
  const at = { ticks: 1000, wall: 5_000_000, store: 5_000_000, roundTrip: 0 }
  const alarms: Array<[number, boolean]> = []
  const clock = createStoreClock({
    askTime: async () => {
      at.ticks += at.roundTrip / 2
      at.store += at.roundTrip / 2
      const time = at.store
      at.ticks += at.roundTrip / 2
      at.store += at.roundTrip / 2
      return time
    },
    onSkew: (skewMs, isSkewed) => alarms.push([Math.round(skewMs), isSkewed]),
    wall: () => at.wall,
    ticks: () => at.ticks
  })
  const pass = (ms: number) => {
    at.ticks += ms
    at.wall += ms
    at.store += ms
  }
  t.teardown(() => clock.close())
  return { at, alarms, clock, pass }
}

t.test('before the store was asked, it goes by the wall clock of the start', async t => {
  const { at, clock, pass } = setUp()
  pass(500)
  t.equal(clock.now(), 5_000_500)
  at.wall -= 3_600_000
  t.equal(clock.now(), 5_000_500, 'a jump changes nothing')
  t.equal(clock.skewMs(), 0, 'nothing is known of the store')
})

t.test(
  'once asked, it is the store’s time, right to half a round trip, and goes on by itself',
  async t => {
    const { at, clock, pass } = setUp()
    at.store += 3_600_000
    at.roundTrip = 100
    await clock.measure()
    t.equal(clock.now(), at.store)
    pass(10_000)
    t.equal(clock.now(), at.store)
  }
)

t.test('what a slow answer leaves unsure does not move it', async t => {
  const { at, clock } = setUp()
  await clock.measure()
  at.roundTrip = 400
  at.store += 150
  const before = clock.now() - at.ticks
  await clock.measure()
  t.equal(clock.now() - at.ticks, before)
  at.roundTrip = 0
  await clock.measure()
  t.equal(clock.now(), at.store, 'a quick one tells')
})

t.test(
  'a wall clock that differs by more than five seconds is told once, and that it is right again',
  async t => {
    const { at, alarms, clock } = setUp()
    await clock.measure()
    at.wall -= 4000
    await clock.measure()
    t.same(alarms, [])
    at.wall -= 3_600_000
    await clock.measure()
    await clock.measure()
    t.same(alarms, [[-3_604_000, true]])
    t.equal(clock.skewMs(), -3_604_000)
    at.wall += 3_600_000
    await clock.measure()
    t.equal(alarms.length, 1, 'four seconds are no all-clear')
    at.wall += 4000
    await clock.measure()
    t.same(alarms[1], [0, false])
  }
)

t.test('a store that cannot answer changes nothing', async t => {
  const clock = createStoreClock({
    askTime: async () => {
      throw new Error('gone')
    },
    onSkew: () => t.fail('no alarm')
  })
  t.teardown(() => clock.close())
  await clock.measure()
  t.ok(Math.abs(clock.now() - Date.now()) < 1000)
})
