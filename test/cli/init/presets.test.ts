/** `init` with presets: the short form, checked, started and signed in to. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { users } from '../../matrix/backend.ts'
import { backend as ruoyi } from '../../matrix/backends/ruoyi.ts'
import { run, start } from '../../support/command.ts'
import { filesIn, newFolder } from '../../support/init.ts'
import { cookieIn } from '../../support/sign-in.ts'

t.test(
  'with presets of both sides the written files are short, and the console signs in',
  async t => {
    const { username, password } = users.admin
    const backend = await ruoyi.start(t.after)
    const folder = newFolder(t.after)
    const presets = ['--console', 'vben', '--backend', 'ruoyi', '--backend-url', backend.url]
    const words = [
      'init',
      folder,
      ...presets,
      '--user',
      username,
      '--route',
      ruoyi.list.path,
      '--yes'
    ]
    const { code, out, err } = await run(words, { input: password })
    t.same({ code, err }, { code: 0, err: '' })
    t.notMatch(out, /Not found out/, 'the presets tell what could not be seen')
    const gateway = readFileSync(join(folder, 'gateway.yaml'), 'utf8')
    t.match(gateway, /^extends: vben\nbackend: ruoyi$/m)
    t.match(gateway, / - kind: upstream-login\n {6}name: backend\n {6}upstream: backend\n\n?/)
    t.notMatch(readFileSync(join(folder, 'routes.yaml'), 'utf8'), /^shapes:|credential:/m)
    t.match(await run(['check', '--config', folder]), { code: 0 })

    const env = { LISTEN: '127.0.0.1:0', OPS_LISTEN: '127.0.0.1:0' }
    const said = await start(t.after, folder, env).says('for operators on')
    const url = /listening on (http:\S+?),? /.exec(said)?.[1] ?? ''
    const { status, headers } = await fetch(`${url}/api/auth/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ username, password })
    })
    t.equal(status, 200)
    const cookie = cookieIn(headers.getSetCookie())
    const list = await fetch(`${url}/api${ruoyi.list.path}?page=2&pageSize=10`, {
      headers: { cookie }
    })
    t.match(await list.json(), { code: 0, data: { total: 25, items: [{ noticeId: 11 }] } })
    const everything = [out, ...filesIn(folder)].join('\n')
    for (const value of [password, 'Notice 1', users.admin.name]) {
      t.notOk(everything.includes(value), value)
    }
  }
)

t.test('case C1: the contract of a list has the page that the console asks for', async t => {
  const { username, password } = users.admin
  const backend = await ruoyi.start(t.after)
  const folder = newFolder(t.after)
  const presets = ['--console', 'soybean', '--backend', 'ruoyi', '--backend-url', backend.url]
  const words = ['--user', username, '--route', ruoyi.list.path, '--yes']
  const { code, err } = await run(['init', folder, ...presets, ...words], { input: password })
  t.same({ code, err }, { code: 0, err: '' })
  const [name = ''] = readdirSync(join(folder, 'contracts'))
  const contract = JSON.parse(readFileSync(join(folder, 'contracts', name), 'utf8')) as object
  t.match(contract, { properties: { records: {}, total: {}, current: {}, size: {} } })
})
