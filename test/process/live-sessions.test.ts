import t from 'tap'
import { Metrics } from '../../src/observability/metrics.ts'
import { measureSessions } from '../../src/process/census.ts'

/** The lines about sessions and users. */
async function linesOf(metrics: Metrics): Promise<string[]> {
  const { body } = await metrics.text()
  return body.split('\n').filter(line => /^console_gateway_(sessions|users)/.test(line))
}

t.test('scrapes share one count for ten seconds', async t => {
  let now = 0
  const metrics = new Metrics()
  let counts = 0
  const count = async () => ({ sessions: ++counts * 10, users: 7 })
  measureSessions(metrics, count, () => now)
  const first = ['console_gateway_sessions_alive 10', 'console_gateway_users_signed_in 7']
  t.same(await linesOf(metrics), first)
  now += 9000
  t.same(await linesOf(metrics), first)
  now += 2000
  t.same((await linesOf(metrics))[0], 'console_gateway_sessions_alive 20')
})

t.test('without an answer of the store there is no number, and no scrape waits for it', async t => {
  const failing = new Metrics()
  measureSessions(failing, async () => await Promise.reject(new Error('away')))
  t.same(await linesOf(failing), [])
  const slow = new Metrics()
  measureSessions(slow, async () => await new Promise(() => {}))
  t.same(await linesOf(slow), [])
})
