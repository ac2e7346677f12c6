import t from 'tap'
import { Metrics } from '../../src/observability/metrics.ts'
import { measureSessions } from '../../src/services/services.ts'
import { newSession, sharedMemory, signIn } from '../support/sessions.ts'

/** The lines about sessions and users. */
async function linesOf(metrics: Metrics): Promise<string[]> {
  const { body } = await metrics.text()
  return body.split('\n').filter(line => line.startsWith('console_gateway_users'))
}

t.test('users with a live session are counted, each once', async t => {
  const metrics = new Metrics()
  const { replica } = sharedMemory()
  measureSessions(metrics, replica().store)
  t.same(await linesOf(metrics), ['console_gateway_users_signed_in 0'])
  for (const user of ['u', 'u', 'v']) await signIn(replica(), newSession(user))
  t.same(await linesOf(metrics), ['console_gateway_users_signed_in 2'])
})

t.test('without an answer of the store there is no number, and no scrape waits for it', async t => {
  const answers = [Promise.reject(new Error('away')), new Promise<never>(() => {})]
  for (const answer of answers) {
    const metrics = new Metrics()
    measureSessions(metrics, { signedIn: async () => await answer })
    t.same(await linesOf(metrics), [])
  }
})
