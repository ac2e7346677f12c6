/** When a session's token is renewed, over two replicas. Through HTTP: http/back-end-sessions. */
import t from 'tap'
import type { CredentialSource } from '../../src/login/credential-source.ts'
import { createTokenRefresh } from '../../src/login/token-refresh.ts'
import type { Credential, Session } from '../../src/session/types.ts'
import { hour, newSession, sharedMemory, signIn, look } from '../support/sessions.ts'
import { until } from '../support/until.ts'

/** Two replicas over one store, with a source that rotates its refresh tokens. */
async function setUp(expiresAt = Date.now() - 1) {
  const memory = sharedMemory()
  const state = { valid: 'r1', renewals: 0, signedOut: [] as unknown[], failed: [] as unknown[] }
  const grant = {
    answer: async ({ credential }: Session): Promise<Credential | undefined> => {
      if (credential?.refreshToken !== state.valid) return undefined
      state.valid = `r${++state.renewals + 1}`
      const token = `new ${state.renewals}`
      return { token, refreshToken: state.valid, expiresAt: Date.now() + hour }
    }
  }
  const source: CredentialSource = {
    name: 's',
    verify: async () => ({ vouched: false }),
    renew: async session => {
      await new Promise(resolve => setImmediate(resolve))
      const credential = await grant.answer(session)
      return credential && { credential }
    },
    signOut: async ({ credential }) => void state.signedOut.push(credential?.token)
  }
  const replica = () => {
    const sessions = memory.replica()
    const log = { warn: (fields: unknown) => void state.failed.push(fields) }
    const { ensureFresh } = createTokenRefresh({ sessions, sources: [source], log })
    return { sessions, ensureFresh }
  }
  const [a, b] = [replica(), replica()]
  const credential = { token: 'old', refreshToken: 'r1', expiresAt }
  const signedIn = await signIn(a.sessions, newSession('carol', { credential }))
  return { ...memory, state, grant, a, b, ...signedIn }
}

const tokenOf = ({ session }: { session: Session }) => session.credential?.token

t.test('a token that lives shorter than the time before is renewed now and then', async t => {
  const { a, live, grant, state } = await setUp()
  grant.answer = async () => {
    return { token: `new ${++state.renewals}`, expiresAt: Date.now() + 60_000 }
  }
  const renewed = await a.ensureFresh(live)
  for (let turn = 0; turn < 20; turn++) t.equal(tokenOf(await a.ensureFresh(renewed)), 'new 1')
  t.equal(state.renewals, 1)
})

t.test('while the old token holds nobody waits, and a failure is not tried each time', async t => {
  const far = await setUp(Date.now() + hour)
  t.equal(await far.a.ensureFresh(far.live), far.live)
  t.equal(far.state.renewals, 0, 'one that holds for long is left alone')
  const { a, live, grant, state, secretId } = await setUp(Date.now() + 30_000)
  const answers = [Promise.withResolvers<undefined>()]
  grant.answer = async () => {
    state.renewals++
    return await answers[0]?.promise
  }
  t.equal(await a.ensureFresh(live), live)
  await until('it is asked', () => state.renewals === 1)
  answers[0]?.reject(new Error('the back-end is away'))
  await until('it has failed', () => state.failed.length === 1)
  for (let turn = 0; turn < 20; turn++) t.equal(await a.ensureFresh(live), live)
  t.equal(state.renewals, 1)
  t.match(await look(a.sessions, secretId), { live: {} })
})

t.test('refused: another process may have been faster', async t => {
  const { a, b, live, grant } = await setUp()
  grant.answer = async () => {
    // As a process does whose lock ended while it was paused.
    await b.sessions.credentials.renew(live, { credential: { token: 'by another' } })
    return undefined
  }
  t.equal(tokenOf(await a.ensureFresh(live)), 'by another')
})

t.test('a session that ends meanwhile: the new token is signed out at its source', async t => {
  const { a, b, live, grant, state } = await setUp()
  const before = await setUp()
  await before.a.sessions.end(before.live, 'revoked')
  await t.rejects(before.a.ensureFresh(before.live), { code: 'session.revoked' })
  t.equal(before.state.renewals, 0, 'one that ended before gets none')
  const { answer } = grant
  grant.answer = async session => {
    const credential = await answer(session)
    await b.sessions.end(live, 'revoked')
    return credential
  }
  await t.rejects(a.ensureFresh(live), { code: 'session.revoked' })
  await until('it is signed out', () => state.signedOut.length > 0)
  t.same(state.signedOut, ['new 1'])
})
