import t from 'tap'
import { testGateway } from '../support/gateway.ts'

const rollback =
  'Give the number of a revision, {"to": NUMBER}, or none for the one before; or the hash of its ' +
  'config, {"hash": "HASH"}, with {"all": true} for all replicas.'
const hash = '0123456789abcdef'
const lockouts = 'An account is given by its user name, an address as an IP address.'
const either = 'Name an account or an address: {"account": "NAME"}, {"address": "IP"}, or both.'
const caller = 'Name the caller: {"caller": "192.0.2.1"}, or the id or name of a user.'
const counts =
  'Name the request: {"route": "NAME", "method": "GET", "address": "192.0.2.1", ' +
  '"source": "NAME", "user": "ID", "roles": []}'
const source = 'Name the source of the user: {"source": "users-file", "user": "ID"}.'
const close =
  'Name the sessions: {"user": "ID or NAME"}, {"user": "…", "id": "SESSION"} or ' +
  '{"everyone": true}; with {"by": "id"} or "name", and {"source": "NAME"}, if several users fit.'
const list =
  'Name a user: /sessions?user=ID-or-NAME, with &by=id or &by=name and &source=NAME, ' +
  'or none for all sessions.'
const plan = 'balancerMs is a number of milliseconds: /plan?balancerMs=60000'
const suggest = 'sinceMs is a number of milliseconds: /limits/suggest?sinceMs=86400000'

const of = { route: 'login', method: 'POST', address: '192.0.2.1' }
/** Two units of JavaScript, one character of Unicode. */
const wide = '😀'

/** Bodies by path; the message with which they are refused, or undefined where they are taken. */
const bodies: ReadonlyArray<readonly [path: string, message: string | undefined, body: unknown[]]> =
  [
    ['/reload', undefined, [{}, [], 5, 'x', null, { yes: 'x' }, { yes: true, more: 1 }]],
    ['/rollback', rollback, [{ to: '1' }, { to: 1.5 }, { to: null }, { to: [1] }, { to: true }]],
    ['/rollback', rollback, [{ hash: 5 }, { hash: 'x' }, { hash: `${hash}0` }, { all: true }]],
    [
      '/rollback',
      rollback,
      [
        { hash, to: 1 },
        { to: 1, all: true },
        { hash, all: 'true' }
      ]
    ],
    ['/lockouts/lift', lockouts, [{ account: '' }, { account: 5 }, { account: null }]],
    ['/lockouts/lift', lockouts, [{ address: 'x' }, { address: '' }, { account: 'a', address: 5 }]],
    ['/lockouts/lift', either, [{}, [], 5, null, { other: 'a' }]],
    ['/lockouts/lift', undefined, [{ account: 'a' }, { account: 'a', address: '::1', more: 1 }]],
    ['/lockouts/lift', undefined, [{ address: 'fe80::1%lo' }, { account: wide.repeat(300) }]],
    ['/limits/caller/reset', caller, [{}, [], null, { caller: '' }, { caller: 5 }]],
    ['/limits/caller/reset', caller, [{ caller: 'a'.repeat(256) }, { caller: wide.repeat(128) }]],
    ['/limits/caller/reset', undefined, [{ caller: 'a'.repeat(255) }, { caller: '::1', more: 1 }]],
    ['/limits/counts', counts, [{}, [], null, 'x', { ...of, route: 5 }, { ...of, address: null }]],
    [
      '/limits/counts',
      source,
      [
        { ...of, user: '1' },
        { ...of, user: '1', source: 5 }
      ]
    ],
    ['/limits/counts', undefined, [of, { ...of, user: 5 }, { ...of, route: '' }]],
    ['/limits/counts', undefined, [{ ...of, user: '1', source: 'users-file', roles: 'x' }]],
    ['/limits/counts', undefined, [{ ...of, user: '1', source: 'x', roles: [1, null] }]],
    ['/sessions/close', close, [{}, [], 5, null, { id: 'x' }, { everyone: 'true' }]],
    ['/sessions/close', close, [{ user: '' }, { user: 5 }, { user: ['alice'] }, { by: 'id' }]],
    [
      '/sessions/close',
      close,
      [
        { user: 'a', by: 'x' },
        { user: 'a', source: 5 }
      ]
    ],
    [
      '/sessions/close',
      close,
      [
        { user: 'a', id: 5 },
        { user: 'a', id: null }
      ]
    ],
    [
      '/sessions/close',
      close,
      [
        { user: 'a', everyone: true },
        { source: 'x', everyone: true }
      ]
    ],
    ['/sessions/close', undefined, [{ user: 'a' }, { user: 'a', by: 'name', source: 'x' }]],
    ['/sessions/close', undefined, [{ user: 'a', id: '', everyone: false }]],
    ['/sessions/close', undefined, [{ everyone: true }, { everyone: true, id: 5 }]]
  ]

/** Queries likewise. */
const queries: ReadonlyArray<readonly [message: string | undefined, targets: string[]]> = [
  [plan, ['/plan?balancerMs=', '/plan?balancerMs=1s', `/plan?balancerMs=${'1'.repeat(13)}`]],
  [plan, ['/plan?balancerMs=1&balancerMs=2']],
  [undefined, ['/plan', '/plan?balancerMs=0', '/plan?other=1']],
  [suggest, ['/limits/suggest?sinceMs=0', '/limits/suggest?sinceMs=1&sinceMs=2']],
  [undefined, ['/limits/suggest', '/limits/suggest?sinceMs=1000']],
  [lockouts, ['/lockouts?account=', '/lockouts?address=x', '/lockouts?account=a&account=b']],
  [undefined, ['/lockouts', '/lockouts?account=a', '/lockouts?address=192.0.2.1&other=']],
  [caller, ['/limits/caller', '/limits/caller?caller=', '/limits/caller?caller=a&caller=b']],
  [undefined, ['/limits/caller?caller=a']],
  [list, ['/sessions?user=', '/sessions?by=id', '/sessions?source=x', '/sessions?user=a&by=x']],
  [list, ['/sessions?user=a&user=b', '/sessions?user=a&source=a&source=b']],
  [undefined, ['/sessions', '/sessions?id=1', '/sessions?user=a&by=id&source=x']]
]

t.test('operators’ requests are taken, or refused with what to say instead', async t => {
  const gateway = await testGateway(t.after)
  const answerOf = async (response: Response) => {
    const { error } = (await response.json()) as { error?: string }
    return { status: response.status, error }
  }
  for (const [path, message, given] of bodies) {
    const expected = { status: message === undefined ? 200 : 400, error: message }
    for (const json of given) {
      const answer = await answerOf(await gateway.ops(path, { json }))
      t.same(answer, expected, `${path} ${JSON.stringify(json)}`)
    }
  }
  for (const [message, targets] of queries) {
    const expected = { status: message === undefined ? 200 : 400, error: message }
    for (const target of targets) {
      t.same(await answerOf(await gateway.ops(target)), expected, target)
    }
  }
})

t.test('a command with nothing to say sends no body', async t => {
  const gateway = await testGateway(t.after)
  t.equal((await gateway.ops('/reload', { method: 'POST' })).status, 200)
  t.match(await (await gateway.ops('/lockouts/lift', { method: 'POST' })).json(), { error: either })
})
