import t from 'tap'
import { SteadyClock } from '../src/steady-clock.ts'

const hour = 3_600_000
const start = 1_700_000_000_000

/** A machine, whose processes start when they are asked to. */
function machine() {
  const present = { ticks: 5000.25, wall: start, asleep: 0 }
  return {
    present,
    pass: (ms: number) => {
      present.ticks += ms
      present.wall += ms
    },
    process: () =>
      new SteadyClock({
        ticks: () => present.ticks,
        wall: () => present.wall,
        uptimeMs: () => present.ticks + present.asleep + 70_000
      })
  }
}

t.test('it starts with the wall clock, and goes on without it', async t => {
  const { present, pass, process } = machine()
  const clock = process()
  t.same([clock.now(), clock.aheadMs()], [start, 0])
  pass(1500)
  t.same([clock.now(), clock.aheadMs()], [start + 1500, 0])
  present.wall += hour
  t.same([clock.now(), clock.aheadMs()], [start + 1500, hour])
  present.wall -= 3 * hour
  pass(1000)
  t.same([clock.now(), clock.aheadMs()], [start + 2500, -2 * hour])
})

t.test('a difference that nobody would see changes no time that is shown', async t => {
  const { present, process } = machine()
  const clock = process()
  present.wall += 499
  t.equal(clock.aheadMs(), 0)
  present.wall += 1
  t.equal(clock.aheadMs(), 500)
  present.wall -= 400
  t.equal(clock.aheadMs(), 500)
})

t.test('the time in which the machine was asleep counts', async t => {
  const { present, pass, process } = machine()
  const clock = process()
  present.asleep += hour
  present.wall += hour
  pass(1000)
  t.same([clock.now(), clock.aheadMs()], [start + hour + 1000, 0])
  pass(5000)
  t.equal(clock.now(), start + hour + 6000, 'once')
  // The uptime is not exact.
  present.asleep -= 900
  pass(1000)
  present.asleep += 900
  pass(1000)
  t.equal(clock.now(), start + hour + 8000)
})

t.test('of its own it is close to the wall clock of the machine', async t => {
  const clock = new SteadyClock()
  const before = Date.now() - 1
  const now = clock.now()
  t.ok(before <= now && now <= Date.now() + 1, `${before} ${now}`)
})
