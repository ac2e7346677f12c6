/** What the operators' API takes, and what it says to the rest. */
import t from 'tap'
import { testGateway } from '../../support/gateway.ts'

/** How what is refused is told what to say instead. */
const lockouts = /^(account|address) must /
const either = /^Name an account or an address: /
const caller = /caller'? ?(must|$)|^caller must NOT have more.*user\.$/
const close = /^(user|by|id|source|everyone) must |^Name a user by .* alone\.$/
const list = /^(user|by|source|size) must |^`by` and `source` go with `user`\.$/
const requests = /^(status must .*`404`|last must .*at most 500|id must .*64 letters)/
const maintenance =
  /required property 'until'|^until must .*01T06:00Z|properties route$|PATCH, DELETE|^message must/
const end = /is a time in the future, at most 7 days ahead/
const nowhere = /has no route "nowhere"/
const block = /no credential source "users", but users-file|is blank|forMs must be/
const inMs = (ms: number) => new Date(Date.now() + ms).toISOString()
const until = inMs(3_600_000)

/** Two units of JavaScript, one character of Unicode. */
const wide = '😀'

/** Bodies by path, in JSON; the message with which they are refused, or where they are taken none. */
const bodies: ReadonlyArray<
  readonly [path: string, message: RegExp | undefined, ...bodies: unknown[]]
> = [
  ['reload', undefined, {}, [], 5, 'x', null, { yes: 'x' }, { yes: true, more: 1 }],
  ['lockouts/lift', lockouts, { account: '' }, { account: 5 }, { account: null }],
  ['lockouts/lift', lockouts, { address: 'x' }, { address: '' }, { account: 'a', address: 5 }],
  ['lockouts/lift', either, {}, [], 5, null, { other: 'a' }],
  ['lockouts/lift', undefined, { account: 'a' }, { account: 'a', address: '::1', more: 1 }],
  ['lockouts/lift', undefined, { address: 'fe80::1%lo' }, { account: wide.repeat(300) }],
  ['limits/caller/reset', caller, {}, [], null, { caller: '' }, { caller: 5 }],
  ['limits/caller/reset', caller, { caller: 'a'.repeat(256) }, { caller: wide.repeat(128) }],
  ['limits/caller/reset', undefined, { caller: 'a'.repeat(255) }, { caller: '::1', more: 1 }],
  ['sessions/close', close, {}, [], 5, null, { id: 'x' }, { everyone: 'true' }],
  ['sessions/close', close, { user: '' }, { user: 5 }, { user: ['alice'] }, { by: 'id' }],
  ['sessions/close', close, { user: 'a', by: 'x' }, { user: 'a', source: 5 }],
  ['sessions/close', close, { user: 'a', id: 5 }, { user: 'a', id: null }],
  ['sessions/close', close, { user: 'a', everyone: true }, { source: 'x', everyone: true }],
  ['sessions/close', undefined, { user: 'a' }, { user: 'a', by: 'name', source: 'x' }],
  ['sessions/close', undefined, { user: 'a', id: '', everyone: false }, { everyone: true }],
  ['maintenance', maintenance, {}, { until: 'tomorrow' }, { until, route: ['orders'] }],
  ['maintenance', maintenance, { until, methods: ['GRAB'] }, { until, message: 'x'.repeat(501) }],
  ['maintenance', end, { until: inMs(-1000) }, { until: inMs(8 * 86_400_000) }],
  ['maintenance', nowhere, { until, routes: ['nowhere'] }],
  ['users/block', block, { name: 'a', source: 'users' }, { name: '  ' }, { name: 'a', forMs: 1e15 }]
]

/** Queries likewise. */
const queries: ReadonlyArray<readonly [message: RegExp | undefined, ...targets: string[]]> = [
  [undefined, 'plan', 'plan?other=1'],
  [lockouts, 'lockouts?account=', 'lockouts?address=x', 'lockouts?account=a&account=b'],
  [undefined, 'lockouts', 'lockouts?account=a', 'lockouts?address=192.0.2.1&other='],
  [caller, 'limits/caller', 'limits/caller?caller=', 'limits/caller?caller=a&caller=b'],
  [undefined, 'limits/caller?caller=a'],
  [list, 'sessions?user=', 'sessions?by=id', 'sessions?source=x', 'sessions?user=a&by=x'],
  [list, 'sessions?user=a&user=b', 'sessions?user=a&source=a&source=b'],
  [list, 'sessions?size=0', 'sessions?size=1001', 'sessions?size=x'],
  [undefined, 'sessions', 'sessions?id=1', 'sessions?user=a&by=id&source=x', 'sessions?size=1000'],
  [requests, 'requests?status=x', 'requests?status=9xx', 'requests?last=0', 'requests?last=501'],
  [requests, `requests?id=${'x'.repeat(65)}`, 'requests?id=a/b'],
  [undefined, 'requests?last=500', 'requests?id=some-id']
]

const gateway = await testGateway(t.teardown)

t.test('operators’ requests are taken, or refused with what to say instead', async t => {
  const isAnswered = async (asked: Promise<Response>, error: RegExp | undefined, title: string) => {
    const response = await asked
    const expected = { status: error === undefined ? 200 : 400, error }
    t.match({ ...((await response.json()) as object), status: response.status }, expected, title)
  }
  for (const [path, message, ...given] of bodies) {
    for (const json of given) {
      const asked = gateway.ops(`/ops/api/${path}`, { json })
      await isAnswered(asked, message, `${path} ${JSON.stringify(json)}`)
    }
  }
  const { operators } = await gateway.opsJson('maintenance')
  t.same(operators, [], 'what does not fit changes nothing')
  for (const [message, ...targets] of queries) {
    for (const target of targets) {
      await isAnswered(gateway.ops(`/ops/api/${target}`), message, target)
    }
  }
  const withoutBody = { method: 'POST' }
  await isAnswered(gateway.ops('/ops/api/reload', withoutBody), undefined, 'no body')
  await isAnswered(gateway.ops('/ops/api/lockouts/lift', withoutBody), either, 'no body')
})
