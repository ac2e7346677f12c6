/** The breaker of one address, as a machine without sockets. */
import t from 'tap'
import { AddressState, type Transition } from '../../src/proxy/address-state.ts'

const config = { failures: 3, openFor: 1000, maxOpenFor: 30_000, slowStart: 10_000 }
const request = {}

function stateOf(random = 0.5) {
  const transitions: Transition[] = []
  const state = new AddressState(
    config,
    transition => transitions.push(transition),
    () => random
  )
  return { state, transitions, names: () => transitions.map(({ to }) => to) }
}

t.test('so many failures in a row open it; a success in between begins anew', async t => {
  const { state, names } = stateOf()
  state.failed('request', 0, false)
  state.failed('request', 0, false)
  state.succeeded(0)
  state.failed('request', 0, false)
  state.failed('request', 0, false)
  t.equal(state.breaker, 'closed')
  state.failed('request', 0, false)
  t.equal(state.breaker, 'open')
  t.notOk(state.isUsable)
  t.same(names(), ['open'])
})

t.test('a connection that failed opens it at once where there are other addresses', async t => {
  const { state } = stateOf()
  state.failed('connect', 0, false)
  t.equal(state.breaker, 'open')
  t.equal(state.failure, 'connect')
})

t.test('the only address opens by connections that fail in a row, and by nothing else', async t => {
  const { state } = stateOf()
  for (let count = 0; count < 20; count++) state.failed('request', 0, true)
  t.equal(state.breaker, 'closed')
  state.failed('connect', 0, true)
  state.failed('connect', 0, true)
  t.equal(state.breaker, 'closed')
  state.failed('connect', 0, true)
  t.equal(state.breaker, 'open')
})

t.test('each trial that fails doubles the time, to the most that it may be', async t => {
  const { state, transitions } = stateOf()
  let now = 0
  state.failed('connect', now, false)
  for (let count = 0; count < 6; count++) {
    t.notOk(state.isDue(state.openUntil - 1))
    now = state.openUntil
    t.ok(state.isDue(now))
    state.beginTrial(request)
    t.notOk(state.isDue(now), 'one trial at a time')
    state.failed('request', now, false)
  }
  const times = transitions.flatMap(({ openMs }) => (openMs === undefined ? [] : [openMs]))
  t.same(times, [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000])
  t.same(
    transitions.filter(({ to }) => to === 'open').map(({ isAgain }) => isAgain),
    [false, true, true, true, true, true, true]
  )
})

t.test('the time of the only address does not grow: nothing else could answer', async t => {
  const { state, transitions } = stateOf()
  for (let count = 0; count < 3; count++) state.failed('connect', 0, true)
  for (let count = 0; count < 3; count++) {
    state.beginTrial(request)
    state.failed('connect', state.openUntil, true)
  }
  const times = transitions.flatMap(({ openMs }) => (openMs === undefined ? [] : [openMs]))
  t.same(times, [1000, 1000, 1000, 1000])
})

t.test('a trial of the only address that found a connection closes it', async t => {
  const { state } = stateOf()
  for (let count = 0; count < 3; count++) state.failed('connect', 0, true)
  state.beginTrial(request)
  state.failed('request', 1000, true)
  t.equal(state.breaker, 'closed')
})

t.test('the time is a quarter more or less, so that replicas do not try at once', async t => {
  for (const [random, expected] of [
    [0, 750],
    [1, 1250]
  ] as const) {
    const { state } = stateOf(random)
    state.failed('connect', 0, false)
    t.equal(state.openUntil, expected)
  }
})

t.test(
  'one that opens again soon after it closed goes on growing; later it begins anew',
  async t => {
    const { state, transitions } = stateOf()
    state.failed('connect', 0, false)
    state.beginTrial(request)
    state.succeeded(1000)
    state.failed('connect', 2000, false)
    state.beginTrial(request)
    state.succeeded(4000)
    state.failed('connect', 34_001, false)
    const times = transitions.flatMap(({ openMs }) => (openMs === undefined ? [] : [openMs]))
    t.same(times, [1000, 2000, 1000])
  }
)

t.test('after a trial that succeeded its share grows from a tenth to all', async t => {
  const { state } = stateOf()
  t.equal(state.share(0), 1, 'from the start')
  state.failed('connect', 0, false)
  state.beginTrial(request)
  state.succeeded(2000)
  t.equal(state.share(2000), 0.1)
  t.equal(state.share(7000), 0.5)
  t.equal(state.share(12_000), 1)
})

t.test('a trial that taught nothing leaves it due', async t => {
  const { state } = stateOf()
  state.failed('connect', 0, false)
  state.beginTrial(request)
  state.abandonTrial({})
  t.equal(state.breaker, 'trial', 'another request has no say')
  state.abandonTrial(request)
  t.equal(state.breaker, 'open')
  t.ok(state.isDue(1000))
  state.succeeded(1000)
  t.equal(state.breaker, 'open', 'a late response of an earlier request closes nothing')
})

t.test('health checks take it out and bring it back, whatever requests found', async t => {
  const { state, names } = stateOf()
  state.setHealthy(true, 0)
  state.setHealthy(false, 0)
  state.setHealthy(false, 0)
  t.notOk(state.isUsable)
  t.equal(state.breaker, 'closed')
  state.failed('connect', 0, false)
  state.setHealthy(true, 100)
  t.ok(state.isUsable)
  t.equal(state.share(100), 0.1)
  t.same(names(), ['unhealthy', 'open', 'healthy', 'closed'])
})
