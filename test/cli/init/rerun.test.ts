import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createBackend } from '../../../examples/backend/server.ts'
import { run } from '../../support/command.ts'
import { filesIn, newFolder } from '../../support/init.ts'

const password = 'ant.design'

t.test(
  'init --from shows a diff, adds what is new, and keeps every line that is there',
  async t => {
    const backend = createBackend({ port: 0 })
    t.after(() => backend.close())
    const url = await backend.listen()
    const folder = newFolder(t.after)
    const account = ['--user', 'dora', '--password-env', 'PW']
    const env = { PW: password }
    const first = ['--backend-url', url, '--login-path', '/auth/login', '--login-fields']
    const words = [
      'init',
      folder,
      ...first,
      'login,secret',
      ...account,
      '--route',
      '/orders',
      '--yes'
    ]
    t.match(await run(words, { env }), { code: 0, out: /^Then let your console call /m })

    const read = (name: string) => readFileSync(join(folder, name), 'utf8')
    const edited = read('routes.yaml')
      .replace(
        '  orders:\n',
        '  # Only for Bo’s team.\n  orders:\n    access:   { roles: [ admin ] }\n'
      )
      .replace('    roles: []\n', '    roles:  [ "admin" ]   # as above\n')
    writeFileSync(join(folder, 'routes.yaml'), edited)
    const limits = read('limits.yaml').replace('max: 600', 'max: 60').replace('  shape: 2MiB\n', '')
    writeFileSync(join(folder, 'limits.yaml'), limits)
    const again = ['init', '--from', folder, ...account, '--route', '/orders', '--route']
    const before = filesIn(folder)

    const asked = await run([...again, '/notices/list'], { env })
    t.match(asked, { code: 1, err: /Nothing was written/ })
    t.match(asked.out, /^\+ routes\.yaml routes\.notices: \{ path: \/api\/notices\/list, /m)
    t.match(asked.out, /^\+ contracts\/notices\.schema\.json$/m)
    t.match(asked.out, /^~ limits\.yaml limits\.signed-in\.max: stays; init has 600$/m)
    t.match(
      asked.out,
      /^~ limits\.yaml sizes\.shape: is not there, and is not added; init has 2MiB$/m
    )
    t.notMatch(asked.out, /routes\.yaml (routes|shapes|expect): /)
    t.same(filesIn(folder), before, 'unasked, nothing is written')

    const written = await run([...again, '/notices/list', '--yes'], { env })
    t.match(written, { code: 0, err: '' })
    // A running gateway that reads in between finds no route without its contract.
    t.match(written.out, /^Wrote contracts\/notices\.schema\.json, routes\.yaml\.$/m)
    const lines = read('routes.yaml').split('\n')
    const left = edited.split('\n').filter(line => line !== '')
    let at = -1
    for (const line of left) {
      at = lines.indexOf(line, at + 1)
      t.ok(at >= 0, `still there, in order: ${line}`)
    }
    t.equal(read('limits.yaml'), limits)
    t.ok(existsSync(join(folder, 'contracts/notices.schema.json')))
    t.match(await run(['check', '--config', folder]), { code: 0 })
    const explained = await run(['explain', 'GET', '/api/notices/list', '--config', folder])
    t.match(explained.out, 'notices')

    const more = await run([...again, '/notices/list?page=2', '--yes'], { env })
    t.match(more, { code: 0, out: /There is nothing to add\./ })
    const everything = [asked.out, written.out, more.out, ...filesIn(folder)].join('\n')
    for (const value of [password, 'Dora', 'Northwind']) t.notOk(everything.includes(value), value)
  }
)

t.test('--from needs a folder with a config, and an upstream "backend"', async t => {
  const folder = newFolder(t.after)
  t.match(await run(['init', '--from', folder]), { code: 1, err: /has no gateway\.yaml/ })
  t.match(await run(['init', folder, '--from', folder]), {
    code: 2,
    err: /--from is no option of "init/
  })
})
