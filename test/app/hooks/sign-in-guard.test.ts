/** The guard of sign-in by itself: what each attempt takes, gives back and tells. */
import type { FastifyRequest } from 'fastify'
import t, { type Test } from 'tap'
import type { Gateway } from '../../../src/app/gateway.ts'
import { createSignInGuard, operatorsApart } from '../../../src/app/sign-in/guard.ts'
import { createMemoryLockouts, type Lockouts } from '../../../src/limits/lockouts.ts'
import { noLockout } from '../../support/gateway.ts'
import { stopClock } from '../../support/clock.ts'

const minute = 60_000
const of = (failures: number) => ({ failures, every: minute })

function setUp(t: Test, bounds: object, isOfOperators = false) {
  const pass = stopClock(t.after)
  // A test may put other calls in place of these.
  const lockouts: { -readonly [Call in keyof Lockouts]: Lockouts[Call] } = createMemoryLockouts()
  const refused: string[] = []
  const locked: string[] = []
  const log: object[] = []
  const make = (apart: boolean) =>
    createSignInGuard(
      {
        config: { limits: { lockout: { ...noLockout, ...bounds } as never } },
        lockouts,
        counters: {
          onRefused: (limit: string) => void refused.push(limit),
          onLocked: (kind: string) => void locked.push(kind)
        }
      } as unknown as Gateway,
      {
        apart: apart ? operatorsApart : '',
        browsers: {
          idOf: ({ headers }) => headers['x-browser'] as string | undefined,
          remember: () => {}
        }
      }
    )
  const guard = make(isOfOperators)
  interface By {
    readonly browser?: string
    readonly ip?: string
    readonly leaving?: AbortSignal
    readonly by?: typeof guard
  }
  const attempt = (name = 'alice', { browser, ip = '192.0.2.1', leaving, by = guard }: By = {}) => {
    const request = {
      ip,
      headers: { 'x-browser': browser },
      log: { info: (fields: object) => void log.push(fields) }
    }
    const signal = leaving ?? new AbortController().signal
    return by(request as unknown as FastifyRequest, name, signal)
  }
  /** @returns the code of each wrong password, which is empty where it was looked at */
  const guess = async (count: number, ...by: Parameters<typeof attempt>) => {
    const codes: string[] = []
    for (let n = 0; n < count; n++) {
      try {
        await (await attempt(...by)).refused()
        codes.push('')
      } catch (error) {
        codes.push((error as { code: string }).code)
      }
    }
    return codes
  }
  return { pass, lockouts, make, attempt, guess, refused, locked, log }
}

t.test('a browser is counted for each account by itself, and for no address', async t => {
  const { guess } = setUp(t, { address: of(3), accountAndAddress: of(3) })
  t.same(await guess(4, 'alice', { browser: 'shared' }), ['', '', '', 'login.locked'])
  t.same(await guess(1, 'bob', { browser: 'shared' }), [''], 'the other user of this browser')
  t.same(await guess(1, 'alice', { browser: 'own' }), [''], 'another browser of the user')
  t.same(await guess(1, 'alice'), [''], 'a stranger')
  t.same(await guess(1, 'carol'), [''], 'the address')
})

t.test('a lock that holds is logged and counted once, by what it locks', async t => {
  const { guess, refused, locked, log } = setUp(t, {
    accountAndAddress: of(2),
    address: of(3),
    account: of(3)
  })
  await guess(3, 'alice')
  await guess(3, 'alice', { browser: 'secret-id' })
  await guess(2, 'alice', { ip: '192.0.2.2' })
  await guess(2, 'bob')
  t.same(locked, ['accountAndAddress', 'browser', 'account', 'address'])
  const seconds = 60
  t.strictSame(
    log.map(fields => ({ ...fields })),
    [
      { kind: 'accountAndAddress', user: 'alice', address: '192.0.2.1', seconds },
      { kind: 'browser', user: 'alice', seconds },
      { kind: 'account', user: 'alice', seconds },
      { kind: 'address', address: '192.0.2.1', seconds }
    ].map(fields => ({ event: 'login.lock', ...fields }))
  )
  t.same(refused, [
    'lockout.accountAndAddress',
    'lockout.browser',
    'lockout.account',
    'lockout.address'
  ])
})

t.test('the longest wait is told', async t => {
  const { attempt, guess, pass } = setUp(t, {
    address: of(1),
    account: { failures: 1, every: 10 * minute }
  })
  await guess(1)
  pass(20_000)
  await t.rejects(attempt('alice'), {
    code: 'login.locked',
    detail: { retryAfter: 579.999, limit: 'lockout.account' }
  })
  await t.rejects(attempt('bob'), {
    code: 'limit.exceeded',
    detail: { retryAfter: 39.999, limit: 'lockout.address' }
  })
})

t.test('what the account refuses is no failure of its address', async t => {
  const { guess } = setUp(t, { address: of(3), account: of(2) })
  t.same(await guess(6, 'alice'), ['', '', ...Array(4).fill('login.locked')])
  t.same(await guess(2, 'bob'), ['', 'limit.exceeded'])
})

t.test('wrong captchas are failures of the address, and at first none of the account', async t => {
  const ofAccount = setUp(t, { account: of(2) })
  for (let n = 0; n < 50; n++) {
    t.equal(await (await ofAccount.attempt()).undecided(false), false)
  }
  t.match(await ofAccount.lockouts.list(), [{ key: 'challenge alice' }])
  for (let n = 0; n < 2; n++) {
    t.equal(await (await ofAccount.attempt()).undecided(false), true, 'from then on they count')
  }
  await t.rejects(ofAccount.attempt(), { code: 'login.locked' })
  const ofAddress = setUp(t, { address: of(2), account: of(5) })
  for (let n = 0; n < 2; n++) t.equal(await (await ofAddress.attempt()).undecided(false), false)
  await t.rejects(ofAddress.attempt(), { code: 'limit.exceeded' })
  t.same(ofAddress.locked, ['address'])

  const atOnce = setUp(t, { account: of(2) })
  for (let n = 0; n < 2; n++) t.equal(await (await atOnce.attempt()).undecided(true), true)
  await t.rejects(atOnce.attempt(), { code: 'login.locked' })
})

t.test('guesses at the operators’ page are counted apart', async t => {
  const { attempt, guess, make } = setUp(t, { account: of(2), address: of(9) })
  const by = make(true)
  t.same(await guess(3, 'alice'), ['', '', 'login.locked'])
  t.same(await guess(3, 'alice', { by }), ['', '', 'login.locked'])
  for (let n = 0; n < 3; n++) await (await attempt('bob', { by })).undecided(false)
  t.same(await guess(1, 'bob'), [''])
})

t.end()
