/** `init` against a back-end of each family's habits: the written folder signs in and lists. */
import t, { type Test } from 'tap'
import { backendNames, type BackendFamily, users } from '../../matrix/backend.ts'
import { run, start } from '../../support/command.ts'
import { filesIn, newFolder, signInAndGet } from '../../support/init.ts'

/** What somebody who knows the back-end tells: its sign-in, and a list. */
interface Told {
  readonly loginPath: string
  readonly fields?: string
  readonly user?: string
  readonly more?: readonly string[]
}

const told: Readonly<Record<(typeof backendNames)[number], Told>> = {
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
    more: ['--login-format', 'form', '--login-extra', '{"grant_type":"password"}']
  }
}

for (const name of backendNames) {
  t.test(`the folder for a back-end of ${name} signs in and lists`, async t => {
    const { backend: family } = (await import(`../../matrix/backends/${name}.ts`)) as {
      readonly backend: BackendFamily
    }
    await tryFamily(t, family, told[name])
  })
}

async function tryFamily(
  t: Test,
  family: BackendFamily,
  { loginPath, fields, user, more = [] }: Told
) {
  const { password } = users.admin
  const username = user ?? users.admin.username
  const backend = await family.start(t.after)
  const folder = newFolder(t.after)
  const words = ['--backend-url', backend.url, '--login-path', loginPath, '--user', username]
  const { code, out, err } = await run(
    [
      'init',
      folder,
      ...words,
      ...(fields === undefined ? [] : ['--login-fields', fields]),
      ...more,
      '--route',
      `/api/items=${family.list.path}`,
      '--yes'
    ],
    { input: password }
  )
  t.comment(out)
  t.same({ code, err }, { code: 0, err: '' })
  t.match(await run(['check', '--config', folder]), { code: 0 })
  t.ok(
    backend.calls.every(call => call.method === 'GET' || /login|token|logout|auth/.test(call.path)),
    'besides sign-in and sign-out only GET is called'
  )
  const gateway = start(t.after, folder, { LISTEN: '127.0.0.1:0', OPS_LISTEN: '127.0.0.1:0' })
  const [, url = ''] =
    /listening on (http:\S+?),? /.exec(await gateway.says('for operators on')) ?? []
  const { status, list } = await signInAndGet(url, { username, password }, '/api/items')
  t.equal(status, 200)
  t.match(list, { success: true })
  const [first] = list.data as ReadonlyArray<Record<string, unknown>>
  t.ok(JSON.stringify(first).includes('Notice 1'), JSON.stringify(first))
  const everything = [out, err, ...filesIn(folder)].join('\n')
  for (const secret of secretsOf(backend.calls)) t.notMatch(everything, secret)
  for (const value of [password, 'Notice 1', users.admin.name]) {
    t.notOk(everything.includes(value), `a value is not written: ${value}`)
  }
}

function secretsOf(calls: ReadonlyArray<{ readonly token?: string }>): string[] {
  return [...new Set(calls.flatMap(({ token }) => (token === undefined ? [] : [token])))]
}
