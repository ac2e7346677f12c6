/** The choice among addresses: real addresses, of which none is connected. */
import t, { type Test } from 'tap'
import { Address } from '../../src/proxy/address.ts'
import { Balancer } from '../../src/proxy/balancer.ts'
import { createRandom, freshSeed } from '../support/random.ts'
import { upstreamConfig } from '../support/upstream-config.ts'

const request = {}

function addressesOf(t: Test, weights: readonly number[]) {
  const config = upstreamConfig(t.after, { url: 'http://127.0.0.1:1' })
  return weights.map((weight, index) => {
    const origin = `http://127.0.0.1:${index + 1}`
    const address = new Address({ origin, weight }, config, {}, () => {})
    t.after(() => address.close())
    return address
  })
}

/** How many of so many requests went to each; all of them stay in flight where `isHeld`. */
function shares(balancer: Balancer, count: number, isHeld = false): number[] {
  const counts = balancer.addresses.map(() => 0)
  for (let round = 0; round < count; round++) {
    const address = balancer.pick(true, request)
    if (isHeld) address.inFlight++
    const index = balancer.addresses.indexOf(address)
    counts[index] = (counts[index] ?? 0) + 1
  }
  return counts
}

t.test('idle addresses get requests by weight', async t => {
  const seed = freshSeed()
  const balancer = new Balancer(addressesOf(t, [1, 2, 1]), 30_000, createRandom(seed).next)
  const [one = 0, two = 0, three = 0] = shares(balancer, 4000)
  t.ok(one > 850 && one < 1150, `${one}, seed ${seed}`)
  t.ok(two > 1850 && two < 2150, `${two}, seed ${seed}`)
  t.equal(one + two + three, 4000)
})

t.test('the busier of two is spared: held requests are spread by weight', async t => {
  const seed = freshSeed()
  const balancer = new Balancer(addressesOf(t, [1, 1, 2]), 30_000, createRandom(seed).next)
  const counts = shares(balancer, 400, true)
  const note = `${counts.join(' ')}, seed ${seed}`
  t.ok(Math.abs((counts[0] ?? 0) - 100) <= 12, note)
  t.ok(Math.abs((counts[1] ?? 0) - 100) <= 12, note)
  t.ok(Math.abs((counts[2] ?? 0) - 200) <= 20, note)
})

t.test('an open address gets nothing, and its trial goes to one request', async t => {
  const addresses = addressesOf(t, [1, 1, 1])
  const balancer = new Balancer(addresses, 30_000)
  const [sick] = addresses
  if (sick === undefined) throw new Error('no address')
  for (let count = 0; count < 5; count++) sick.failed('request')
  t.equal(sick.state.breaker, 'open')
  t.equal(shares(balancer, 200)[0], 0)
  const { now } = performance
  const later = sick.state.openUntil + 1
  performance.now = () => later
  t.after(() => {
    performance.now = now
  })
  t.not(balancer.pick(false, request), sick, 'no request that could not be sent again')
  t.equal(balancer.pick(true, request), sick, 'the trial')
  t.equal(shares(balancer, 200)[0], 0, 'nothing beside it')
  sick.succeeded()
  const [share = 0] = shares(balancer, 2000)
  t.ok(share > 0 && share < 200, `a small share at first: ${share}`)
})

t.test('below half, states are ignored', async t => {
  const addresses = addressesOf(t, [1, 1, 1, 1])
  const balancer = new Balancer(addresses, 30_000)
  addresses[0]?.failed('connect')
  addresses[1]?.failed('connect')
  t.same(shares(balancer, 200).slice(0, 2), [0, 0], 'half is enough')
  addresses[2]?.failed('connect')
  t.ok(
    shares(balancer, 400).every(count => count > 40),
    'one of four is not'
  )
})

t.test('another address for a request is one that it has not tried', async t => {
  const addresses = addressesOf(t, [1, 1, 1])
  const [one, two, three] = addresses
  if (one === undefined || two === undefined || three === undefined) throw new Error('three')
  const balancer = new Balancer(addresses, 30_000)
  for (let round = 0; round < 50; round++) {
    t.equal(balancer.pickOther([one, two]), three)
  }
  t.equal(balancer.pickOther(addresses), undefined)
  const single = new Balancer([one], 30_000)
  t.equal(single.pickOther([]), undefined)
})

t.test('the only address is refused while it is open', async t => {
  const [only] = addressesOf(t, [1])
  if (only === undefined) throw new Error('no address')
  const balancer = new Balancer([only], 30_000)
  t.equal(balancer.pick(false, request), only)
  for (let count = 0; count < 5; count++) only.failed('connect')
  t.throws(() => balancer.pick(true, request), {
    code: 'upstream.unavailable',
    status: 503,
    detail: { retryAfter: Number }
  })
})

t.test('an address that stays alone by a move is the only one from then on', async t => {
  const [one, two] = addressesOf(t, [1, 1])
  if (one === undefined || two === undefined) throw new Error('two')
  const balancer = new Balancer([one, two], 30_000)
  t.notOk(one.isOnly)
  balancer.replace([one])
  t.ok(one.isOnly)
  balancer.replace([one, two])
  t.notOk(one.isOnly)
})

t.test('an address that requests had opened gets them once it is the only one', async t => {
  for (const hasTrial of [false, true]) {
    const addresses = addressesOf(t, [1, 1])
    const [healthy, sick] = addresses
    if (healthy === undefined || sick === undefined) throw new Error('two')
    const balancer = new Balancer(addresses, 30_000)
    for (let count = 0; count < 5; count++) sick.failed('request')
    if (hasTrial) sick.state.beginTrial(request)
    balancer.replace([sick])
    sick.state.abandonTrial(request)
    t.equal(balancer.pick(true, request), sick, `trial: ${hasTrial}`)
  }
})

t.test('an address that could not be reached stays open as the only one', async t => {
  const addresses = addressesOf(t, [1, 1])
  const [, dead] = addresses
  if (dead === undefined) throw new Error('two')
  const balancer = new Balancer(addresses, 30_000)
  dead.failed('connect')
  balancer.replace([dead])
  t.throws(() => balancer.pick(true, request), { code: 'upstream.unavailable' })
})
