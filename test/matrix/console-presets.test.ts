/** Each preset of a console, in the hands of its driver. With back-ends: matrix.test.ts. */
import { readFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import { antDesignPro } from './consoles/ant-design-pro.ts'
import { baseResponse } from './consoles/base-response.ts'
import { arco } from './consoles/arco.ts'
import { ginVueAdmin } from './consoles/gin-vue-admin.ts'
import { jeecg } from './consoles/jeecg.ts'
import { ruoyi } from './consoles/ruoyi.ts'
import { soybean } from './consoles/soybean.ts'
import { tdesign } from './consoles/tdesign.ts'
import { vben, vbenRefreshing } from './consoles/vben.ts'
import { vueElementAdmin } from './consoles/vue-element-admin.ts'
import { vuePureAdmin } from './consoles/vue-pure-admin.ts'
import { yudao } from './consoles/yudao.ts'
import type { Driver } from './driver.ts'
import { nodePage } from './node-page.ts'
import { alice, items, startPlain } from './plain-gateway.ts'

interface Expected {
  /** Default: the name of the preset. */
  readonly title?: string
  readonly menu?: readonly string[]
  readonly permissions?: readonly string[]
  readonly roles?: readonly string[]
  /** The request layer hands a form nothing but a message. */
  readonly noFieldErrors?: boolean
  /** Other families whose envelope has all that this console reads. */
  readonly alsoFits?: readonly string[]
}

const drivers: ReadonlyArray<readonly [Driver, Expected]> = [
  [arco, { noFieldErrors: true }],
  [soybean, { menu: ['home'], permissions: ['*', 'read'] }],
  // Both want `code: 0` and `data` under status 200, and show no message of the server.
  [tdesign, { noFieldErrors: true, alsoFits: ['vue-pure-admin', 'gin-vue-admin', 'yudao'] }],
  [vben, { permissions: ['*', 'read'] }],
  [
    { ...vbenRefreshing, name: 'vben' },
    { permissions: ['*', 'read'], title: 'vben with enableRefreshToken' }
  ],
  [vueElementAdmin, { noFieldErrors: true }],
  [
    vuePureAdmin,
    {
      permissions: ['*', 'read'],
      // It reads `code: 0` and `data`, and shows nothing of a refusal under any status.
      alsoFits: ['base-response', 'tdesign', 'vben', 'gin-vue-admin', 'yudao']
    }
  ],
  [ginVueAdmin, { noFieldErrors: true, menu: ['仪表盘'] }],
  [jeecg, { noFieldErrors: true, permissions: ['*', 'read'] }],
  // It takes a code of 0 for 200, and shows the message of every code that it has no words for.
  [ruoyi, { noFieldErrors: true, permissions: ['*', 'read'], alsoFits: ['yudao'] }],
  [yudao, { noFieldErrors: true, permissions: ['*', 'read'] }],
  [antDesignPro, { permissions: ['canAdmin'] }],
  [baseResponse, { permissions: ['canAdmin'], roles: ['Admin'] }]
]

const day = 86_400_000
const wrongPassword = 'The user name or the password is wrong.'
for (const [driver, expected] of drivers) {
  const { title = driver.name } = expected
  void t.test(`${title}: the user signs in, works, and signs out`, async t => {
    const { backend, gateway } = await startPlain(t, driver)
    const page = nodePage(gateway.url)
    const console = driver.open(page)
    t.match(await console.start(), { at: 'sign-in', content: undefined })

    const wrong = await console.signIn({ ...alice, password: 'wrong-one' })
    t.match(wrong, { at: 'sign-in', content: undefined })
    t.match(wrong.messages[0], driver.ownWords?.wrongPassword ?? wrongPassword)

    const inside = {
      at: 'inside',
      content: { name: 'Alice Admin', roles: expected.roles ?? ['admin'] }
    }
    t.match(await console.signIn(alice), inside)
    t.match(await console.menu(), {
      content: { entries: expected.menu ?? [], permissions: expected.permissions ?? [] }
    })
    t.match(await console.list(2, 10), {
      content: { rows: items.slice(10, 20), total: 25 },
      messages: []
    })
    t.match(await console.save({ title: 'New' }), { content: { saved: true }, messages: [] })
    const refused = await console.save({ title: '' })
    t.match(refused.messages[0], driver.ownWords?.refused ?? 'No title.')
    t.equal(refused.content?.saved, false)
    const { fieldErrors } = refused.content ?? {}
    t.same(fieldErrors, expected.noFieldErrors === true ? undefined : { title: 'Needed.' })
    t.match(await driver.open(page).start(), inside, 'still inside after a reload')
    if (console.refresh !== undefined) {
      t.match(await console.refresh(), { at: 'inside', content: true })
    }
    t.match(await console.signOut(), { at: 'sign-in' })
    t.match(await driver.open(page).start(), { at: 'sign-in', content: undefined })
    const isOpen = 'console_sid' in page.allCookies()
    t.equal(isOpen, driver.signsOutSilently ?? false, 'the session ends with the sign-out')
    for (const { headers } of backend.seen) {
      t.notMatch(JSON.stringify(headers), /console-gateway|Bearer/, 'no token of the console')
    }
  })

  void t.test(`${title}: the end of a session leads to the sign-in page, once`, async t => {
    const { gateway } = await startPlain(t, driver)
    let passed = 0
    const page = nodePage(gateway.url, () => Date.now() + passed)
    const console = driver.open(page)
    await console.signIn(alice)
    if (driver.noticesEndBy === 'clock') passed = day
    await gateway.ops('/sessions/close', { json: { user: '1' } })
    const before = page.requests.length
    const refusal = await console.list(1, 10)
    const end = driver.noticesEndBy === 'reload' ? await console.start() : refusal
    t.equal(end.at, 'sign-in')
    t.ok(page.requests.length - before <= 3, `${page.requests.length - before} requests`)
    passed = 0
    t.match(await console.signIn(alice), { at: 'inside' }, 'and in again')
  })
}

interface Tree {
  readonly [key: string]: unknown
}

const isTree = (value: unknown): value is Tree =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function envelopeOf(name: string): Tree {
  const text = readFileSync(`presets/console/${name}.yaml`, 'utf8')
  return (parse(text) as { gateway: { envelope: Tree } }).gateway.envelope
}

/** What a config folder says so that nothing of `own` is left: null removes a key of a preset. */
function replaced(own: Tree, other: Tree): Tree {
  const removed = Object.keys(own).map(key => [key, null])
  const entries = Object.entries(other).map(([key, value]) => {
    const before = own[key]
    return [key, isTree(before) && isTree(value) ? replaced(before, value) : value]
  })
  return { ...Object.fromEntries(removed), ...Object.fromEntries(entries) } as Tree
}

/** The first thing that the user cannot do, or nothing. */
async function firstFailure(t: Test, driver: Driver, name: string) {
  const envelope = replaced(envelopeOf(driver.name), envelopeOf(name))
  const { gateway } = await startPlain(t, driver, { envelope })
  const console = driver.open(nodePage(gateway.url))
  const wrong = await console.signIn({ ...alice, password: 'wrong-one' })
  const words = driver.ownWords?.wrongPassword ?? wrongPassword
  if (wrong.messages.every(message => !message.startsWith(words))) return 'wrong password'
  if ((await console.signIn(alice)).content?.name !== 'Alice Admin') return 'sign-in'
  if ((await console.list(2, 10)).content?.rows[0]?.['id'] !== 11) return 'list'
  await gateway.ops('/sessions/close', { json: { user: '1' } })
  if (driver.noticesEndBy !== undefined) return undefined
  return (await console.list(1, 10)).at === 'sign-in' ? undefined : 'end of the session'
}

for (const [driver, { title = driver.name, alsoFits = [] }] of drivers) {
  void t.test(`${title}: fails with the envelope of another family`, async t => {
    for (const [{ name }] of drivers) {
      if (name === driver.name) continue
      const failure = await firstFailure(t, driver, name)
      const fits = alsoFits.includes(name)
      t.equal(failure === undefined, fits, `${name}: ${failure ?? 'works'}`)
    }
  })
}
