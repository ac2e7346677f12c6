/** Sign-ins are counted by the lockout, then by the limits of attempts; each gives back its own. */
import Fastify, { type FastifyRequest } from 'fastify'
import t, { type Test } from 'tap'
import { createSignInGuard } from '../../../src/app/hooks/sign-in-guard.ts'
import { createMemoryCounters } from '../../../src/limits/counting/counters.ts'
import { createMemoryLockouts } from '../../../src/limits/lockout/memory-lockouts.ts'
import { createLeases } from '../../../src/limits/counting/leases.ts'
import { createMemoryTally } from '../../../src/limits/counting/memory-tally.ts'
import { keepUsage } from '../../../src/limits/usage/usage.ts'

const minute = 60_000
const times = { within: 10 * minute, delay: minute, longest: 60 * minute, forget: 60 * minute }

interface Bounds {
  /** Failures that lock an account. */
  readonly after?: number
  /** The same of an address. */
  readonly ofAddressAfter?: number
  /** Refused attempts that an address, and an account, may have. */
  readonly ofAddress?: number
  readonly ofAccount?: number
}

async function setUp(t: Test, bounds: Bounds) {
  const { after = 100, ofAddressAfter = 100, ofAddress = 100, ofAccount = 100 } = bounds
  const lockouts = createMemoryLockouts(() => 1e12)
  const usage = keepUsage({
    leases: createLeases({ tally: createMemoryTally() }),
    counters: createMemoryCounters(),
    keepMs: 60 * minute,
    processes: () => 1,
    share: undefined
  })
  const { counters } = usage
  const app = Fastify()
  t.after(async () => {
    counters.close()
    await usage.close()
    await usage.leases.close()
    await app.close()
  })
  const limit = { window: minute, mode: 'enforce', refusedOnly: true, routes: [], methods: [] }
  const guard = await createSignInGuard(app, {
    config: {
      ipv6Prefix: 64,
      limits: {
        address: { ...limit, by: ['address'], max: ofAddress },
        account: { ...limit, by: ['account'], max: ofAccount }
      },
      lockout: {
        account: { ...times, mode: 'enforce', after },
        address: { ...times, mode: 'enforce', after: ofAddressAfter },
        knownBrowser: { mode: 'off', after: 1 }
      }
    } as never,
    lockouts,
    counters,
    knownBrowsers: { idOf: () => undefined, remember: () => {} },
    onRefused: () => {},
    onLocked: () => {}
  })
  const request = { ip: '192.0.2.1', routeOptions: {}, log: { info: () => {} } }
  const attempt = (account = 'alice', leaving = new AbortController().signal) =>
    guard.attempt({ ...request } as unknown as FastifyRequest, account, leaving)
  const recordedLimits = async () => {
    const { hours = [] } = (await usage.read?.(0)) ?? {}
    return hours.flatMap(({ use }) => use.limits.map(({ limit }) => limit)).toSorted()
  }
  return { attempt, counters, lockouts, recordedLimits }
}

t.test('an attempt that a limit refuses is no failure of the account', async t => {
  const { attempt, counters } = await setUp(t, { after: 3, ofAddress: 1 })
  await (await attempt()).refused()
  for (let n = 0; n < 5; n++) await t.rejects(attempt(), { code: 'limit.exceeded' })
  await counters.forget('address:192.0.2.1')
  await (await attempt()).refused()
})

t.test('a right password gives back what the lockout and all limits counted', async t => {
  for (const bounds of [{ after: 2 }, { ofAddress: 1 }, { ofAccount: 1 }]) {
    const { attempt } = await setUp(t, bounds)
    for (let n = 0; n < 4; n++) await (await attempt()).refund()
    t.pass(JSON.stringify(bounds))
  }
})

t.test('wrong captchas are failures of the address, and at first none of the account', async t => {
  const ofAccount = await setUp(t, { after: 2, ofAccount: 1 })
  for (let n = 0; n < 3; n++) t.equal(await (await ofAccount.attempt()).undecided(3), false)
  t.equal(await (await ofAccount.attempt()).undecided(3), true, 'from then on it counts')
  await t.rejects(ofAccount.attempt(), { code: 'login.locked' })

  const ofAddress = await setUp(t, { ofAddress: 2 })
  for (let n = 0; n < 2; n++) t.equal(await (await ofAddress.attempt()).undecided(9), false)
  await t.rejects(ofAddress.attempt(), { code: 'limit.exceeded' })

  const locked = await setUp(t, { ofAddressAfter: 2 })
  for (let n = 0; n < 2; n++) t.equal(await (await locked.attempt()).undecided(0), true)
  await t.rejects(locked.attempt(), {
    code: 'limit.exceeded',
    detail: { limit: 'lockout.address', retryAfter: 60 }
  })
})

t.test('a client that left while its sign-in was counted has tried nothing', async t => {
  const { attempt, lockouts } = await setUp(t, { after: 2, ofAddressAfter: 1, ofAccount: 1 })
  const { attempt: count } = lockouts
  for (let n = 0; n < 4; n++) {
    const client = new AbortController()
    const left = new Error('the client left')
    lockouts.attempt = async (...args) => {
      client.abort(left)
      return await count(...args)
    }
    await t.rejects(attempt('alice', client.signal), left)
  }
  lockouts.attempt = count
  await (await attempt()).refused()
})

t.test('the record of use has the limits, and no wrong captchas', async t => {
  const { attempt, recordedLimits } = await setUp(t, {})
  for (const account of ['alice', 'bob', 'a:b', ':']) {
    await (await attempt(account)).undecided(9)
  }
  t.same(await recordedLimits(), ['account', 'address'])
})

t.end()
