import { mock } from 'node:test'
import t from 'tap'
import {
  createFallback,
  createSettlements,
  createSwitch
} from '../../../src/limits/counting/with-fallback.ts'

t.test('what Redis could not be told is told again, before it is asked anything else', async t => {
  const settlements = createSettlements(createSwitch({ onAway: () => {} }))
  t.teardown(() => settlements.close())
  const told: string[] = []
  let failures = 2
  settlements.add(async () => {
    told.push('sound')
  })
  settlements.add(async () => {
    if (failures-- > 0) throw new Error('away')
    told.push('failed twice')
  })
  const ask = async () => {
    told.push('asked')
  }
  await t.rejects(settlements.first(ask), { message: 'Redis is unavailable again' })
  await t.rejects(settlements.first(ask), { message: 'Redis is unavailable again' })
  await settlements.first(ask)
  t.same(told, ['sound', 'failed twice', 'asked'])
})

t.test('what Redis refuses for good is dropped, and said', async t => {
  const dropped: string[] = []
  const settlements = createSettlements(createSwitch({ onAway: () => {} }), ({ message }) =>
    dropped.push(message)
  )
  t.teardown(() => settlements.close())
  const refusal = (message: string) => Object.assign(new Error(message), { name: 'ReplyError' })
  const refused = [
    'WRONGTYPE Operation against a key holding the wrong kind of value script: 1, on @user_script:9.',
    'ERR user_script:3: attempt to compare nil with number'
  ]
  const passing = [
    new Error('Connection is closed.'),
    refusal('LOADING Redis is loading the dataset in memory'),
    refusal("READONLY You can't write against a read only replica. script: 1, on @user_script:5."),
    refusal("ERR Error running script (call to f_1): @user_script:5: -READONLY You can't write"),
    refusal('CLUSTERDOWN The cluster is down'),
    refusal('TRYAGAIN Multiple keys request during rehashing of slot'),
    refusal('MASTERDOWN Link with MASTER is down'),
    refusal('BUSY Redis is busy running a script.'),
    refusal('MISCONF Redis is configured to save RDB snapshots'),
    refusal("OOM command not allowed when used memory > 'maxmemory'.")
  ]
  let told = 0
  for (const message of refused) settlements.add(() => Promise.reject(refusal(message)))
  for (const error of passing) {
    let isFirst = true
    settlements.add(async () => {
      if (isFirst) {
        isFirst = false
        throw error
      }
      told++
    })
  }
  await t.rejects(settlements.first(async () => {}))
  t.same(dropped, refused)
  await settlements.first(async () => {})
  t.equal(told, passing.length)
  t.same(dropped, refused)
})

t.test('after a failure Redis is not asked for a second, and each change is told once', async t => {
  const clock = { now: 0 }
  const changes: boolean[] = []
  const choose = createSwitch({ onAway: away => changes.push(away), now: () => clock.now })
  let isUp = true
  let asked = 0
  const shared = async () => {
    asked++
    if (!isUp) throw new Error('away')
    return 'shared'
  }
  const ask = async () => await choose(shared, async () => 'local')
  t.same([await ask(), await ask()], ['shared', 'shared'])
  t.same([asked, changes], [2, []])
  isUp = false
  for (const at of [0, 1, 999]) {
    clock.now = at
    t.equal(await ask(), 'local')
  }
  t.same([asked, changes], [3, [true]], 'one request has found out')
  clock.now = 1000
  t.equal(await ask(), 'local')
  t.same([asked, changes], [4, [true]])
  isUp = true
  clock.now = 1999
  t.equal(await ask(), 'local')
  clock.now = 2000
  t.same([await ask(), await ask()], ['shared', 'shared'])
  t.same([asked, changes], [6, [true, false]])
  isUp = false
  t.equal(await ask(), 'local')
  t.same(changes, [true, false, true])
})

t.test('a call that Redis missed is sent once, however many are asked meanwhile', async t => {
  const settlements = createSettlements(createSwitch({ onAway: () => {} }))
  t.teardown(() => settlements.close())
  const { promise, resolve } = Promise.withResolvers<void>()
  const told: string[] = []
  settlements.add(async () => {
    await promise
    told.push('missed')
  })
  const ask = async () => void told.push('asked')
  const asks = [settlements.first(ask), settlements.first(ask)]
  await Promise.resolve()
  t.same(told, [])
  resolve()
  await Promise.all(asks)
  t.same(told, ['missed', 'asked', 'asked'])
  await settlements.first(ask)
  t.equal(told.filter(each => each === 'missed').length, 1)
})

t.test(
  'a call that Redis missed while it was told of another is told before it is asked',
  async t => {
    const settlements = createSettlements(createSwitch({ onAway: () => {} }))
    t.teardown(() => settlements.close())
    const { promise, resolve } = Promise.withResolvers<void>()
    const told: string[] = []
    settlements.add(async () => {
      await promise
      told.push('missed')
    })
    const ask = async () => void told.push('asked')
    const asks = [settlements.first(ask)]
    settlements.add(async () => void told.push('missed meanwhile'))
    asks.push(settlements.first(ask))
    resolve()
    await Promise.all(asks)
    t.same(told.slice(0, 2), ['missed', 'missed meanwhile'])
    t.same(told.slice(2), ['asked', 'asked'])
  }
)

t.test('of a long outage the last ten thousand calls are kept', async t => {
  const settlements = createSettlements(createSwitch({ onAway: () => {} }))
  t.teardown(() => settlements.close())
  const told: number[] = []
  for (let n = 0; n < 10_002; n++) settlements.add(async () => told.push(n))
  await settlements.first(async () => {})
  t.same([told.length, told[0], told.at(-1)], [10_000, 2, 10_001])
})

t.test(
  'of calls that are missed while others fail the last ten thousand are kept, too',
  async t => {
    const settlements = createSettlements(createSwitch({ onAway: () => {} }))
    t.teardown(() => settlements.close())
    let isAway = true
    const told: number[] = []
    let last = 0
    const miss = (times: number) => {
      for (let time = 0; time < times; time++) {
        const call = last++
        settlements.add(async () => {
          if (isAway) throw new Error('away')
          told.push(call)
        })
      }
    }
    miss(10_000)
    for (let tries = 0; tries < 3; tries++) {
      const asked = settlements.first(async () => {})
      miss(500)
      await t.rejects(asked)
    }
    isAway = false
    await settlements.first(async () => {})
    t.same([told.length, told[0], told.at(-1)], [10_000, 1500, 11_499])
  }
)

t.test(
  'a call that Redis missed is sent without any further request, and later ones too',
  async t => {
    mock.timers.enable({ apis: ['setInterval'] })
    t.after(() => mock.timers.reset())
    const clock = { now: 0 }
    const fallback = createFallback({ onAway: () => {}, now: () => clock.now })
    t.after(() => fallback.close())
    const second = async () => {
      clock.now += 1000
      mock.timers.tick(1000)
      await new Promise(resolve => setImmediate(resolve))
    }
    let failures = 2
    let sent = 0
    fallback.settleLater(async () => {
      sent++
      if (failures-- > 0) throw new Error('away')
    })
    for (const expected of [1, 2, 3, 3, 3]) {
      await second()
      t.equal(sent, expected)
    }
    fallback.settleLater(async () => sent++)
    await second()
    t.equal(sent, 4, 'a later one too')
    fallback.close()
    fallback.settleLater(async () => sent++)
    await second()
    t.equal(sent, 4, 'none after the end')
  }
)

t.test('Redis is asked for nothing before it has what it missed', async t => {
  const fallback = createFallback({ onAway: () => {} })
  t.after(() => fallback.close())
  const told: string[] = []
  fallback.settleLater(async () => told.push('missed'))
  const ask = async () => told.push('asked')
  await fallback.run(ask, async () => told.push('local'))
  t.same(told, ['missed', 'asked'])
})

t.end()
