import t from 'tap'
import { freshnessOf, wishesOf } from '../../src/proxy/freshness.ts'

const now = Date.parse('Sun, 01 Mar 2026 12:00:00 GMT')
const read = (headers: Record<string, string | string[]>, delayMs = 0) =>
  freshnessOf(headers, now, delayMs)
const lifetime = (headers: Record<string, string | string[]>) => read(headers).lifetimeMs

t.test('max-age wins over Expires; what cannot be read is not fresh', async t => {
  const expires = 'Sun, 01 Mar 2026 12:01:00 GMT'
  t.equal(lifetime({ 'cache-control': 'max-age=30', expires }), 30_000)
  t.equal(lifetime({ expires }), 60_000)
  t.equal(lifetime({ expires, date: 'Sun, 01 Mar 2026 12:00:30 GMT' }), 30_000)
  t.equal(lifetime({}), 0, 'no heuristics')
  const unreadable = [
    'max-age=x',
    'max-age=-1',
    'max-age=1, max-age=2',
    'max-age=1e9',
    's-maxage=9'
  ]
  for (const value of unreadable) {
    t.equal(lifetime({ 'cache-control': value }), 0, value)
  }
  for (const value of ['0', '-1', '2027', 'tomorrow']) t.equal(lifetime({ expires: value }), 0)
  t.equal(lifetime({ 'cache-control': ['private', 'Max-Age="30"'] }), 30_000)
})

t.test('the age counts from where the response was made', async t => {
  t.equal(read({ age: '7' }, 500).initialAgeMs, 7500)
  t.equal(read({ date: 'Sun, 01 Mar 2026 11:59:00 GMT' }).initialAgeMs, 60_000)
  t.equal(read({ date: 'Sun, 01 Mar 2026 12:01:00 GMT' }).initialAgeMs, 0, 'a clock ahead')
  t.equal(read({ age: 'x' }).initialAgeMs, 0)
})

t.test('directives hold in any case, and in several headers', async t => {
  t.equal(read({ 'cache-control': 'private, No-Store' }).mayStore, false)
  t.equal(read({ 'cache-control': ['private', 'NO-STORE'] }).mayStore, false)
  t.equal(read({ vary: 'accept, *' }).mayStore, false)
  t.equal(read({ 'cache-control': 'private' }).mayStore, true)
  for (const value of ['no-cache', 'No-Cache="set-cookie"', 'must-revalidate']) {
    t.equal(read({ 'cache-control': value }).mayBeStale, false, value)
  }
  t.equal(read({ pragma: 'no-cache' }).mustValidate, true)
  t.equal(read({ 'pragma': 'no-cache', 'cache-control': 'max-age=1' }).mustValidate, false)
})

t.test('a client may ask for less than what is fresh', async t => {
  t.same(wishesOf({}), {
    mayStore: true,
    mustValidate: false,
    maxAgeMs: Infinity,
    minFreshMs: 0
  })
  t.equal(wishesOf({ 'cache-control': 'no-store' }).mayStore, false)
  t.equal(wishesOf({ 'cache-control': 'no-cache' }).mustValidate, true)
  t.equal(wishesOf({ pragma: 'no-cache' }).mustValidate, true)
  t.equal(wishesOf({ 'cache-control': 'max-age=0' }).maxAgeMs, 0)
  t.equal(wishesOf({ 'cache-control': 'min-fresh=5' }).minFreshMs, 5000)
})
