/** `plan`: the changes and risks of plan.yaml, and how it is asked. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { run } from '../support/command.ts'
import {
  asExpected,
  type Case,
  casesIn,
  environmentOf,
  having,
  textsOf
} from '../support/config-cases.ts'
import { textFolder } from '../support/config-files.ts'
import { configFolder, testGateway } from '../support/gateway.ts'
import { freePort } from '../support/ports.ts'

interface Rule extends Case {
  readonly about?: 'risks'
  readonly at?: string
  readonly rows: ReadonlyArray<readonly [before: object, after: object, ...said: string[]]>
}

interface Planned {
  readonly changes: ReadonlyArray<{
    readonly file: string
    readonly text: string
    readonly restart: boolean
  }>
  readonly risks: readonly string[]
}

for (const { title, about, at, rows, ...rule } of casesIn<Rule>('test/cli/plan.yaml')) {
  t.test(title, async t => {
    const base = { route: {}, ...rule }
    for (const [before, after, ...expected] of rows) {
      const [old = '', next = ''] = [before, after].map(value =>
        textFolder(t.after, textsOf(having(base, at, value)))
      )
      const env = environmentOf(rule)
      const { out, err } = await run(['plan', next, '-c', old, '--json'], { env })
      t.equal(err, '')
      const { changes, risks } = JSON.parse(out) as Planned
      const texts = changes.map(
        ({ file, text, restart }) => `${file} ${text}${restart ? ' (after a restart)' : ''}`
      )
      const said = about === 'risks' ? risks : texts
      t.same(
        said.map((text, index) => asExpected(text, expected[index])),
        expected,
        JSON.stringify([before, after])
      )
      t.notMatch(out, /o{10}|n{10}/)
    }
  })
}

const folder = (cleanUp: (undo: () => unknown) => void, access: string, idle = '30m') =>
  textFolder(cleanUp, {
    'gateway.yaml': `server: { hosts: [h] }\nsession: { idle: ${idle} }`,
    'routes.yaml': `upstreams: { b: { url: https://b.internal } }\nroutes: { r: { path: /api/r, upstream: b, access: ${access} } }`
  })

t.test('plan says what would change live, what after a restart, and what is a risk', async t => {
  const [old, next] = [folder(t.after, 'session'), folder(t.after, 'public', '20m')]
  t.same(await run(['plan', next, '-c', old]), {
    code: 3,
    out: 'Live, at the next reload:\n  routes.yaml routes.r.access session → public\nOnly after a restart:\n  gateway.yaml session.idle 30m → 20m\n\nRisks:\n  ! routes.r (/api/r) becomes public: anyone may call it\n',
    err: ''
  })
  t.match(JSON.parse((await run(['plan', next, '-c', old, '--json'])).out), {
    changes: [
      { file: 'gateway', path: 'session.idle', restart: true },
      { file: 'routes', restart: false }
    ],
    risks: [String]
  })
  t.match(await run(['plan', old, '-c', old]), { code: 0, out: 'Nothing would change.\n' })
  t.match(await run(['plan', '/nowhere', '-c', old]), { code: 1, err: /cannot be read/ })
})

t.test('what a terminal would obey in values and faults is shown', async t => {
  const having = (message: string) =>
    textFolder(t.after, {
      'routes.yaml': `maintenance: { routes: [login], message: "${message}" }`
    })
  const next = having('\\x9b2J\\e]0;owned')
  const planned = await run(['plan', next, '-c', having('Wait.')])
  t.match(planned.out, 'maintenance.message Wait. → \\u009b2J\\u001b]0;owned')
  const faulty = textFolder(t.after, { 'routes.yaml': '"\\x9b2J\\e]0;owned": 1' })
  const checked = await run(['check', '-c', faulty])
  t.match(checked.err, '\\u009b2J\\u001b]0;owned')
  const refused = await run(['openapi', '-c', faulty])
  t.match(refused.err, '\\u009b2J\\u001b]0;owned')
  const texts = [planned.out, checked.err, refused.err].join('')
  t.notMatch(texts, /[\u0000-\u0009\u000b-\u001f\u0080-\u009f]/)
})

t.test('a new config that a reload would refuse is refused', async t => {
  const old = folder(t.after, 'session')
  const next = textFolder(t.after, {
    'gateway.yaml': 'server: { hosts: [h] }',
    'routes.yaml': 'expect:\n  open: { request: GET /api/r, status: 200 }\n'
  })
  const { code, out, err } = await run(['plan', next, '-c', old])
  t.same([code, out], [1, ''])
  t.match(err, /routes\.yaml:2 expect\.open/)
  const back = await run(['plan', old, '-c', next])
  t.equal(back.err, '', 'the config that it replaces need not do what it expects')
})

t.test('without a new folder it says what the files would change of what runs', async t => {
  const ops = { listen: `127.0.0.1:${await freePort()}` }
  const at = await configFolder({
    gateway: { ops, session: { idle: '30m' } },
    limits: { limits: { user: { by: 'user', max: 10, window: '1m' } } }
  })
  t.match(await run(['plan', '-c', at]), { code: 1, err: /No gateway with the config folder/ })
  await testGateway(t.after, at)
  const change = (file: string, make: (text: string) => string) =>
    writeFileSync(join(at, file), make(readFileSync(join(at, file), 'utf8')))
  change('limits.yaml', text => text.replace('max: 10\n', 'max: 500\n'))
  change('gateway.yaml', text => text.replace('idle: 30m', 'idle: 20m'))
  t.match(JSON.parse((await run(['plan', '-c', at, '--json'])).out), {
    changes: [
      { file: 'gateway', path: 'session.idle', text: 'session.idle 30m → 20m', restart: true },
      { file: 'limits', path: 'limits.user.max', text: 'limits.user.max 10 → 500', restart: false }
    ],
    risks: [/50 times looser/]
  })
  t.match(await run(['plan', '-c', at]), {
    code: 3,
    out: /^Live, at the next reload:\n {2}limits\.yaml limits\.user\.max 10 → 500\nOnly after a restart:\n {2}gateway\.yaml session\.idle 30m → 20m\n/
  })
  change('limits.yaml', () => 'limits: 5\n')
  t.match(await run(['plan', '-c', at]), { code: 1, err: /limits\.yaml:1 limits/ })
})
