/** The drivers of console presets, what their users see, and what the envelope of another family breaks. */
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
import { alice, startPlain } from './plain-gateway.ts'

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

export const drivers: ReadonlyArray<readonly [Driver, Expected]> = [
  [arco, { noFieldErrors: true }],
  [soybean, { menu: ['home'], permissions: ['*', 'read'] }],
  // Both want `code: 0` and `data` under status 200, and show no message of the server.
  [tdesign, { noFieldErrors: true, alsoFits: ['vue-pure-admin', 'gin-vue-admin', 'yudao'] }],
  [vben, { permissions: ['*', 'read'] }],
  [vbenRefreshing, { permissions: ['*', 'read'], title: 'vben with enableRefreshToken' }],
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

/** In the language of the console. */
export const wrongPassword = ['The user name or the password is wrong.', '用户名或密码错误。']

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
  const words = [driver.ownWords?.wrongPassword ?? wrongPassword].flat()
  const isSaid = (message: string) => words.some(each => message.startsWith(each))
  if (!wrong.messages.some(isSaid)) return 'wrong password'
  if ((await console.signIn(alice)).content?.name !== 'Alice Admin') return 'sign-in'
  if ((await console.list(2, 10)).content?.rows[0]?.['id'] !== 11) return 'list'
  await gateway.ops('/ops/api/sessions/close', { json: { user: '1' } })
  if (driver.noticesEndBy !== undefined) return undefined
  return (await console.list(1, 10)).at === 'sign-in' ? undefined : 'end of the session'
}

/** @param chosen which of the other families are tried, by the place of the console */
export function failWithOthers(
  chosen: (others: readonly string[], console: number) => readonly string[]
) {
  for (const [at, [driver, { title = driver.name, alsoFits = [] }]] of drivers.entries()) {
    void t.test(`${title}: fails with the envelope of another family`, async t => {
      const others = drivers.map(([{ name }]) => name).filter(name => name !== driver.name)
      for (const name of chosen(others, at)) {
        const failure = await firstFailure(t, driver, name)
        const fits = alsoFits.includes(name)
        t.equal(failure === undefined, fits, `${name}: ${failure ?? 'works'}`)
      }
    })
  }
}
