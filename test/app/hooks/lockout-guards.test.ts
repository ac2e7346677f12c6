/** The guards of sign-in, by themselves: what each counts, and in which mode. */
import type { FastifyRequest } from 'fastify'
import t from 'tap'
import { createLockout } from '../../../src/app/hooks/lockout.ts'
import type { LockoutConfig } from '../../../src/config/schema/limits.ts'
import { createMemoryLockouts } from '../../../src/limits/lockout/memory-lockouts.ts'

const minute = 60_000
const times = { after: 2, within: 10 * minute, delay: minute, longest: 60 * minute, forget: 24e5 }

type Mode = LockoutConfig['account']['mode']

function setUp(account: Mode, address: Mode) {
  const clock = { now: 1_700_000_000_000 }
  const lockouts = createMemoryLockouts(() => clock.now)
  const refused: Array<[string, boolean]> = []
  const locked: string[] = []
  const log: object[] = []
  const request = { log: { info: (fields: object) => void log.push(fields) } }
  const config = {
    account: { ...times, mode: account },
    address: { ...times, mode: address },
    knownBrowser: { mode: 'on', cookie: 'known', lifetime: 90 * 24 * 60 * minute, after: 3 }
  } as const
  const lockout = createLockout({
    config: { lockout: config },
    lockouts,
    onRefused: (limit, inShadow) => void refused.push([limit, inShadow]),
    onLocked: kind => void locked.push(kind)
  })
  const attempt = (
    name: string,
    browser?: string,
    from = '192.0.2.1',
    leaving = new AbortController().signal
  ) => {
    const signIn = { account: name, address: from, knownBrowser: browser, leaving }
    return lockout.attempt(request as unknown as FastifyRequest, signIn)
  }
  /** @returns the code of each wrong password, which is empty where it was evaluated */
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
  return { clock, lockouts, lockout, attempt, guess, refused, locked, log }
}

t.test('a known browser is held up where one of both guards is enforced', async t => {
  for (const [account, address] of [
    ['enforce', 'shadow'],
    ['shadow', 'enforce'],
    ['off', 'enforce'],
    ['enforce', 'off']
  ] as const) {
    const { guess, lockout } = setUp(account, address)
    t.equal(lockout.countsBrowsers, true)
    t.same(
      await guess(4, 'alice', 'browser'),
      ['', '', '', 'login.locked'],
      `${account} ${address}`
    )
  }
  t.equal(setUp('off', 'off').lockout.countsBrowsers, false)
})

t.test('a browser is counted for each account by itself, and for no address', async t => {
  const { guess } = setUp('enforce', 'enforce')
  t.same(await guess(4, 'alice', 'shared'), ['', '', '', 'login.locked'])
  t.same(await guess(1, 'bob', 'shared'), [''], 'the other user of this browser')
  t.same(await guess(1, 'alice', 'own'), [''], 'another browser of the user')
  t.same(await guess(1, 'carol'), [''], 'the address')
})

t.test(
  'after a lock, one failure locks an account and a browser again, and no address',
  async t => {
    const account = setUp('enforce', 'off')
    t.same(await account.guess(3, 'alice'), ['', '', 'login.locked'])
    t.same(await account.guess(4, 'alice', 'browser'), ['', '', '', 'login.locked'])
    account.clock.now += minute
    t.same(await account.guess(2, 'alice'), ['', 'login.locked'])
    t.same(await account.guess(2, 'alice', 'browser'), ['', 'login.locked'])

    const address = setUp('off', 'enforce')
    t.same(await address.guess(3, 'alice'), ['', '', 'limit.exceeded'])
    address.clock.now += minute
    t.same(await address.guess(3, 'alice'), ['', '', 'limit.exceeded'])
  }
)

t.test('in shadow an address is held up by nothing, and what would have been is told', async t => {
  const { guess, attempt, refused, locked, log } = setUp('off', 'shadow')
  for (let n = 0; n < 5; n++) await (await attempt('alice')).refund()
  t.same([refused, log], [[], []], 'right passwords are no failures')
  t.same(await guess(4, 'alice'), ['', '', '', ''])
  t.same(refused, [
    ['lockout.address', true],
    ['lockout.address', true]
  ])
  t.same(locked, [], 'no lock holds')
  t.match(log, [{ event: 'login.lock', mode: 'shadow', address: '192.0.2.1', seconds: 60 }])
  t.equal(log.length, 1)
})

t.test('a lock that holds is logged and counted once, by what it locks', async t => {
  const { guess, refused, locked, log } = setUp('enforce', 'off')
  await guess(4, 'alice')
  await guess(4, 'alice', 'browser')
  t.same(locked, ['account', 'browser'])
  t.match(log, [
    { mode: 'enforce', user: 'alice', knownBrowser: false, seconds: 60 },
    { mode: 'enforce', user: 'alice', knownBrowser: true, seconds: 60 }
  ])
  t.same(refused, [
    ['lockout.account', false],
    ['lockout.account', false],
    ['lockout.browser', false]
  ])
})

t.test(
  'without a guard of accounts, an address counts what is refused and wrong captchas',
  async t => {
    const { attempt, guess } = setUp('off', 'enforce')
    for (let n = 0; n < 5; n++) await (await attempt('alice')).refund()
    await (await attempt('alice')).undecided()
    t.same(await guess(2, 'alice'), ['', 'limit.exceeded'])
  }
)

t.test('a wrong captcha is a failure of the address, and none of the account', async t => {
  const { attempt, guess } = setUp('enforce', 'enforce')
  for (const from of ['192.0.2.1', '192.0.2.2', '192.0.2.3']) {
    await (await attempt('alice', undefined, from)).undecided()
  }
  t.same(await guess(2, 'bob'), ['', 'limit.exceeded'], 'the first address')
  t.same(await guess(1, 'alice', undefined, '192.0.2.9'), [''], 'the account')
})

t.test('a sign-in that the account refuses takes no place of its address', async t => {
  const { attempt, guess } = setUp('enforce', 'enforce')
  await guess(2, 'alice', undefined, '192.0.2.9')
  for (let n = 0; n < 5; n++) {
    await t.rejects(attempt('alice'), { code: 'login.locked' })
  }
  t.same(await guess(1, 'bob'), [''])
})

t.test('where the lockouts cannot be asked, a sign-in takes no place of its address', async t => {
  const { attempt, guess, lockouts } = setUp('enforce', 'enforce')
  const { attempt: count } = lockouts
  const away = new Error('away')
  lockouts.attempt = async () => await Promise.reject(away)
  for (let n = 0; n < 5; n++) await t.rejects(attempt('alice'), away)
  lockouts.attempt = count
  t.same(await guess(1, 'alice'), [''])
})

t.test('right passwords leave the places of their address, and a lock says how long', async t => {
  const { attempt, guess, clock } = setUp('enforce', 'enforce')
  for (let n = 0; n < 5; n++) await (await attempt('alice')).refund()
  t.same(await guess(1, 'alice'), [''])
  t.same(await guess(1, 'bob'), [''])
  clock.now += 20_000
  await t.rejects(attempt('carol'), {
    code: 'limit.exceeded',
    detail: { retryAfter: 40, limit: 'lockout.address' }
  })
})

t.test('a client that leaves while a place is taken for it gives the place back', async t => {
  const { attempt, guess, lockouts } = setUp('off', 'enforce')
  const { admit } = lockouts
  const left = new Error('the client left')
  for (let n = 0; n < 4; n++) {
    const client = new AbortController()
    lockouts.admit = async (...args) => {
      const admission = await admit(...args)
      client.abort(left)
      return admission
    }
    await t.rejects(attempt('alice', undefined, undefined, client.signal), left)
    await t.rejects(attempt('alice', undefined, undefined, client.signal), left, 'nor later')
  }
  lockouts.admit = admit
  t.same(await guess(1, 'alice'), [''])
})

t.end()
