import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { run } from '../support/command.ts'
import { textFolder } from '../support/config-files.ts'

const line = (name: string) => `# yaml-language-server: $schema=schema/${name}.schema.json\n`

t.test('an adopted folder gets its schemas, and each file the line that names its own', async t => {
  const folder = textFolder(t.after, {
    'gateway.yaml':
      'login: { sources: [{ kind: users-file, file: staff.yaml }] }\nsession: { cookie: { secure: false } }\n',
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
    t.equal(read(file), readFileSync(`config/${file}`, 'utf8'))
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
