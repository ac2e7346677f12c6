import t from 'tap'
import { run, runProcess } from '../support/command.ts'
import { textFolder } from '../support/config-files.ts'

const sound = 'server: { hosts: [console.example.com], trustedProxies: [10.0.0.0/8] }'

t.test('a config without faults is said to be so, and the exit code is 0', async t => {
  const folder = textFolder(t.after, { 'gateway.yaml': sound })
  t.same(await run(['check', '--config', folder]), {
    code: 0,
    out: `${folder}: no faults\n`,
    err: ''
  })
  t.equal((await run(['check', '-c', folder])).code, 0)
})

t.test('warnings are said, with file and line, and counted, but the exit code is 0', async t => {
  const folder = textFolder(t.after, {
    'gateway.yaml': 'session:\n  idle: 9h\n  cookie:\n    secure: false\n'
  })
  t.same(await run(['check', '--config', folder]), {
    code: 0,
    out: `${folder}/gateway.yaml:2 session.idle: warning: is longer than session.absolute, so it never applies\n${folder}/gateway.yaml:4 session.cookie.secure: warning: the session cookie travels without https; fine on loopback, nowhere else\n${folder}: no faults, 2 warnings\n`,
    err: ''
  })
})

t.test('every fault is a line on standard error, and the exit code is 1', async t => {
  const folder = textFolder(t.after, {
    'gateway.yaml': `${sound}\nlisten: 1\n`,
    'routes.yaml': 'routes:\n  r: { path: /r, answer: { json: 1 }, listen: 1 }\n'
  })
  t.same(await run(['check', '--config', folder]), {
    code: 1,
    out: '',
    err: `${folder}/gateway.yaml:2 listen: unknown key "listen".\n${folder}/routes.yaml:2 routes.r.listen: unknown key "listen" beside \`answer\`.\n${folder}: 2 faults\n`
  })
})

t.test('a folder that is not there is said to be so, for each file', async t => {
  const { code, err } = await run(['check', '--config', '/nowhere/at/all'])
  t.equal(code, 1)
  t.match(err, '/nowhere/at/all/gateway.yaml the file cannot be read (ENOENT)\n')
  t.match(err, '/nowhere/at/all: 3 faults\n')
})

t.test('references are taken from the environment, and secrets are not shown', async t => {
  const folder = textFolder(t.after, {
    'gateway.yaml': `${sound}\nsession: { secrets: ["\${SESSION_SECRET}"] }\n`
  })
  t.match(await run(['check', '--config', folder]), {
    code: 1,
    err: /the environment variable SESSION_SECRET is not set/
  })
  t.equal(
    (await run(['check', '--config', folder], { env: { SESSION_SECRET: 'x'.repeat(32) } })).code,
    0
  )
  const short = await run(['check', '--config', folder], { env: { SESSION_SECRET: 'hunter2' } })
  t.match(short, { code: 1, err: /fewer than 32 characters/ })
  t.notMatch(short.err, 'hunter2')
})

t.test('the config that is shipped has no faults', async t => {
  t.match(await run(['check']), { code: 0, out: /^config: no faults/m })
})

t.test('what the config expects of itself is tried, by check and by start', async t => {
  const folder = textFolder(t.after, {
    'gateway.yaml': 'session: { cookie: { secure: false } }\n',
    'routes.yaml': 'expect:\n  open:\n    request: GET /api/account/profile\n    status: 200\n'
  })
  for (const command of ['check', 'start']) {
    const runs = command === 'start' ? runProcess : run
    const { code, err } = await runs([command, '--config', folder])
    t.equal(code, 1, command)
    t.match(err, `${folder}/routes.yaml:4 expect.open.status: expected 200, got 401 session.none\n`)
  }
})

t.test('for programs it is JSON, and --strict makes warnings count', async t => {
  const folder = textFolder(t.after, {
    'gateway.yaml': 'server: { hosts: [h], trustedProxies: [10.0.0.0/8] }\nsession: { idle: 9h }\n'
  })
  const warning = {
    file: `${folder}/gateway.yaml`,
    line: 2,
    path: 'session.idle',
    message: 'is longer than session.absolute, so it never applies'
  }
  const { code, out } = await run(['check', '--json', '--strict', '-c', folder])
  t.same(
    { code, told: JSON.parse(out) as unknown },
    { code: 3, told: { folder, faults: [], warnings: [warning] } }
  )
  const broken = textFolder(t.after, {
    'gateway.yaml': 'server: { hosts: [h], trustedProxies: [10.0.0.0/8] }\nsession: { idle: x }\n'
  })
  const failed = await run(['check', '--json', '-c', broken])
  t.equal(failed.code, 1)
  t.match(JSON.parse(failed.out), { faults: [{ line: 2, path: 'session.idle' }], warnings: [] })
})
