/** `init` against a back-end of each family's habits: the written folder signs in and lists. */
import t, { type Test } from 'tap'
import type { BackendSpec } from '../../consoles/backend.ts'
import { backends } from '../../consoles/backends.ts'
import { admin, startBackend } from '../../consoles/server.ts'
import { run } from '../../support/command.ts'
import { gatewayOn, runInit, signInAndGet } from '../../support/init.ts'

/** What somebody who knows the back-end tells: its sign-in, and a list. */
interface Told {
  readonly loginPath: string
  readonly fields?: string
  readonly user?: string
  readonly more?: readonly string[]
}

const told: Readonly<Record<string, Told>> = {
  'ruoyi': { loginPath: '/login' },
  'jeecg': { loginPath: '/jeecg-boot/sys/login' },
  'yudao': {
    loginPath: '/admin-api/system/auth/login',
    more: ['--header', 'tenant-id: 1', '--user-path', '/admin-api/system/auth/get-permission-info']
  },
  'gin-vue-admin': { loginPath: '/base/login' },
  'drf': { loginPath: '/api/token/' },
  'strapi': { loginPath: '/api/auth/local', fields: 'identifier,password' },
  'directus': { loginPath: '/auth/login', fields: 'email,password', user: 'admin@example.com' },
  'json-api': {
    loginPath: '/oauth/token',
    fields: 'username,password,grant_type=password',
    more: ['--login-format', 'form']
  }
}

for (const spec of backends) {
  t.test(`the folder for a back-end of ${spec.name} signs in and lists`, t =>
    tryFamily(t, spec, told[spec.name] ?? { loginPath: '/nobody-told-it' })
  )
}

async function tryFamily(
  t: Test,
  family: BackendSpec,
  { loginPath, fields = 'username,password', user = admin.username, more = [] }: Told
) {
  const account = { username: user, password: admin.password }
  const backend = await startBackend(t.after, family)
  const route = ['--route', `/api/items=${family.list.path}`]
  const signIn = ['--login-path', loginPath, '--login-fields', fields, '--user', user]
  const words = ['--backend-url', backend.url, ...signIn, ...more, ...route]
  const { code, out, err, folder, everything } = await runInit(t.after, words, account.password)
  t.comment(out)
  t.same({ code, err }, { code: 0, err: '' })
  t.match(await run(['check', '--config', folder]), { code: 0 })
  const { calls } = backend
  t.ok(calls.length <= 40, `${calls.length} requests`)
  t.ok(
    calls.every(call => call.method === 'GET' || /login|token|logout|auth/.test(call.path)),
    'besides sign-in and sign-out only GET is called'
  )
  t.equal(calls.filter(call => call.body.includes(account.password)).length, 1, 'one sign-in')
  const secrets = new Set(calls.flatMap(({ token }) => token ?? []))
  for (const value of [...secrets, account.password, 'Notice 1', admin.name]) {
    if (value !== 'made-up-0123456789') t.notOk(everything.includes(value), `${value} is written`)
  }
  const { status, list } = await signInAndGet(
    await gatewayOn(t.after, folder),
    account,
    '/api/items'
  )
  t.match({ status, list }, { status: 200, list: { success: true, total: Number } })
  t.equal(list.data.length > 0 && JSON.stringify(list.data[0]).includes('Notice 1'), true)
}
