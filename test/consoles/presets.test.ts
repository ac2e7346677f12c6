/** Each preset of a console, in the hands of its console. With back-ends: pairs.test.ts. */
import t from 'tap'
import { consoles } from './consoles.ts'
import { vbenRefreshing } from './consoles/vben.ts'
import { OpenConsole } from './driver.ts'
import { startOidc } from './elsewhere.ts'
import { nodePage } from './page.ts'
import { wrongPassword } from './pair.ts'
import { alice, startPlain } from './plain.ts'
import { admin } from './server.ts'
import { useConsole } from './use.ts'

interface Shown {
  readonly entries?: readonly string[]
  readonly permissions?: readonly string[]
  readonly roles?: readonly string[]
}

const permissions = ['*', 'read']
const roles = ['admin', 'user']

/** Some consoles have one role only. */
const shown: Readonly<Record<string, Shown>> = {
  'ant-design-pro': { permissions: ['canAdmin'] },
  'base-response': { permissions: ['canAdmin'], roles: ['Admin'] },
  'gin-vue-admin': { entries: ['仪表盘'] },
  'jeecg': { permissions },
  'ruoyi': { roles, permissions },
  'soybean': { roles, entries: ['home'], permissions },
  'tdesign': { roles },
  'vben': { roles, permissions },
  'vue-element-admin': { roles },
  'vue-pure-admin': { roles, permissions },
  'yudao': { roles, permissions }
}

for (const spec of [...consoles, vbenRefreshing]) {
  const title = spec === vbenRefreshing ? 'vben with enableRefreshToken' : spec.name
  void t.test(`${title}: the user signs in, works, and signs out`, async t => {
    const { backend, gateway } = await startPlain(t, spec)
    let passedMs = 0
    const page = nodePage(gateway.url, () => Date.now() + passedMs)
    const name = 'Alice Admin'
    const expected = {
      ...alice,
      name,
      wrongPassword,
      refusal: ['No title.', 'Needed.'],
      field: 'title',
      endSession: () => gateway.ops('/ops/api/sessions/close', { json: { user: '1' } }),
      passTime: (ms: number) => {
        passedMs += ms
      }
    }
    t.same(await useConsole({ spec, page, expected }, 'end'), [])
    const isOpen = page.cookieNames().includes('console_sid')
    t.equal(isOpen, spec.calls['signOut'] === undefined, 'the session ends with the sign-out')
    for (const { headers } of backend.seen) {
      t.notMatch(JSON.stringify(headers), /console-gateway|Bearer/, 'no token of the console')
    }

    const { roles = ['admin'], entries = [], permissions = [] } = shown[spec.name] ?? {}
    const console = new OpenConsole(spec, page)
    t.same((await console.signIn(alice)).content, { name, roles })
    t.same((await console.menu()).content, { entries, permissions })
    const { content } = await console.save({ title: '' })
    const fieldErrors = { title: 'Needed.' }
    t.same(content, { saved: false, ...(spec.fieldErrors && { fieldErrors }) })
  })
}

const { sources, environment, visit } = await startOidc(t.after)

for (const spec of consoles) {
  const title = `${spec.name}: after a sign-in at a provider the line of its page shows the user`
  void t.test(title, async t => {
    const own = { login: { sources }, identity: { prefix: true } }
    const { gateway } = await startPlain(t, spec, own, environment)
    const page = nodePage(gateway.url)
    await visit?.(spec, page, gateway.url)
    const console = new OpenConsole(spec, page)
    const { roles = ['admin'], permissions = [] } = shown[spec.name] ?? {}
    // This console takes its roles from its own sign-in, unless `endpoints.profile` tells them.
    const first = spec.name === 'vue-pure-admin' ? 0 : 1
    t.same((await console.start()).content, { name: admin.name, roles: roles.slice(0, first) })
    t.same((await console.menu()).content?.permissions, permissions.slice(0, first))
  })
}

t.end()
