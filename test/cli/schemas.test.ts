import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv } from 'ajv'
import t from 'tap'
import { parse } from 'yaml'
import { schemaTexts } from '../../src/config/schema/for-editors.ts'
import { run } from '../support/command.ts'
import { textFolder } from '../support/config-files.ts'

const line = (name: string) => `# yaml-language-server: $schema=schema/${name}.schema.json\n`
const names = ['gateway', 'routes', 'limits', 'users']
const textOf = (name: string) => new Map(schemaTexts()).get(name) ?? ''
const schemas = async (folder: string) => await run(['schemas', '--config', folder])

t.test('an adopted folder gets its schemas, and each file the line that names its own', async t => {
  const own = '# yaml-language-server: $schema=../mine.json\n{}\n'
  const gateway = 'session: { cookie: { secure: false } }\n'
  const folder = textFolder(t.after, {
    'gateway.yaml': gateway,
    'routes.yaml': '\ufeffroutes: {}\r\n',
    'limits.yaml': own,
    'users.yaml': 'users: {}\n'
  })
  const { code, out, err } = await schemas(folder)
  t.same({ code, err, count: out.match(/^wrote /gm)?.length }, { code: 0, err: '', count: 7 })
  for (const [file, text] of Object.entries({
    'gateway.yaml': `${line('gateway')}${gateway}`,
    'routes.yaml': `\ufeff${line('routes').trimEnd()}\r\nroutes: {}\r\n`,
    'limits.yaml': own,
    'users.yaml': `${line('users')}users: {}\n`,
    ...Object.fromEntries(names.map(name => [`schema/${name}.schema.json`, textOf(name)]))
  })) {
    t.equal(readFileSync(join(folder, file), 'utf8'), text, file)
  }
  t.match(await run(['check', '--config', folder]), { code: 0 })
  t.match(await schemas(folder), { code: 0, out: '' }, 'a second time there is nothing to do')
})

t.test('a faulty gateway.yaml is no hindrance; a folder that is not there is said', async t => {
  const folder = textFolder(t.after, { 'gateway.yaml': 'login: [', 'file': '' })
  t.match(await schemas(folder), { code: 0, out: /gateway\.yaml/ })
  t.match(await schemas('/nowhere'), { code: 1, err: 'There is no folder /nowhere.\n' })
  t.match(await schemas(join(folder, 'file')), { code: 1, err: /^E[A-Z]+: / })
})

/** What an editor says of a file, from its schema alone: no reference is resolved. */
function editorFaults(name: string, content: unknown): string[] {
  const ajv = new Ajv({ strict: false, allErrors: true })
  const validate = ajv.compile(JSON.parse(textOf(name)) as object)
  validate(content)
  return [...new Set((validate.errors ?? []).map(({ instancePath }) => instancePath))].toSorted()
}

t.test('an editor finds no fault with the files that come with the gateway', async t => {
  for (const name of names) {
    t.same(editorFaults(name, parse(readFileSync(`config/${name}.yaml`, 'utf8'))), [], name)
  }
})

t.test('an editor lets a reference stand for a value of any kind, and nothing else', async t => {
  const gateway = (value: unknown) => ({
    server: { listen: value, mount: value },
    session: { idle: value, cookie: { secure: value, sameSite: value } }
  })
  const routes = (value: unknown) => ({ upstreams: { b: { url: value, queue: value } } })
  const places = ['/server/listen', '/server/mount', '/session/cookie/sameSite', '/session/idle']
  for (const [name, tree, faults] of [
    ['gateway', gateway('${VALUE}'), []],
    ['gateway', gateway('${VALUE:-x}'), []],
    ['gateway', gateway('$VALUE'), places],
    ['gateway', gateway('${1}'), places],
    ['gateway', gateway('?'), places],
    ['gateway', gateway(7), [...places, '/session/cookie/secure'].toSorted()],
    ['routes', routes('http://${HOST}:80${BASE:-/base}'), []],
    ['routes', routes('b.internal'), ['/upstreams/b/url']]
  ] as const) {
    t.same(editorFaults(name, tree), faults, JSON.stringify(tree))
  }
})
