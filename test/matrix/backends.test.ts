/** Each simulated back-end does what its family does, and refuses what its family refuses. */
import tap from 'tap'
import {
  type Backend,
  type BackendFamily,
  backendNames,
  captchaText,
  itemCount,
  users
} from './backend.ts'
import { backend as directus } from './backends/directus.ts'
import { backend as drf } from './backends/drf.ts'
import { backend as ginVueAdmin } from './backends/gin-vue-admin.ts'
import { backend as jeecg } from './backends/jeecg.ts'
import { backend as jsonApi } from './backends/json-api.ts'
import { backend as ruoyi } from './backends/ruoyi.ts'
import { backend as strapi } from './backends/strapi.ts'
import { backend as yudao } from './backends/yudao.ts'

/** What a client that knows a family sends, and what it reads from the responses. */
interface Client {
  readonly family: BackendFamily
  readonly signIn: (username: string, password: string) => Sent
  /** The members of a successful sign-in. */
  readonly tokens: (body: any) => { access: string; refresh?: string }
  readonly withToken: (token: string) => Record<string, string>
  /** The content type of other bodies; default: JSON. */
  readonly contentType?: string
  readonly page2: string
  readonly rows: (body: any) => any[]
  readonly total: (body: any) => number
  readonly renew?: (refresh: string) => Sent
  /** Whether a response refuses for want of a session. */
  readonly isUnauthenticated: (response: Received) => boolean
}

interface Sent {
  readonly path: string
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly json?: unknown
  readonly form?: Record<string, string>
}

interface Received {
  readonly status: number
  readonly text: string
  readonly body: any
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
const hasStatus401 = ({ status }: Received) => status === 401
const isRefused = ({ status }: Received) => status === 401 || status === 403
const hasCode401 = ({ status, body }: Received) => status === 200 && body.code === 401

const clients: readonly Client[] = [
  {
    family: ruoyi,
    signIn: (username, password) => ({ path: '/login', json: { username, password } }),
    tokens: ({ token }) => ({ access: token }),
    withToken: bearer,
    page2: 'pageNum=2&pageSize=10',
    rows: ({ rows }) => rows,
    total: ({ total }) => total,
    isUnauthenticated: hasCode401
  },
  {
    family: jeecg,
    signIn: (username, password) => ({
      path: '/jeecg-boot/sys/login',
      json: { username, password }
    }),
    tokens: ({ result }) => ({ access: result.token }),
    withToken: token => ({ 'x-access-token': token }),
    page2: 'pageNo=2&pageSize=10',
    rows: ({ result }) => result.records,
    total: ({ result }) => result.total,
    isUnauthenticated: hasStatus401
  },
  {
    family: yudao,
    signIn: (username, password) => ({
      path: '/admin-api/system/auth/login',
      headers: { 'tenant-id': '1' },
      json: { username, password }
    }),
    tokens: ({ data }) => ({ access: data.accessToken, refresh: data.refreshToken }),
    withToken: bearer,
    page2: 'pageNo=2&pageSize=10',
    rows: ({ data }) => data.list,
    total: ({ data }) => data.total,
    renew: refresh => ({
      path: `/admin-api/system/auth/refresh-token?refreshToken=${refresh}`,
      method: 'POST',
      headers: { 'tenant-id': '1' }
    }),
    isUnauthenticated: ({ body }) => body.code === 401 || body.msg === '无效的刷新令牌'
  },
  {
    family: ginVueAdmin,
    signIn: (username, password) => ({ path: '/base/login', json: { username, password } }),
    tokens: ({ data }) => ({ access: data.token }),
    withToken: token => ({ 'x-token': token }),
    page2: 'page=2&pageSize=10',
    rows: ({ data }) => data.list,
    total: ({ data }) => data.total,
    isUnauthenticated: hasStatus401
  },
  {
    family: drf,
    signIn: (username, password) => ({ path: '/api/token/', json: { username, password } }),
    tokens: ({ access, refresh }) => ({ access, refresh }),
    withToken: bearer,
    page2: 'page=2&page_size=10',
    rows: ({ results }) => results,
    total: ({ count }) => count,
    renew: refresh => ({ path: '/api/token/refresh/', json: { refresh } }),
    isUnauthenticated: hasStatus401
  },
  {
    family: strapi,
    signIn: (identifier, password) => ({
      path: '/api/auth/local',
      json: { identifier, password }
    }),
    tokens: ({ jwt }) => ({ access: jwt }),
    withToken: bearer,
    page2: 'pagination[page]=2&pagination[pageSize]=10',
    rows: ({ data }) => data,
    total: ({ meta }) => meta.pagination.total,
    isUnauthenticated: isRefused
  },
  {
    family: directus,
    signIn: (email, password) => ({ path: '/auth/login', json: { email, password } }),
    tokens: ({ data }) => ({ access: data.access_token, refresh: data.refresh_token }),
    withToken: bearer,
    page2: 'page=2&limit=10&meta=filter_count',
    rows: ({ data }) => data,
    total: ({ meta }) => meta.filter_count,
    renew: refresh => ({ path: '/auth/refresh', json: { refresh_token: refresh, mode: 'json' } }),
    isUnauthenticated: isRefused
  },
  {
    family: jsonApi,
    signIn: (username, password) => ({
      path: '/oauth/token',
      form: { grant_type: 'password', username, password }
    }),
    tokens: body => ({ access: body.access_token, refresh: body.refresh_token }),
    withToken: bearer,
    contentType: 'application/vnd.api+json',
    page2: 'page[number]=2&page[size]=10',
    rows: ({ data }) => data.map(({ id, attributes }: any) => ({ id: Number(id), ...attributes })),
    total: ({ meta }) => meta.total,
    renew: refresh => ({
      path: '/oauth/token',
      form: { grant_type: 'refresh_token', refresh_token: refresh }
    }),
    isUnauthenticated: ({ status, body }) => status === 401 || body.error === 'invalid_grant'
  }
]

async function send(
  backend: Backend,
  { path, method, headers, json, form }: Sent,
  contentType = 'application/json'
): Promise<Received> {
  const body = form === undefined ? JSON.stringify(json) : new URLSearchParams(form)
  const response = await fetch(`${backend.url}${path}`, {
    method: method ?? (body === undefined ? 'GET' : 'POST'),
    headers: { ...(json !== undefined && { 'content-type': contentType }), ...headers },
    ...(body !== undefined && { body })
  })
  const text = await response.text()
  const isJson = (response.headers.get('content-type') ?? '').includes('json')
  return { status: response.status, text, body: isJson ? JSON.parse(text) : undefined }
}

tap.strictSame(
  clients.map(({ family }) => family.name),
  backendNames,
  'all families are tried'
)

for (const client of clients) {
  const { family } = client
  void tap.test(`${family.name}: signs in, lists, refuses a form, and ends sessions`, async t => {
    const backend = await family.start(t.teardown)
    const name = family.loginName(users.user)
    const wrong = await send(backend, client.signIn(name, 'wrong-password'))
    t.match(wrong.text, family.wrongPassword)
    const signedIn = await send(backend, client.signIn(name, users.user.password))
    const { access, refresh } = client.tokens(signedIn.body)
    const headers = client.withToken(access)

    const list = { path: `${family.list.path}?${client.page2}`, headers }
    const second = await send(backend, list)
    t.equal(client.total(second.body), itemCount)
    const { id, title } = family.list.fields
    const [first] = client.rows(second.body)
    t.equal(Number(first[id]), 11)
    t.equal(first[title.replace('attributes.', '')], 'Notice 11')
    t.equal(client.rows(second.body).length, 10)
    t.equal(backend.calls.at(-1)?.username, users.user.username)

    const save = { path: family.save.path, method: family.save.method, headers }
    const refused = await send(backend, { ...save, json: family.save.body('') }, client.contentType)
    t.match(refused.text, JSON.stringify(family.save.message).slice(1, -1))
    const saved = await send(
      backend,
      { ...save, json: family.save.body('New') },
      client.contentType
    )
    t.ok(saved.status === 200 || saved.status === 201)
    t.notMatch(saved.text, family.save.message)

    t.ok(client.isUnauthenticated(await send(backend, { ...list, headers: {} })))
    backend.expireTokens()
    t.ok(client.isUnauthenticated(await send(backend, list)))
    t.equal(refresh !== undefined, family.refreshes)
    if (client.renew !== undefined && refresh !== undefined) {
      const renewed = client.tokens((await send(backend, client.renew(refresh))).body)
      const again = await send(backend, { ...list, headers: client.withToken(renewed.access) })
      t.equal(again.text, second.text)
      backend.endAllSessions()
      const ended = await send(backend, client.renew(renewed.refresh ?? ''))
      t.ok(client.isUnauthenticated(ended))
    }
  })
}

/** How each family with captchas shows one, and what its sign-in adds to the body. */
const captchas: ReadonlyArray<
  readonly [
    name: string,
    get: Sent,
    add: (body: any, text: string) => Record<string, unknown>,
    mayRetry?: boolean
  ]
> = [
  ['ruoyi', { path: '/captchaImage' }, ({ uuid }, code) => ({ uuid, code })],
  [
    'jeecg',
    { path: '/jeecg-boot/sys/randomImage/key1' },
    (_, captcha) => ({ checkKey: 'key1', captcha }),
    true
  ],
  [
    'yudao',
    { path: '/admin-api/system/captcha/get', json: { captchaType: 'blockPuzzle' } },
    ({ repData }, text) => ({ captchaVerification: `${repData.token}---${text}` })
  ],
  [
    'gin-vue-admin',
    { path: '/base/captcha', method: 'POST' },
    ({ data }, captcha) => ({ captchaId: data.captchaId, captcha })
  ]
]

for (const [name, get, add, mayRetry = false] of captchas) {
  void tap.test(
    `${name}: a captcha is good for one ${mayRetry ? 'sign-in' : 'attempt'}`,
    async t => {
      const client = clients.find(({ family }) => family.name === name)
      if (client === undefined) throw new Error(name)
      const { family } = client
      const backend = await family.start(t.teardown, { captcha: true })
      const signIn = client.signIn(users.user.username, users.user.password)
      const shown = await send(backend, get)
      const attempt = (text: string) =>
        send(backend, { ...signIn, json: { ...(signIn.json as object), ...add(shown.body, text) } })
      t.match((await attempt('000000')).text, family.wrongCaptcha)
      const second = (await attempt(captchaText)).text
      t.equal(/token/i.test(second), mayRetry, 'after a wrong text')
      t.notMatch((await attempt(captchaText)).text, /token/i, 'it is used up')
      await send(backend, get).then(async fresh => {
        const json = { ...(signIn.json as object), ...add(fresh.body, captchaText) }
        t.match((await send(backend, { ...signIn, json })).text, /token/i)
      })
    }
  )
}
