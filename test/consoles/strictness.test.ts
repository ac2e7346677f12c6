/**
 * Each console works with the gateway's responses (presets.test.ts), and fails as its source says
 * where one of them is another.
 */
import t from 'tap'
import { callOf, type Json } from './console.ts'
import { consoles } from './consoles.ts'
import { soybean } from './consoles/soybean.ts'
import { vbenRefreshing } from './consoles/vben.ts'
import { yudao } from './consoles/yudao.ts'
import { OpenConsole } from './driver.ts'
import { nodePage, type Page } from './page.ts'
import { alice, startPlain } from './plain.ts'

interface Answer {
  readonly status?: number
  readonly json: unknown
}

/** Other responses than the gateway's, by `METHOD /path`. */
type Changes = Readonly<Record<string, (json: Json) => Answer>>

type Row = readonly [
  console: string,
  /** What makes the console differ. */
  because: string,
  changes: Changes,
  /** What it shows of the sign-in, or of what the user does afterwards. */
  shows: object,
  afterwards?: (console: OpenConsole) => Promise<object>
]

const out = { at: 'sign-in', content: undefined }
const json = (value: unknown) => () => ({ json: value })
const withStatus = (status: number) => (body: Json) => ({ status, json: body })
const secondPage = (console: OpenConsole) => console.list(2, 10)
const leaving = (console: OpenConsole) => console.signOut()

interface Codes {
  /** The call whose envelope is looked at, the member, and its values. */
  readonly at: string
  readonly member?: string
  readonly takes?: readonly unknown[]
  readonly refuses: readonly unknown[]
}

const codes: Readonly<Record<string, Codes>> = {
  'arco': { at: 'POST /api/user/login', refuses: [0, 200, '20000', undefined] },
  'vue-element-admin': {
    at: 'POST /prod-api/vue-element-admin/user/login',
    refuses: [0, 200, '20000', undefined]
  },
  'gin-vue-admin': { at: 'POST /api/base/login', refuses: [200, '0', 20000, undefined] },
  'soybean': { at: 'POST /auth/login', refuses: [0, '0', 200, undefined] },
  'tdesign': { at: 'GET /api/user-info', refuses: [200, '0', 20000, undefined] },
  'vben': { at: 'GET /api/user/info', refuses: [200, '0', 20000, undefined] },
  'vue-pure-admin': { at: 'POST /login', refuses: [200, '0', 20000, undefined] },
  'jeecg': {
    at: 'POST /jeecgboot/sys/login',
    takes: [0, 200],
    refuses: ['0', 20000, undefined]
  },
  'ruoyi': { at: 'POST /prod-api/login', takes: [0, 200, undefined], refuses: [1, '200'] },
  'yudao': {
    at: 'POST /admin-api/system/auth/login',
    takes: [0, 200, undefined],
    refuses: ['0', 20000]
  },
  'base-response': {
    at: 'POST /api/auth/admin/login',
    member: 'ok',
    refuses: [false, undefined, 0]
  },
  'ant-design-pro': { at: 'POST /api/login/account', member: 'status', refuses: ['OK', true, 200] }
}

/** Statuses under which the message of a body is not shown. */
const statuses: Readonly<Record<string, readonly [at: string, status: number, message: string]>> = {
  'arco': ['POST /api/user/login', 403, 'Request Error'],
  'soybean': ['POST /auth/login', 403, 'Request failed with status code 403'],
  'vue-element-admin': [
    'POST /prod-api/vue-element-admin/user/login',
    403,
    'Request failed with status code 403'
  ],
  'ruoyi': ['POST /prod-api/login', 403, '系统接口403异常'],
  'yudao': ['POST /admin-api/system/auth/login', 401, '请求出错，请稍候重试401']
}

const cannotEnter = (console: string, at: string, body: object): Row => [
  console,
  'a response lacks what the console goes in by',
  { [at]: json(body) },
  out
]
const staysInside = (console: string, at: string, body: object): Row => [
  console,
  'its sign-out is refused',
  { [at]: json({ ...body, msg: 'Later.', message: 'Later.' }) },
  { at: 'inside', messages: ['Later.'] },
  leaving
]
const losesPlace = (console: string, at: string, names: readonly string[]): Row => [
  console,
  'the list does not say its page',
  {
    [at]: body => {
      for (const name of names) delete body.data[name]
      return { json: body }
    }
  },
  { at: 'inside', content: undefined },
  secondPage
]

const vueElementAdmin = '/prod-api/vue-element-admin/user'
const rows: readonly Row[] = [
  cannotEnter('arco', 'POST /api/user/login', { code: 20000, data: { token: '' } }),
  cannotEnter('soybean', 'POST /auth/login', { code: '0000', data: { token: '' } }),
  cannotEnter('vben', 'POST /api/auth/login', { code: 0, data: { accessToken: '' } }),
  cannotEnter('yudao', 'POST /admin-api/system/auth/login', { code: 0, data: {} }),
  // No user beside the token, at the top of the body, or under `data`:
  cannotEnter('jeecg', 'POST /jeecgboot/sys/login', {
    success: true,
    code: 200,
    result: { token: 't' }
  }),
  cannotEnter('ruoyi', 'GET /prod-api/getInfo', { code: 200, data: { user: {}, roles: [] } }),
  cannotEnter('ant-design-pro', 'GET /api/currentUser', { success: true, name: 'Ada' }),
  ...[[], null, undefined, 'user'].map((roles): Row => {
    const user = { code: 20000, data: { name: 'A', roles } }
    const because = `the roles are ${JSON.stringify(roles)}`
    return ['vue-element-admin', because, { [`GET ${vueElementAdmin}/info`]: json(user) }, out]
  }),
  [
    'gin-vue-admin',
    'there is no route for the user’s home',
    { 'POST /api/menu/getMenu': json({ code: 0, data: { menus: [] } }) },
    { at: 'sign-in', messages: ['不存在可以登陆的首页，请联系管理员进行配置'] }
  ],
  [
    'tdesign',
    'its menu cannot be had',
    { 'GET /api/get-menu-list-i18n': json({ code: 0, data: [] }) },
    { at: 'sign-in', messages: ["Can't build routes"] }
  ],
  [
    'vue-pure-admin',
    'the sign-in has no name and no roles',
    { 'POST /login': json({ code: 0, data: { accessToken: 't', expires: Date.now() + 1e6 } }) },
    { content: { name: '', roles: [] } }
  ],
  [
    'vue-pure-admin',
    'the sign-in has ended already',
    {
      'POST /login': ({ data }) => ({ json: { code: 0, data: { ...data, expires: 1 } } }),
      'POST /refresh-token': json({ code: 10001 })
    },
    { at: 'sign-in', messages: ['登录已过期，请重新登录'] }
  ],
  losesPlace('gin-vue-admin', 'GET /api/info/getInfoList', ['page', 'pageSize']),
  losesPlace('soybean', 'GET /systemManage/getUserList', ['current', 'size']),
  losesPlace('vue-pure-admin', 'GET /user', ['currentPage', 'pageSize']),
  [
    'vben',
    'only status 401 is the end of a session',
    { 'GET /api/table/list': json({ code: 401, message: 'Sign in again.' }) },
    { at: 'inside', messages: ['Sign in again.'] },
    secondPage
  ],
  [
    'jeecg',
    'code 401 under status 200 is the end of a session',
    { 'GET /jeecgboot/sys/annountCement/list': json({ success: false, code: 401 }) },
    { at: 'sign-in', messages: ['登录超时,请重新登录!'] },
    secondPage
  ],
  [
    'jeecg',
    'every message beside success is shown',
    { 'GET /jeecgboot/sys/annountCement/list': body => ({ json: { ...body, message: 'OK' } }) },
    { messages: ['OK'], content: { total: 25 } },
    secondPage
  ],
  [
    'ant-design-pro',
    'no body is read under a status beyond 2xx',
    { 'GET /api/rule': withStatus(401) },
    { at: 'inside', messages: ['Response status:401'] },
    secondPage
  ],
  [
    'base-response',
    'the message of a body is shown under any status',
    { 'GET /api/users/page': () => ({ status: 401, json: { ok: false, message: 'Again.' } }) },
    { at: 'inside', messages: ['Again.'] },
    secondPage
  ],
  staysInside('vue-element-admin', `POST ${vueElementAdmin}/logout`, { code: 50000 }),
  staysInside('gin-vue-admin', 'POST /api/jwt/jsonInBlacklist', { code: 7 }),
  staysInside('base-response', 'GET /api/account/logout', { ok: false }),
  staysInside('ruoyi', 'POST /prod-api/logout', { code: 500 }),
  staysInside('arco', 'POST /api/user/logout', { code: 50008 }),
  [
    'soybean',
    'a refresh that it is told to refresh never ends',
    {
      'GET /systemManage/getUserList': json({ code: '9999' }),
      'POST /auth/refreshToken': json({ code: '9999' })
    },
    { at: 'inside', fault: 'The refresh waits for itself.' },
    secondPage
  ]
]

/** The page, with other responses in the place of some. */
function changed(page: Page, changes: Changes): Page {
  const fetch: Page['fetch'] = async (path, init) => {
    const response = await page.fetch(path, init)
    const change = changes[`${init?.method ?? 'GET'} ${path.split('?', 1)[0]}`]
    if (change === undefined) return response
    const { status = response.status, json: body } = change(JSON.parse(await response.text()))
    return { status, text: async () => JSON.stringify(body) }
  }
  return { ...page, fetch }
}

for (const spec of consoles) {
  void t.test(`${spec.name} is as strict as its source`, async t => {
    const { gateway } = await startPlain(t, spec)
    const open = (changes: Changes) =>
      new OpenConsole(spec, changed(nodePage(gateway.url), changes))
    const { at = '', member = 'code', takes = [], refuses = [] } = codes[spec.name] ?? {}
    for (const value of [...takes, ...refuses]) {
      const console = open({ [at]: body => ({ json: { ...body, [member]: value } }) })
      const shows = takes.includes(value) ? { at: 'inside' } : out
      t.match(await console.signIn(alice), shows, `${member} ${String(value)}`)
    }
    const [call = '', status = 0, message] = statuses[spec.name] ?? []
    if (message !== undefined) {
      const screen = await open({ [call]: withStatus(status) }).signIn(alice)
      t.match(screen, { at: 'sign-in', messages: [message] }, `status ${status}`)
    }
    for (const [, because, changes, shows, afterwards] of rows.filter(([at]) => at === spec.name)) {
      const console = open(changes)
      const signedIn = await console.signIn(alice)
      t.match(afterwards ? await afterwards(console) : signedIn, shows, because)
    }
  })
}

/** Consoles that renew their token by themselves, and a refusal of their list. */
const renewals = [
  [soybean, { json: { code: '9999' } }],
  [vbenRefreshing, { status: 401, json: {} }],
  [yudao, { json: { code: 401 } }]
] as const

for (const [spec, refusal] of renewals) {
  void t.test(`${spec.name} renews its token once, and sends the request again`, async t => {
    const { gateway } = await startPlain(t, spec)
    const page = nodePage(gateway.url)
    const { at: list } = callOf(spec.calls.list)
    let refused = 0
    const answer = (body: Json) => (refused++ === 0 ? refusal : { json: body })
    const console = new OpenConsole(spec, changed(page, { [list]: answer }))
    await console.signIn(alice)
    const before = page.sent.length
    t.match(await console.list(2, 10), { at: 'inside', content: { total: 25 } })
    const sent = page.sent.slice(before).map(each => each.split('?', 1)[0])
    const renewal = callOf(spec.calls['refresh'] ?? '').at.split('?', 1)[0]
    t.same(sent, [list, renewal, list])
  })
}
