import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { Ajv } from 'ajv'
import t from 'tap'
import { parse } from 'yaml'
import { run, runProcess } from '../support/command.ts'
import { schemaTexts } from '../../src/config/schema/for-editors.ts'
import { textFolder } from '../support/config-files.ts'

const line = (name: string) => `# yaml-language-server: $schema=schema/${name}.schema.json\n`

t.test('an adopted folder gets its schemas, and each file the line that names its own', async t => {
  const folder = textFolder(t.after, {
    'gateway.yaml':
      'login: { sources: { users-file: { kind: users-file, file: staff.yaml } } }\nsession: { cookie: { secure: false } }\n',
    'routes.yaml': '\ufeffroutes: {}\r\n',
    'limits.yaml': '# yaml-language-server: $schema=../mine.json\n{}\n',
    'users.yaml': null,
    'staff.yaml': 'users: {}\n'
  })
  const read = (name: string) => readFileSync(join(folder, name), 'utf8')
  const { code, out, err } = await run(['schemas', '--config', folder])
  t.same([code, err], [0, ''])
  t.equal(out.match(/^wrote /gm)?.length, 7)
  for (const name of ['gateway', 'routes', 'limits', 'users']) {
    const file = `schema/${name}.schema.json`
    t.equal(read(file), new Map(schemaTexts()).get(name))
  }
  t.ok(read('gateway.yaml').startsWith(`${line('gateway')}login:`))
  t.equal(read('routes.yaml'), `\ufeff${line('routes').trimEnd()}\r\nroutes: {}\r\n`)
  t.equal(
    read('limits.yaml'),
    '# yaml-language-server: $schema=../mine.json\n{}\n',
    'a line of its own stays'
  )
  t.equal(read('staff.yaml'), `${line('users')}users: {}\n`)
  t.match(await run(['check', '--config', folder]), { code: 0 })
  t.match(
    await run(['schemas', '--config', folder]),
    { code: 0, out: '' },
    'a second time there is nothing to do'
  )
})

t.test('a users file elsewhere gets its line too; on a full disk it is unchanged', async t => {
  const elsewhere = join(textFolder(t.after, { 'staff.yaml': 'users: {}\n' }), 'staff.yaml')
  const folder = textFolder(t.after, {
    'gateway.yaml': `login: { sources: { users-file: { kind: users-file, file: "\${X:-${elsewhere}}" } } }\n`
  })
  const schemas = ['schemas', '--config', folder]
  t.match((await run(schemas)).out, `wrote ${elsewhere}\n`)
  const [line = ''] = readFileSync(elsewhere, 'utf8').split('\n')
  const path = relative(dirname(elsewhere), join(folder, 'schema/users.schema.json'))
  t.equal(line, `# yaml-language-server: $schema=${path}`)

  const text = `users: {}\n${'# a long comment\n'.repeat(100)}`
  writeFileSync(elsewhere, text)
  const { code, err } = await runProcess(schemas, { maxFileBlocks: 1 })
  t.same([code, err], [1, `${elsewhere} cannot be written (EFBIG).\n`])
  t.equal(readFileSync(elsewhere, 'utf8'), text)
})

t.test(
  'a faulty gateway.yaml is no hindrance; a folder that is not there, and words too many, are said',
  async t => {
    const folder = textFolder(t.after, { 'gateway.yaml': 'login: [' })
    t.match(await run(['schemas', '--config', folder]), { code: 0, out: /gateway\.yaml/ })
    t.match(await run(['schemas', '--config', '/nowhere']), {
      code: 1,
      err: 'There is no folder /nowhere.\n'
    })
    t.match(await run(['schemas', 'x']), { code: 2, err: /Usage: console-gateway schemas/ })
    writeFileSync(join(folder, 'file'), '')
    t.match(await run(['schemas', '--config', join(folder, 'file')]), {
      code: 1,
      err: /^E[A-Z]+: /
    })
  }
)

/** What an editor says of a file, from its schema alone: no reference is resolved. */
function editorFaults(name: string, content: unknown): string[] {
  const schema = JSON.parse(new Map(schemaTexts()).get(name) ?? '') as object
  const validate = new Ajv({ strict: false, allErrors: true }).compile(schema)
  validate(content)
  return [...new Set((validate.errors ?? []).map(({ instancePath }) => instancePath))].toSorted()
}

t.test('an editor finds no fault with the files that come with the gateway', async t => {
  for (const name of ['gateway', 'routes', 'limits', 'users']) {
    t.same(editorFaults(name, parse(readFileSync(`config/${name}.yaml`, 'utf8'))), [], name)
  }
})

t.test('an editor lets a reference stand for a value of any kind, and nothing else', async t => {
  const gateway = (value: unknown) => ({
    server: { listen: value, mount: value },
    session: { idle: value, cookie: { secure: value, sameSite: value } }
  })
  t.same(editorFaults('gateway', gateway('${VALUE}')), [])
  t.same(editorFaults('gateway', gateway('${VALUE:-x}')), [])
  const routes = (value: unknown) => ({ upstreams: { b: { url: value, queue: value } } })
  t.same(editorFaults('routes', routes('http://${HOST}:80${BASE:-/base}')), [])
  const places = ['/server/listen', '/server/mount', '/session/cookie/sameSite', '/session/idle']
  for (const wrong of ['$VALUE', '${1}', '?']) {
    t.same(editorFaults('gateway', gateway(wrong)), places, wrong)
  }
  t.same(
    editorFaults('gateway', gateway(7)),
    ['/server/listen', '/server/mount', '/session/cookie/secure', ...places.slice(2)].toSorted()
  )
  t.same(editorFaults('routes', routes('b.internal')), ['/upstreams/b/url'])
})

t.test('the reference says of JSON that it may be any value', async t => {
  const rows = readFileSync('docs/configuration.md', 'utf8').split('\n')
  const valuesOf = (key: string) =>
    rows.filter(row => row.startsWith(`| \`${key}\` |`)).map(row => row.split(' | ')[1])
  for (const key of [
    'routes.NAME.answer.json',
    'routes.NAME.fallback.body',
    'endpoints.profile.parts.NAME.default'
  ]) {
    t.same(valuesOf(key), ['any value'], key)
  }
  t.same(valuesOf('login.sources.NAME.passHeaders'), ['a list'])
  t.same(valuesOf('audit.folder'), ['a text'])
})
