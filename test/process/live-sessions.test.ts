import t from 'tap'
import { Metrics } from '../../src/observability/metrics.ts'
import { measureSessions } from '../../src/process/census.ts'
import { newSession, sharedMemory, signIn } from '../support/sessions.ts'

/** The lines about sessions and users. */
async function linesOf(metrics: Metrics): Promise<string[]> {
  const { body } = await metrics.text()
  return body.split('\n').filter(line => /^console_gateway_(sessions|users)/.test(line))
}

t.test('scrapes share one count for ten seconds', async t => {
  let now = 0
  const metrics = new Metrics()
  const { replica } = sharedMemory()
  measureSessions(metrics, replica().store, () => now)
  const users = async () => (await linesOf(metrics))[0]
  t.equal(await users(), 'console_gateway_users_signed_in 0')
  for (const user of ['u', 'u', 'v']) await signIn(replica(), newSession(user))
  now += 9000
  t.equal(await users(), 'console_gateway_users_signed_in 0')
  now += 2000
  t.equal(await users(), 'console_gateway_users_signed_in 2')
})

t.test('without an answer of the store there is no number, and no scrape waits for it', async t => {
  const answers = [Promise.reject(new Error('away')), new Promise<never>(() => {})]
  for (const answer of answers) {
    const metrics = new Metrics()
    measureSessions(metrics, { signedIn: async () => await answer })
    t.same(await linesOf(metrics), [])
  }
})
