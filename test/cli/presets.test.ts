import { readFileSync } from 'node:fs'
import t from 'tap'
import { presetText } from '../../src/config/read/presets.ts'
import { run } from '../support/command.ts'
import { textFolder } from '../support/config-files.ts'

t.test('the list has a line for each preset', async t => {
  const { code, out } = await run(['presets'])
  t.equal(code, 0)
  t.match(out, /^(console\/[a-z-]+ +\S.*\n)+(backend\/[a-z-]+ +\S.*\n)+$/)
  t.match(out, /^backend\/drf +Django REST framework/m)
  const json = await run(['presets', '--json'])
  t.match(JSON.parse(json.out), [{ kind: 'console', name: String, summary: String }])
})

t.test('show prints the file with its comments', async t => {
  const text = readFileSync('presets/backend/drf.yaml', 'utf8')
  t.match(await run(['presets', 'show', 'drf']), { code: 0, out: text, err: '' })
  t.match(await run(['presets', 'show', 'backend/drf']), { code: 0, out: text })
})

t.test('an unknown name is said, with the nearest', async t => {
  t.match(await run(['presets', 'show', 'drf2']), {
    code: 1,
    err: 'There is no preset "drf2". Did you mean "drf"?\n'
  })
})

t.test('show --merged prints each key with its place, and secrets as references', async t => {
  const folder = textFolder(t.after, {
    'gateway.yaml': `extends: base-response
backend: \${BACKEND:-drf}
session: { secrets: ["\${SESSION_SECRET}", "a secret that stands here by mistake"] }
login:
  sources:
    staff: { kind: users-file, file: users.yaml }`,
    'routes.yaml':
      'upstreams: { backend: { url: http://127.0.0.1:1 } }\nshapes: { item: [{ unwrap: a }] }'
  })
  const words = ['presets', 'show', '--merged', '--config', folder]
  const { code, out, err } = await run(words, { env: { SESSION_SECRET: 'the real secret' } })
  t.same([code, err], [0, ''])
  const lineOf = (key: string, text = presetText('backend', 'drf')) =>
    text.split('\n').findIndex(line => line.trim().startsWith(key)) + 1
  for (const line of [
    '# gateway.yaml',
    `  dialect: base-response # console/base-response.yaml:${lineOf('dialect:', presetText('console', 'base-response'))}`,
    'backend: ${BACKEND:-drf} # gateway.yaml:2',
    '    - ${SESSION_SECRET}',
    '    - (a secret)',
    '      kind: users-file # gateway.yaml:6',
    '# routes.yaml',
    '    url: http://127.0.0.1:1 # routes.yaml:1',
    `    credential: bearer # backend/drf.yaml:${lineOf('credential:')}`,
    '  # routes.yaml:2\n  item:\n    - unwrap: a',
    `  # backend/drf.yaml:${lineOf('rows:')}\n  rows:`
  ]) {
    t.ok(`\n${out}`.includes(`\n${line}\n`), line)
  }
  t.notMatch(out, /secret that stands|real secret/)
  const none = await run(['presets', 'show', '--merged', '--config', '/nowhere'])
  t.match(none, { code: 1, err: /gateway\.yaml the file cannot be read/i })
})
