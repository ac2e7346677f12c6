import t from 'tap'
import { testGateway } from '../support/gateway.ts'

const lockouts = 'An account is given by its user name, an address as an IP address.'
const either = 'Name an account or an address: {"account": "NAME"}, {"address": "IP"}, or both.'
const caller = 'Name the caller: {"caller": "192.0.2.1"}, or the id or name of a user.'
const close =
  'Name the sessions: {"user": "ID or NAME"}, {"user": "…", "id": "SESSION"} or ' +
  '{"everyone": true}; with {"by": "id"} or "name", and {"source": "NAME"}, if several users fit.'
const list =
  'Name a user: ?user=ID-or-NAME, with &by=id or &by=name and &source=NAME, ' +
  'or none for all sessions.'
const plan = 'balancerMs is a number of milliseconds: /plan?balancerMs=60000'

/** Two units of JavaScript, one character of Unicode. */
const wide = '😀'

/** Bodies by path; the message with which they are refused, or undefined where they are taken. */
const bodies: ReadonlyArray<readonly [path: string, message: string | undefined, body: unknown[]]> =
  [
    ['/ops/api/reload', undefined, [{}, [], 5, 'x', null, { yes: 'x' }, { yes: true, more: 1 }]],
    ['/ops/api/lockouts/lift', lockouts, [{ account: '' }, { account: 5 }, { account: null }]],
    [
      '/ops/api/lockouts/lift',
      lockouts,
      [{ address: 'x' }, { address: '' }, { account: 'a', address: 5 }]
    ],
    ['/ops/api/lockouts/lift', either, [{}, [], 5, null, { other: 'a' }]],
    [
      '/ops/api/lockouts/lift',
      undefined,
      [{ account: 'a' }, { account: 'a', address: '::1', more: 1 }]
    ],
    [
      '/ops/api/lockouts/lift',
      undefined,
      [{ address: 'fe80::1%lo' }, { account: wide.repeat(300) }]
    ],
    ['/ops/api/limits/caller/reset', caller, [{}, [], null, { caller: '' }, { caller: 5 }]],
    [
      '/ops/api/limits/caller/reset',
      caller,
      [{ caller: 'a'.repeat(256) }, { caller: wide.repeat(128) }]
    ],
    [
      '/ops/api/limits/caller/reset',
      undefined,
      [{ caller: 'a'.repeat(255) }, { caller: '::1', more: 1 }]
    ],
    ['/ops/api/sessions/close', close, [{}, [], 5, null, { id: 'x' }, { everyone: 'true' }]],
    [
      '/ops/api/sessions/close',
      close,
      [{ user: '' }, { user: 5 }, { user: ['alice'] }, { by: 'id' }]
    ],
    [
      '/ops/api/sessions/close',
      close,
      [
        { user: 'a', by: 'x' },
        { user: 'a', source: 5 }
      ]
    ],
    [
      '/ops/api/sessions/close',
      close,
      [
        { user: 'a', id: 5 },
        { user: 'a', id: null }
      ]
    ],
    [
      '/ops/api/sessions/close',
      close,
      [
        { user: 'a', everyone: true },
        { source: 'x', everyone: true }
      ]
    ],
    ['/ops/api/sessions/close', undefined, [{ user: 'a' }, { user: 'a', by: 'name', source: 'x' }]],
    ['/ops/api/sessions/close', undefined, [{ user: 'a', id: '', everyone: false }]],
    ['/ops/api/sessions/close', undefined, [{ everyone: true }, { everyone: true, id: 5 }]]
  ]

/** Queries likewise. */
const queries: ReadonlyArray<readonly [message: string | undefined, targets: string[]]> = [
  [
    plan,
    [
      '/ops/api/plan?balancerMs=',
      '/ops/api/plan?balancerMs=1s',
      `/ops/api/plan?balancerMs=${'1'.repeat(13)}`
    ]
  ],
  [plan, ['/ops/api/plan?balancerMs=1&balancerMs=2']],
  [undefined, ['/ops/api/plan', '/ops/api/plan?balancerMs=0', '/ops/api/plan?other=1']],
  [
    lockouts,
    [
      '/ops/api/lockouts?account=',
      '/ops/api/lockouts?address=x',
      '/ops/api/lockouts?account=a&account=b'
    ]
  ],
  [
    undefined,
    [
      '/ops/api/lockouts',
      '/ops/api/lockouts?account=a',
      '/ops/api/lockouts?address=192.0.2.1&other='
    ]
  ],
  [
    caller,
    [
      '/ops/api/limits/caller',
      '/ops/api/limits/caller?caller=',
      '/ops/api/limits/caller?caller=a&caller=b'
    ]
  ],
  [undefined, ['/ops/api/limits/caller?caller=a']],
  [
    list,
    [
      '/ops/api/sessions?user=',
      '/ops/api/sessions?by=id',
      '/ops/api/sessions?source=x',
      '/ops/api/sessions?user=a&by=x'
    ]
  ],
  [list, ['/ops/api/sessions?user=a&user=b', '/ops/api/sessions?user=a&source=a&source=b']],
  [
    undefined,
    ['/ops/api/sessions', '/ops/api/sessions?id=1', '/ops/api/sessions?user=a&by=id&source=x']
  ]
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
  t.equal((await gateway.ops('/ops/api/reload', { method: 'POST' })).status, 200)
  t.match(await (await gateway.ops('/ops/api/lockouts/lift', { method: 'POST' })).json(), {
    error: either
  })
})
