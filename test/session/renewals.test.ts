import { setImmediate as nextTurn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { CredentialSource } from '../../src/login/credential-source.ts'
import { createTokenRefresh } from '../../src/login/token-refresh.ts'
import { createMemoryStore } from '../../src/session/memory-store.ts'
import type { Credential } from '../../src/session/record.ts'
import { createRecordFormat } from '../../src/session/record-format.ts'
import { createSeal } from '../../src/session/seal.ts'
import { createSessions, type NewSession } from '../../src/session/session.ts'
import { type SessionStore, StoreUnavailable } from '../../src/session/store.ts'
import { until } from '../support/until.ts'

const hour = 3_600_000
const seal = createSeal(['a secret of at least thirty-two characters'])
const opening: NewSession = {
  identity: { id: '1', username: 'carol', name: 'Carol', roles: [], profile: {} },
  source: 'source',
  remembered: false,
  address: '',
  agent: ''
}

/**
 * A back-end that takes each refresh token once; its answers wait until the test lets them go.
 * @param lifeMs of its tokens
 */
function rotatingBackEnd(lifeMs: number) {
  let valid = 'first'
  let issued = 0
  const waiting: Array<() => void> = []
  const signedOut: Array<string | undefined> = []
  return {
    signedOut,
    /** How many have exchanged, or been refused, and wait for the answer. */
    asked: () => issued,
    waiting,
    source: (isSlow: boolean): CredentialSource => ({
      name: 'source',
      verify: async () => ({ vouched: false }),
      renewBeforeMs: 60_000,
      signOut: async ({ credential }) => {
        signedOut.push(credential?.token)
      },
      renew: async ({ credential }) => {
        const isTaken = credential?.refreshToken === valid
        issued++
        const renewed: Credential = {
          token: `token-${issued}`,
          refreshToken: `refresh-${issued}`,
          expiresAt: Date.now() + lifeMs
        }
        if (isTaken) valid = `refresh-${issued}`
        if (isSlow) {
          await new Promise<void>(resolve => {
            waiting.push(resolve)
          })
        }
        return isTaken ? renewed : undefined
      }
    })
  }
}

async function setUp(t: Test, lifeMs = hour) {
  const clock = { skip: 0 }
  const now = () => Date.now() + clock.skip
  const inner = createMemoryStore(now)
  t.teardown(() => inner.close())
  const backEnd = rotatingBackEnd(lifeMs)
  const replica = ({
    isSlow = false,
    store = inner
  }: { isSlow?: boolean; store?: SessionStore } = {}) => {
    const sessions = createSessions({
      store: { ...store, follow: () => {} },
      seal,
      lifeTimes: { idle: hour, absolute: hour, remembered: {} },
      perUser: { max: 5, over: 'evict-oldest' },
      maxStalenessMs: 2000,
      now
    })
    return {
      sessions,
      tokenRefresh: createTokenRefresh({ sessions, sources: [backEnd.source(isSlow)] })
    }
  }
  const { sessions } = replica()
  const live = await sessions.open('secret', {
    ...opening,
    credential: { token: 'old', refreshToken: 'first', expiresAt: Date.now() - 1 }
  })
  const stored = async () => {
    const resolved = await sessions.get('secret')
    return 'live' in resolved ? resolved.live.session : resolved
  }
  return { clock, inner, backEnd, replica, live, stored, sessions }
}

/** A store that can be away. */
function breakable(inner: SessionStore, methods: ReadonlyArray<'read' | 'replace' | 'fence'>) {
  const state = { isAway: false }
  const broken = Object.fromEntries(
    methods.map(name => [
      name,
      async (...given: unknown[]) => {
        if (state.isAway) throw new StoreUnavailable(new Error('gone'))
        return await (inner[name] as (...given: unknown[]) => Promise<unknown>)(...given)
      }
    ])
  )
  return { state, store: { ...inner, ...broken } as SessionStore }
}

t.test(
  'what changes in a session while its token is exchanged stays, and the token too',
  async t => {
    const { replica, backEnd, live, inner, stored } = await setUp(t)
    const format = createRecordFormat(seal)
    const changeRoles = async (roles: string[]) => {
      const { record = '' } = (await inner.read(live.key)) ?? {}
      const content = format.open(live.key, record)
      if (content === undefined) throw new Error('no session')
      const { session, epoch } = content
      const changed = format.close(live.key, {
        session: { ...session, identity: { ...session.identity, roles } },
        epoch
      })
      t.equal(await inner.replace(live.key, record, changed), true)
    }
    // Another replica writes it twice: during the exchange, and between reading and writing.
    let writes = 0
    const store: SessionStore = {
      ...inner,
      replace: async (...given) => {
        if (writes++ === 0) await changeRoles(['second'])
        return await inner.replace(...given)
      }
    }
    const renewal = replica({ isSlow: true, store }).tokenRefresh.ensureFresh(live)
    await until('the back-end was asked', () => backEnd.waiting.length === 1)
    await changeRoles(['first'])
    backEnd.waiting[0]?.()
    t.match(await renewal, {
      session: { credential: { token: 'token-1' }, identity: { roles: ['second'] } }
    })
    t.match(await stored(), {
      credential: { token: 'token-1', refreshToken: 'refresh-1' },
      identity: { roles: ['second'] }
    })
    t.equal(writes, 2)
  }
)

t.test('nothing is exchanged while the store does not answer', async t => {
  const { replica, backEnd, live, inner } = await setUp(t)
  const { state, store } = breakable(inner, ['fence'])
  const { tokenRefresh } = replica({ store })
  state.isAway = true
  await t.rejects(tokenRefresh.ensureFresh(live), { code: 'session.unavailable' })
  t.equal(backEnd.asked(), 0)
})

t.test(
  'a token that was renewed while the store went away is used, and written when the store is back',
  async t => {
    const { replica, backEnd, live, inner, stored } = await setUp(t)
    const { state, store } = breakable(inner, ['read', 'replace'])
    const { tokenRefresh } = replica({ isSlow: true, store })
    const renewal = tokenRefresh.ensureFresh(live)
    await until('the back-end was asked', () => backEnd.waiting.length === 1)
    state.isAway = true
    backEnd.waiting[0]?.()
    t.equal((await renewal).session.credential?.token, 'token-1')
    t.equal(
      (await tokenRefresh.ensureFresh(live)).session.credential?.token,
      'token-1',
      'by further requests too'
    )
    t.match(await stored(), { credential: { token: 'old' } })
    // Another replica is refused meanwhile: that ends nothing.
    await t.rejects(replica().tokenRefresh.ensureFresh(live), {
      code: 'session.unavailable',
      status: 503
    })
    t.match(await stored(), { credential: { token: 'old' } })
    state.isAway = false
    await until('it is written', async () => {
      const session = await stored()
      return 'credential' in session && session.credential?.token === 'token-1'
    })
    t.equal((await replica().tokenRefresh.ensureFresh(live)).session.credential?.token, 'token-1')
    t.equal(backEnd.asked(), 2)
  }
)

t.test(
  'a held token that is due again is exchanged, not taken back for the stored one',
  async t => {
    const { replica, backEnd, live, inner, stored } = await setUp(t, -1)
    const { state, store } = breakable(inner, ['replace'])
    const { tokenRefresh } = replica({ store })
    state.isAway = true
    const tokens: unknown[] = []
    for (let times = 0; times < 3; times++) {
      tokens.push((await tokenRefresh.ensureFresh(live)).session.credential?.token)
    }
    t.same(tokens, ['token-1', 'token-2', 'token-3'])
    state.isAway = false
    await until('the last one is written', async () => {
      const session = await stored()
      return 'credential' in session && session.credential?.token === 'token-3'
    })
    t.equal(backEnd.asked(), 3)
  }
)

t.test('a held token is put into the session as it is looked up, not as it was', async t => {
  const { replica, live, inner } = await setUp(t)
  const { state, store } = breakable(inner, ['replace'])
  const { sessions } = replica({ store })
  state.isAway = true
  await sessions.renew(live, { token: 'new' }, 1)
  const { session } = live
  const identity = { ...session.identity, roles: ['fewer'] }
  t.match(sessions.withHeld({ ...live, session: { ...session, identity }, idleEnd: 1 }), {
    idleEnd: 1,
    session: { credential: { token: 'new' }, identity: { roles: ['fewer'] } }
  })
})

t.test('a token that is held while an older one is written stays until it is written', async t => {
  const { replica, live, inner, stored } = await setUp(t)
  let isBeingWritten = false
  const gate = Promise.withResolvers<void>()
  const { state, store } = breakable(inner, ['read'])
  const { sessions } = replica({
    store: {
      ...store,
      replace: async (...given) => {
        isBeingWritten = true
        await gate.promise
        return await inner.replace(...given)
      }
    }
  })
  state.isAway = true
  await sessions.renew(live, { token: 'older' }, 1)
  state.isAway = false
  await until('the older one is being written', () => isBeingWritten)
  state.isAway = true
  await sessions.renew(live, { token: 'newer' }, 2)
  state.isAway = false
  gate.resolve()
  await until('the newer one is written', async () => {
    const session = await stored()
    return 'credential' in session && session.credential?.token === 'newer'
  })
})

t.test('a held token whose session ends before it is written is signed out', async t => {
  const { replica, backEnd, live, inner } = await setUp(t)
  const { state, store } = breakable(inner, ['replace'])
  const { tokenRefresh, sessions } = replica({ store })
  state.isAway = true
  t.equal((await tokenRefresh.ensureFresh(live)).session.credential?.token, 'token-1')
  await sessions.close('secret', 'revoked')
  await until('it is signed out', () => backEnd.signedOut.length > 0)
  t.same(backEnd.signedOut, ['token-1'])
})

t.test('a token that another session of the user has too is not signed out', async t => {
  const { replica, backEnd, live, sessions } = await setUp(t)
  const { tokenRefresh } = replica({ isSlow: true })
  const renewal = tokenRefresh.ensureFresh(live)
  await until('the back-end was asked', () => backEnd.waiting.length === 1)
  await sessions.open('other', { ...opening, credential: { token: 'token-1' } })
  await sessions.close('secret', 'revoked')
  backEnd.waiting[0]?.()
  await t.rejects(renewal, { code: 'session.revoked' })
  // The store is in memory, so by then the sign-out would have begun.
  await nextTurn()
  t.same(backEnd.signedOut, [])
})

t.test('a held token is signed out at the end of its session’s time', async t => {
  const { clock, replica, backEnd, live, inner } = await setUp(t)
  const { state, store } = breakable(inner, ['read', 'replace'])
  const { sessions, tokenRefresh } = replica({ isSlow: true, store })
  const renewal = tokenRefresh.ensureFresh(live)
  await until('the back-end was asked', () => backEnd.waiting.length === 1)
  state.isAway = true
  backEnd.waiting[0]?.()
  await renewal
  clock.skip = hour
  await until('it is signed out', () => backEnd.signedOut.length > 0)
  t.same(backEnd.signedOut, ['token-1'])
  t.equal(sessions.withHeld(live).session.credential?.token, 'old', 'and held no more')
})

t.test('a replica that asked nobody says nothing of a token that another one holds', async t => {
  const { replica, backEnd, live, inner, stored } = await setUp(t)
  const holding = breakable(inner, ['read', 'replace'])
  const holder = replica({ isSlow: true, store: holding.store })
  const renewal = holder.tokenRefresh.ensureFresh(live)
  await until('the back-end was asked', () => backEnd.waiting.length === 1)
  holding.state.isAway = true
  backEnd.waiting[0]?.()
  await renewal
  const failing = breakable(inner, ['read'])
  failing.state.isAway = true
  const unavailable = { code: 'session.unavailable', status: 503 }
  await t.rejects(replica({ store: failing.store }).tokenRefresh.ensureFresh(live), unavailable)
  await t.rejects(replica().tokenRefresh.ensureFresh(live), unavailable, 'not ended')
  holding.state.isAway = false
  await until('it is written', async () => {
    const session = await stored()
    return 'credential' in session && session.credential?.token === 'token-1'
  })
})

t.test('a holder of the lock that was paused does not write over what a later one got', async t => {
  const { clock, replica, backEnd, live, stored, inner } = await setUp(t)
  const paused = replica({ isSlow: true })
  const first = paused.tokenRefresh.ensureFresh(live)
  await until('the back-end was asked', () => backEnd.waiting.length === 1)
  // Longer than a lock lasts, and no heartbeat meanwhile.
  clock.skip += 16_000
  const other: CredentialSource = {
    ...backEnd.source(false),
    renew: async () => ({ token: 'of the later', expiresAt: Date.now() + hour })
  }
  const { sessions } = replica({ store: inner })
  const later = createTokenRefresh({ sessions, sources: [other] })
  t.equal((await later.ensureFresh(live)).session.credential?.token, 'of the later')
  backEnd.waiting[0]?.()
  t.equal((await first).session.credential?.token, 'of the later')
  t.match(await stored(), { credential: { token: 'of the later' } })
})

t.test(
  'a refusal under a lock that a paused holder had ends nothing: the holder writes what it got',
  async t => {
    const { clock, replica, backEnd, live, stored } = await setUp(t)
    const first = replica({ isSlow: true }).tokenRefresh.ensureFresh(live)
    await until('the back-end was asked', () => backEnd.waiting.length === 1)
    clock.skip += 16_000
    await t.rejects(replica().tokenRefresh.ensureFresh(live), {
      code: 'session.unavailable',
      status: 503
    })
    backEnd.waiting[0]?.()
    t.equal((await first).session.credential?.token, 'token-1')
    t.match(await stored(), { credential: { token: 'token-1' } })
  }
)

t.test('a paused holder that is refused ends nothing that a later one renewed', async t => {
  const { clock, replica, backEnd, live, stored } = await setUp(t)
  // The later one is asked first: the paused one stands still between lock and exchange.
  const gate = Promise.withResolvers<void>()
  const reached = Promise.withResolvers<void>()
  const source = backEnd.source(false)
  const { sessions } = replica()
  const pausing: CredentialSource = {
    ...source,
    renew: async session => {
      reached.resolve()
      await gate.promise
      return await source.renew?.(session)
    }
  }
  const first = createTokenRefresh({ sessions, sources: [pausing] }).ensureFresh(live)
  await reached.promise
  clock.skip += 16_000
  t.equal((await replica().tokenRefresh.ensureFresh(live)).session.credential?.token, 'token-1')
  gate.resolve()
  t.equal((await first).session.credential?.token, 'token-1')
  t.match(await stored(), { credential: { token: 'token-1' } })
})

t.test(
  'a session that is closed while its token is exchanged stays closed, and its new token is signed out',
  async t => {
    const { replica, backEnd, live, stored, sessions } = await setUp(t)
    const first = replica({ isSlow: true }).tokenRefresh.ensureFresh(live)
    await until('the back-end was asked', () => backEnd.waiting.length === 1)
    await sessions.close('secret', 'revoked')
    backEnd.waiting[0]?.()
    await t.rejects(first, { code: 'session.revoked', status: 401 })
    t.same(await stored(), { ended: 'revoked' })
    t.same(backEnd.signedOut, ['token-1'])
  }
)

t.test(
  'under the lock the store is looked at again: what another has renewed is not renewed twice',
  async t => {
    const { replica, backEnd, live, inner } = await setUp(t)
    const other = replica()
    // Another replica renews and frees the lock between the first look and the taking of the lock.
    let isFirst = true
    const store: SessionStore = {
      ...inner,
      lock: async (...given) => {
        if (isFirst) {
          isFirst = false
          await other.tokenRefresh.ensureFresh(live)
        }
        return await inner.lock(...given)
      }
    }
    const { tokenRefresh } = replica({ store })
    t.equal((await tokenRefresh.ensureFresh(live)).session.credential?.token, 'token-1')
    t.equal(backEnd.asked(), 1)
  }
)
