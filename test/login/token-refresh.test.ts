import t from 'tap'
import { createMemoryStore } from '../../src/session/memory-store.ts'
import { createTokenRefresh } from '../../src/login/token-refresh.ts'
import type { CredentialSource } from '../../src/login/credential-source.ts'
import { createSeal } from '../../src/session/seal.ts'
import type { Credential } from '../../src/session/record.ts'
import { createSessions, type NewSession } from '../../src/session/session.ts'
import { wallClock } from '../support/clock.ts'
import { cookieOf, testGateway } from '../support/gateway.ts'
import { json, testUpstream } from '../support/upstream.ts'
import { until } from '../support/until.ts'

const opening: NewSession = {
  identity: { id: '1', username: 'carol', name: 'Carol', roles: [], profile: {} },
  source: 'source',
  remembered: false,
  address: '',
  agent: ''
}
const hour = 3_600_000

/** Two replicas over one store, each with the same source; `renew` counts. */
async function setUp(renew: () => Promise<Credential | undefined>, expiresAt: number) {
  const store = createMemoryStore()
  t.teardown(() => store.close())
  const replica = () => {
    const sessions = createSessions({
      store: { ...store, follow: () => {} },
      seal: createSeal(['a secret of at least thirty-two characters']),
      lifeTimes: { idle: hour, absolute: hour, remembered: {} },
      perUser: { max: 5, over: 'evict-oldest' },
      maxStalenessMs: 2000
    })
    const source: CredentialSource = {
      name: 'source',
      verify: async () => ({ vouched: false }),
      renewBeforeMs: 60_000,
      renew
    }
    return { sessions, tokenRefresh: createTokenRefresh({ sessions, sources: [source] }) }
  }
  const [a, b] = [replica(), replica()]
  const live = await a.sessions.open('secret', {
    ...opening,
    credential: { token: 'old', expiresAt }
  })
  return { a, b, live }
}

t.test('a token that holds is left alone', async t => {
  let renewals = 0
  const { a, live } = await setUp(async () => {
    renewals++
    return { token: 'new' }
  }, Date.now() + hour)
  t.equal(await a.tokenRefresh.ensureFresh(live), live)
  t.equal(renewals, 0)
})

t.test(
  'a token that never lives longer than the time before its end is not renewed each time',
  async t => {
    let renewals = 0
    const { a, live } = await setUp(async () => {
      renewals++
      return { token: `new ${renewals}`, expiresAt: Date.now() + 60_000 }
    }, Date.now() - 1)
    const renewed = await a.tokenRefresh.ensureFresh(live)
    t.equal(renewed.session.credential?.token, 'new 1')
    for (let turn = 0; turn < 20; turn++) {
      t.equal((await a.tokenRefresh.ensureFresh(renewed)).session.credential?.token, 'new 1')
    }
    t.equal(renewals, 1)
  }
)

t.test(
  'a renewal that fails before the token has expired is not tried with each request',
  async t => {
    let renewals = 0
    const failed: unknown[] = []
    const { a, live } = await setUp(async () => undefined, Date.now() + 30_000)
    const source: CredentialSource = {
      name: 'source',
      verify: async () => ({ vouched: false }),
      renewBeforeMs: 60_000,
      renew: async () => {
        renewals++
        throw new Error('the back-end is away')
      }
    }
    const { ensureFresh } = createTokenRefresh({
      sessions: a.sessions,
      sources: [source],
      onFailed: error => failed.push(error)
    })
    t.equal(await ensureFresh(live), live)
    await until('it has failed', () => failed.length > 0)
    for (let turn = 0; turn < 20; turn++) t.equal(await ensureFresh(live), live)
    t.equal(renewals, 1)
  }
)

t.test('a wall clock that is set does not end the wait for another replica', async t => {
  const setClock = wallClock(t.after)
  const { a, b, live } = await setUp(async () => ({ token: 'new' }), Date.now() - 1)
  await b.sessions.lock(`renew:${live.key}`, 'other', hour)
  let tries = 0
  const sessions: typeof a.sessions = {
    ...a.sessions,
    lock: async (...parameters) => {
      tries++
      return await a.sessions.lock(...parameters)
    }
  }
  const verify = async () => ({ vouched: false }) as const
  const source = { name: 'source', verify, renew: async () => ({ token: 'new' }) }
  const renewed = createTokenRefresh({ sessions, sources: [source] }).ensureFresh(live)
  renewed.catch(() => {})
  await until('it waits', () => tries > 0)
  setClock(hour)
  const seen = tries
  await Promise.race([renewed, until('it waits still', () => tries > seen + 2)])
  await b.sessions.unlock(`renew:${live.key}`, 'other')
  t.match(await renewed, { session: { credential: { token: 'new' } } })
})

t.test('a burst over two replicas renews a token once, and all get the new one', async t => {
  let renewals = 0
  const { a, b, live } = await setUp(async () => {
    renewals++
    await new Promise(resolve => setImmediate(resolve))
    return { token: 'new', expiresAt: Date.now() + hour }
  }, Date.now() - 1)
  const kept = await Promise.all(
    Array.from({ length: 40 }, (_, i) => (i % 2 === 0 ? a : b).tokenRefresh.ensureFresh(live))
  )
  t.equal(renewals, 1)
  t.same([...new Set(kept.map(({ session }) => session.credential?.token))], ['new'])
  t.match(await b.sessions.get('secret'), {
    live: { session: { credential: { token: 'new' } } }
  })
})

t.test('while the old token holds nobody waits for the new one', async t => {
  const asked: Array<(credential: Credential) => void> = []
  const { a, live } = await setUp(
    () =>
      new Promise(resolve => {
        asked.push(resolve)
      }),
    Date.now() + 30_000
  )
  t.equal((await a.tokenRefresh.ensureFresh(live)).session.credential?.token, 'old')
  await until('the renewal began', () => asked.length > 0)
  asked[0]?.({ token: 'new', expiresAt: Date.now() + hour })
  let token: string | undefined
  await until('the session has another token', async () => {
    const resolved = await a.sessions.get('secret')
    token = 'live' in resolved ? resolved.live.session.credential?.token : undefined
    return token !== 'old'
  })
  t.equal(token, 'new')
})

t.test('a refusal ends the session, and says why', async t => {
  const { a, b, live } = await setUp(async () => undefined, Date.now() - 1)
  await t.rejects(a.tokenRefresh.ensureFresh(live), { code: 'session.upstream', status: 401 })
  t.same(await b.sessions.get('secret'), { ended: 'upstream' })
})

t.test('a back-end that cannot be asked ends nothing', async t => {
  const { a, live } = await setUp(async () => {
    throw new Error('down')
  }, Date.now() - 1)
  await t.rejects(a.tokenRefresh.ensureFresh(live), { message: 'down' })
  t.ok('live' in (await a.sessions.get('secret')))
})

t.test('a session that was closed meanwhile gets no token', async t => {
  const { a, live } = await setUp(
    async () => ({ token: 'new', expiresAt: Date.now() + hour }),
    Date.now() - 1
  )
  await a.sessions.close('secret', 'revoked')
  await t.rejects(a.tokenRefresh.ensureFresh(live), { code: 'session.revoked' })
})

t.test(
  'through the gateway: the upstream gets the renewed token, before the old one ends',
  async t => {
    let issued = 0
    const backend = await testUpstream(t.after, (request, response, { url, body }) => {
      if (url === '/login') {
        return json(200, {
          id: '7',
          token: `token-number-${++issued}`,
          refresh: 'refresh-token',
          expiresIn: 30
        })(request, response, {} as never)
      }
      if (url === '/renew') {
        return json(JSON.parse(body.toString()).refresh === 'refresh-token' ? 200 : 401, {
          token: `token-number-${++issued}`,
          expiresIn: 3600
        })(request, response, {} as never)
      }
      json(200, {})(request, response, {} as never)
    })
    const gateway = await testGateway(t.after, {
      gateway: {
        login: {
          sources: [
            {
              kind: 'upstream-login',
              upstream: 'b',
              path: '/login',
              user: { id: 'id' },
              token: 'token',
              refreshToken: 'refresh',
              expires: { path: 'expiresIn' },
              refresh: {
                path: '/renew',
                body: { refresh: '{refreshToken}' },
                before: '60s',
                token: 'token'
              }
            }
          ]
        }
      },
      routes: {
        upstreams: { b: { url: backend.url, credential: 'bearer' } },
        routes: { orders: { path: '/api/orders', upstream: 'b' } }
      }
    })
    const cookie = cookieOf(
      await gateway.call('/api/auth/admin/login', { json: { username: 'carol', password: 'pw' } })
    )
    await Promise.all(Array.from({ length: 10 }, () => gateway.call('/api/orders', { cookie })))
    await until('the upstream gets the renewed token', async () => {
      await gateway.call('/api/orders', { cookie })
      return backend.seen.at(-1)?.headers.authorization === 'Bearer token-number-2'
    })
    t.equal(backend.seen.filter(({ url }) => url === '/renew').length, 1)
    t.match(backend.seen.find(({ url }) => url === '/renew')?.headers, {
      authorization: 'Bearer token-number-1'
    })
    t.notMatch(JSON.stringify(gateway.log), /token-number|refresh-token/)
  }
)
