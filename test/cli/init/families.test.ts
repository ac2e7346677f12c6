/** `init` against a back-end of each family's habits: the written folder signs in and lists. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { backends } from '../../consoles/backends.ts'
import { ruoyi } from '../../consoles/backends/ruoyi.ts'
import { admin, startBackend } from '../../consoles/server.ts'
import { run } from '../../support/command.ts'
import { gatewayOn, runInit, signInAndGet } from '../../support/init.ts'
import { cookieIn } from '../../support/sign-in.ts'

/** What somebody who knows the back-end tells of its sign-in, beside its path. */
interface Told {
  readonly fields?: string
  readonly user?: string
  readonly more?: readonly string[]
}

const { username, password } = admin
const profile = '/admin-api/system/auth/get-permission-info'
const told: Readonly<Record<string, Told>> = {
  'yudao': { more: ['--header', 'tenant-id: 1', '--user-path', profile] },
  'strapi': { fields: 'identifier,password' },
  'directus': { fields: 'email,password', user: 'admin@example.com' },
  'json-api': { fields: 'username,password,grant_type=password', more: ['--login-format', 'form'] }
}

for (const family of backends) {
  t.test(`the folder for a back-end of ${family.name} signs in and lists`, async t => {
    const { fields = 'username,password', user = username, more = [] } = told[family.name] ?? {}
    const { url, calls } = await startBackend(t.after, family)
    const route = ['--route', `/api/items=${family.list.path}`]
    const path = family.signIn.at.replace('POST ', '')
    const login = ['--login-path', path, '--login-fields', fields, '--user', user]
    const words = ['--backend-url', url, ...login, ...more, ...route]
    const { code, out, err, folder, everything } = await runInit(t.after, words, password)
    t.same({ code, err }, { code: 0, err: '' }, out)
    t.match(await run(['check', '--config', folder]), { code: 0 })
    t.ok(calls.length <= 40, `${calls.length} requests`)
    t.ok(
      calls.every(call => call.method === 'GET' || /login|token|logout|auth/.test(call.path)),
      'besides sign-in and sign-out only GET is called'
    )
    t.equal(calls.filter(call => call.body.includes(password)).length, 1, 'one sign-in')
    const secrets = new Set(calls.flatMap(({ token }) => token ?? []))
    for (const value of [...secrets, password, 'Notice 1', admin.name]) {
      if (value !== 'made-up-0123456789') t.notOk(everything.includes(value), `${value} is written`)
    }
    const gateway = await gatewayOn(t.after, folder)
    const signedIn = await signInAndGet(gateway, { username: user, password }, '/api/items')
    t.match(signedIn, { status: 200, list: { success: true, total: Number } })
    t.match(JSON.stringify(signedIn.list.data[0]), 'Notice 1')
  })
}

for (const [title, console, signIn, query, shown] of [
  [
    'of both sides the written files are short, and the console signs in',
    ['--console', 'vben'],
    '/api/auth/login',
    'page=2',
    { code: 0, data: { total: 25, items: [{ noticeId: 11 }] } }
  ],
  [
    'of the back-end alone, lists have a shape for a console of no family',
    [],
    '/api/auth/admin/login',
    'current=2',
    { success: true, total: 25, data: [{ noticeId: 11 }] }
  ]
] as const) {
  t.test(`with presets ${title}`, async t => {
    const backend = await startBackend(t.after, ruoyi)
    const { path } = ruoyi.list
    const words = ['--backend', 'ruoyi', '--backend-url', backend.url, '--route', path]
    const { code, out, err, folder } = await runInit(t.after, [...console, ...words], '')
    t.same({ code, err }, { code: 0, err: '' })
    t.equal(backend.calls.length, 0, 'no account is needed')
    t.match(out, /Guessed: lists/)
    const [gatewayText, routesText] = ['gateway.yaml', 'routes.yaml'].map(name =>
      readFileSync(join(folder, name), 'utf8')
    )
    t.match(gatewayText, /^backend: ruoyi$/m)
    if (console.length > 0) {
      t.match(gatewayText, /^extends: vben\n\n?backend: ruoyi$/m)
      t.notMatch(routesText, /^shapes:|credential:/m)
    }
    t.match(await run(['check', '--config', folder]), { code: 0 })
    const gateway = await gatewayOn(t.after, folder)
    const signedIn = await gateway.call(signIn, { json: { username, password } })
    const cookie = cookieIn(signedIn.headers.getSetCookie())
    const list = await gateway.call(`/api${path}?${query}&pageSize=10`, { cookie })
    t.match(list.json, shown)
  })
}
