import t from 'tap'
import { Load } from '../../../src/app/overload/load.ts'

const bounds = { inFlight: 1000, inFlightPerAddress: 64, turn: 25 }

function testLoad(cleanUp: (undo: () => void) => void) {
  const clock = { ms: 0 }
  const load = new Load({ now: () => clock.ms, everyMs: 1e9 })
  cleanUp(() => load.close())
  const turn = (ms: number) => {
    load.watchTurn(bounds)
    clock.ms += ms
    load.endTurn(bounds)
  }
  return { load, clock, turn }
}

t.test('an address may have half of what is free, and 64 requests however little is', t => {
  const { load } = testLoad(t.after)
  t.equal(load.share(bounds), 500)
  for (let n = 0; n < 600; n++) load.begin('a', bounds)
  t.equal(load.share(bounds), 200)
  for (let n = 0; n < 350; n++) load.begin('b', bounds)
  t.equal(load.share(bounds), 64)
  t.end()
})

t.test('requests that are over count no more', t => {
  const { load } = testLoad(t.after)
  const [first, second] = [load.begin('a', bounds), load.begin('a', bounds)]
  t.same([load.of('a'), load.total], [2, 2])
  first()
  load.rotate()
  second()
  t.same([load.of('a'), load.total], [0, 0])
  t.end()
})

t.test('of a greedy address, only what it may always have counts as modest', t => {
  const { load } = testLoad(t.after)
  const ends = Array.from({ length: 100 }, () => load.begin('a', bounds))
  load.begin('b', bounds)
  t.same([load.total, load.modest], [101, 65])
  for (const end of ends.splice(0, 40)) end()
  t.same([load.total, load.modest], [61, 61])
  for (const end of ends) end()
  t.same([load.total, load.modest], [1, 1])
  t.end()
})

t.test('a stream counts for two periods at most', t => {
  const { load } = testLoad(t.after)
  const end = load.begin('a', bounds)
  load.rotate()
  t.same([load.of('a'), load.total], [1, 1])
  load.rotate()
  t.same([load.of('a'), load.total], [0, 0])
  end()
  load.begin('a', bounds)
  t.same([load.of('a'), load.total], [1, 1])
  t.end()
})

t.test('addresses beyond a bound are counted together', t => {
  const { load } = testLoad(t.after)
  for (let n = 0; n < 50_100; n++) load.begin(`address ${n}`, bounds)
  t.equal(load.total, 50_100)
  t.equal(load.of('address 50099'), 0)
  t.equal(load.of(''), 100)
  load.begin('address 5', bounds)
  t.equal(load.of('address 5'), 2, 'one that has a count already keeps it')
  t.end()
})

t.test('one late turn changes nothing, and late turns with none in time between do', t => {
  const { load, turn } = testLoad(t.after)
  for (let n = 0; n < 600; n++) load.begin('a', bounds)
  turn(2000)
  t.equal(load.capacity(bounds), 1000, 'a stall')
  turn(10)
  for (let n = 0; n < 4; n++) turn(60)
  turn(10)
  for (let n = 0; n < 4; n++) turn(60)
  t.equal(load.capacity(bounds), 1000, 'interrupted')
  turn(100)
  t.equal(load.capacity(bounds), 300, 'half of what is in flight')
  turn(60)
  t.equal(Math.round(load.capacity(bounds)), 302, 'not at each late turn again')
  t.end()
})

t.test('two late turns with a quiet time between are two stalls', t => {
  const { load, clock, turn } = testLoad(t.after)
  for (let n = 0; n < 600; n++) load.begin('a', bounds)
  turn(60)
  clock.ms += 600_000
  turn(60)
  t.equal(load.capacity(bounds), 1000)
  for (let n = 0; n < 5; n++) turn(60)
  t.equal(load.capacity(bounds), 300, 'overload after the quiet time')
  t.end()
})

t.test('capacity is never less than two addresses need, and grows again', t => {
  const { load, clock, turn } = testLoad(t.after)
  for (let n = 0; n < 600; n++) load.begin('a', bounds)
  for (let n = 0; n < 60; n++) turn(60)
  t.equal(Math.round(load.capacity(bounds)), 128)
  t.equal(load.share(bounds), 64)
  clock.ms += 10_000
  turn(1)
  t.equal(Math.round(load.capacity(bounds)), 256)
  clock.ms += 1_000_000
  turn(1)
  t.equal(load.capacity(bounds), 1000)
  t.end()
})

t.test('capacity grows in a quiet time too', t => {
  const { load, clock, turn } = testLoad(t.after)
  for (let n = 0; n < 600; n++) load.begin('a', bounds)
  for (let n = 0; n < 60; n++) turn(60)
  t.equal(Math.round(load.capacity(bounds)), 128)
  for (let n = 0; n < 60; n++) {
    clock.ms += 2000
    load.rotate()
  }
  t.equal(load.capacity(bounds), 1000)
  t.equal(load.share(bounds), 500)
  t.end()
})

t.test('a turn is measured once, however many requests it has', async t => {
  const { load, clock } = testLoad(t.after)
  let ends = 0
  load.endTurn = () => void ends++
  for (let n = 0; n < 100; n++) load.watchTurn(bounds)
  clock.ms += 1
  await new Promise(resolve => setImmediate(resolve))
  t.equal(ends, 1)
})

t.end()
