/** Each console fails, as its source says, where a response is not the gateway’s. */
import t from 'tap'
import { callOf, type ConsoleSpec, type Json } from './console.ts'
import { consoles } from './consoles.ts'
import { OpenConsole } from './driver.ts'
import { nodePage, type Page } from './page.ts'
import { alice, startPlain } from './plain.ts'

interface Answer {
  readonly status?: number
  readonly json: unknown
}

/** Other responses than the gateway's, by the name of a call. */
type Changes = Readonly<Record<string, (json: Json) => Answer>>

/** What a console shows of the sign-in, or of what the user does afterwards. */
type Row = readonly [
  console: string,
  because: string,
  changes: Changes,
  shows: object,
  afterwards?: (console: OpenConsole) => Promise<object>
]

const out = { at: 'sign-in', content: undefined }
const json = (value: unknown) => () => ({ json: value })
const secondPage = (console: OpenConsole) => console.list(2, 10)
const leaving = (console: OpenConsole) => console.signOut()

/** The member of an envelope by which a sign-in succeeds, and all values of `tried` that do. */
const successes: Readonly<Record<string, readonly [member: string, ...unknown[]]>> = {
  'ant-design-pro': ['status', 'ok'],
  'arco': ['code', 20000],
  'base-response': ['ok', 1, 200, 20000, '0', '200', '0000', '20000', 'ok', 'OK', true],
  'gin-vue-admin': ['code', 0],
  'jeecg': ['code', 0, 200],
  'ruoyi': ['code', 0, 200, undefined, false],
  'soybean': ['code', '0000'],
  'tdesign': ['code', 0],
  'vben': ['code', 0],
  'vue-element-admin': ['code', 20000],
  'vue-pure-admin': ['code', 0],
  'yudao': ['code', 0, 200, undefined]
}
const tried = [0, 1, 200, 20000, '0', '200', '0000', '20000', 'ok', 'OK', true, false, undefined]

/** What is shown of a refused sign-in where no body is read under such a status. */
const statuses: Readonly<Record<string, readonly [status: number, message: string]>> = {
  'arco': [403, 'Request Error'],
  'soybean': [403, 'Request failed with status code 403'],
  'vue-element-admin': [403, 'Request failed with status code 403'],
  'ruoyi': [403, '系统接口403异常'],
  'yudao': [401, '请求出错，请稍候重试401']
}

const cannotEnter = (console: string, call: string, body: object): Row => [
  console,
  'a response lacks what the console goes in by',
  { [call]: json(body) },
  out
]
const staysInside = (console: string, body: object): Row => [
  console,
  'its sign-out is refused',
  { signOut: json({ ...body, msg: 'Later.', message: 'Later.' }) },
  { at: 'inside', messages: ['Later.'] },
  leaving
]
const losesPlace = (console: string, ...names: readonly string[]): Row => [
  console,
  'the list does not say its page',
  { list: body => ({ json: { ...body, data: without(body.data, names) } }) },
  { at: 'inside', content: undefined },
  secondPage
]
const onList = (because: string, console: string, change: Changes[string], shows: object): Row => [
  console,
  because,
  { list: change },
  shows,
  secondPage
]

const rows: readonly Row[] = [
  cannotEnter('arco', 'signIn', { code: 20000, data: { token: '' } }),
  cannotEnter('soybean', 'signIn', { code: '0000', data: { token: '' } }),
  cannotEnter('vben', 'signIn', { code: 0, data: { accessToken: '' } }),
  cannotEnter('yudao', 'signIn', { code: 0, data: {} }),
  // No user beside the token, at the top of the body, or under `data`:
  cannotEnter('jeecg', 'signIn', { success: true, code: 200, result: { token: 't' } }),
  cannotEnter('ruoyi', 'user', { code: 200, data: { user: {}, roles: [] } }),
  cannotEnter('ant-design-pro', 'user', { success: true, name: 'Ada' }),
  ...[[], null, undefined, 'user'].map(roles =>
    cannotEnter('vue-element-admin', 'user', { code: 20000, data: { name: 'A', roles } })
  ),
  [
    'gin-vue-admin',
    'there is no route for the user’s home',
    { menu: json({ code: 0, data: { menus: [] } }) },
    { at: 'sign-in', messages: ['不存在可以登陆的首页，请联系管理员进行配置'] }
  ],
  [
    'tdesign',
    'its menu cannot be had',
    { menu: json({ code: 0, data: [] }) },
    { at: 'sign-in', messages: ["Can't build routes"] }
  ],
  [
    'vue-pure-admin',
    'the sign-in has no name and no roles',
    { signIn: json({ code: 0, data: { accessToken: 't', expires: Date.now() + 1e6 } }) },
    { content: { name: '', roles: [] } }
  ],
  [
    'vue-pure-admin',
    'the sign-in has ended already',
    {
      signIn: ({ data }) => ({ json: { code: 0, data: { ...data, expires: 1 } } }),
      refresh: json({ code: 10001 })
    },
    { at: 'sign-in', messages: ['登录已过期，请重新登录'] }
  ],
  losesPlace('gin-vue-admin', 'page', 'pageSize'),
  losesPlace('soybean', 'current', 'size'),
  losesPlace('vue-pure-admin', 'currentPage', 'pageSize'),
  onList(
    'only status 401 is the end of a session',
    'vben',
    json({ code: 401, message: 'Sign in again.' }),
    { at: 'inside', messages: ['Sign in again.'] }
  ),
  onList(
    'code 401 under status 200 is the end of a session',
    'jeecg',
    json({ success: false, code: 401 }),
    { at: 'sign-in', messages: ['登录超时,请重新登录!'] }
  ),
  onList(
    'every message beside success is shown',
    'jeecg',
    body => ({ json: { ...body, message: 'OK' } }),
    { messages: ['OK'], content: { total: 25 } }
  ),
  onList(
    'no body is read under a status beyond 2xx',
    'ant-design-pro',
    body => ({ status: 401, json: body }),
    { at: 'inside', messages: ['Response status:401'] }
  ),
  onList(
    'the message of a body is shown under any status',
    'base-response',
    () => ({ status: 401, json: { ok: false, message: 'Again.' } }),
    { at: 'inside', messages: ['Again.'] }
  ),
  staysInside('vue-element-admin', { code: 50000 }),
  staysInside('gin-vue-admin', { code: 7 }),
  staysInside('base-response', { ok: false }),
  staysInside('ruoyi', { code: 500 }),
  staysInside('arco', { code: 50008 }),
  [
    'soybean',
    'a refresh that it is told to refresh never ends',
    { list: json({ code: '9999' }), refresh: json({ code: '9999' }) },
    { at: 'inside', fault: 'The refresh waits for itself.' },
    secondPage
  ]
]

const without = (data: object, names: readonly string[]) =>
  Object.fromEntries(Object.entries(data).filter(([name]) => !names.includes(name)))

const atOf = ({ calls }: ConsoleSpec, name: string) => callOf(calls[name] ?? '').at.split('?', 1)[0]

/** The page, with other responses in the place of some. */
function changed(spec: ConsoleSpec, page: Page, changes: Changes): Page {
  const fetch: Page['fetch'] = async (path, init) => {
    const response = await page.fetch(path, init)
    const at = `${init?.method} ${path.split('?', 1)[0]}`
    const [, change] = Object.entries(changes).find(([name]) => atOf(spec, name) === at) ?? []
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
      new OpenConsole(spec, changed(spec, nodePage(gateway.url), changes))
    const [member = '', ...takes] = successes[spec.name] ?? []
    for (const value of tried) {
      const console = open({ signIn: body => ({ json: { ...body, [member]: value } }) })
      const shows = takes.includes(value) ? { at: 'inside' } : out
      t.match(await console.signIn(alice), shows, `${member} ${typeof value} ${String(value)}`)
    }
    const [status, message] = statuses[spec.name] ?? []
    if (status !== undefined) {
      const screen = await open({ signIn: body => ({ status, json: body }) }).signIn(alice)
      t.match(screen, { at: 'sign-in', messages: [message] }, `status ${status}`)
    }
    for (const [, because, changes, shows, afterwards] of rows.filter(([at]) => at === spec.name)) {
      const console = open(changes)
      const signedIn = await console.signIn(alice)
      t.match(afterwards ? await afterwards(console) : signedIn, shows, because)
    }
  })
}
