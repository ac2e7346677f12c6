/** A console with a back-end: two presets, and the lines that an operator writes. */
import { parse, stringify } from 'yaml'
import { textFolder } from '../support/config-files.ts'
import { noLockout, testGateway, type TestGateway } from '../support/gateway.ts'
import { testSecret } from '../support/ops.ts'
import type { BackendSpec } from './backend.ts'
import { type ConsoleSpec, pathOf } from './console.ts'
import type { Elsewhere } from './elsewhere.ts'
import { type NodePage, nodePage } from './page.ts'
import { type Backend, type BackendOptions, startBackend, users } from './server.ts'
import type { Expected } from './use.ts'

/** Hosts and secrets, which every installation has whatever its console and back-end are. */
const installation = {
  gateway: [
    'server: { listen: 127.0.0.1:0 }',
    'ops: { listen: 127.0.0.1:0, secret: "${OPS_SECRET}" }',
    'session: { cookie: { secure: false } }'
  ],
  routes: ['upstreams: { backend: { url: "${BACKEND_URL}" } }']
}

/** Of the route of the list: what the back-end needs for it, and what it refuses. */
const listQueries: Readonly<Record<string, object>> = {
  // Directus counts only if it is asked.
  'directus': { set: { meta: 'filter_count' } },
  // JSON:API refuses parameters that it does not know: a page by two names, an order of its own.
  'base-response × json-api': { drop: ['current', 'pageSize'] },
  'jeecg × json-api': { drop: ['column', 'order', 'field'] }
}

/** Further lines of routes.yaml that only a pair needs. */
const pairLines: Readonly<Record<string, string>> = {
  // This console lets nobody in who has no role, and this back-end tells none.
  'vue-element-admin × jeecg': 'endpoints: { profile: { answer: { json: { roles: [user] } } } }'
}

/** In the gateway's words, where no text of the back-end takes their place. */
export const wrongPassword = ['The user name or the password is wrong.', '用户名或密码错误。']

interface Pair {
  readonly backend: Backend
  readonly gateway: TestGateway
  /** Lines of config that the pair needs, without hosts, secrets and a sign-in elsewhere. */
  readonly lines: number
  readonly page: NodePage
  readonly expected: Expected
}

interface PairOptions {
  readonly backend?: BackendOptions
  /** Further routes of the operator, and further keys of those that stand. */
  readonly routes?: Readonly<Record<string, object>>
  /** Default: nothing is locked. */
  readonly lockout?: object
  /** Who signs in. Default: the back-end. */
  readonly elsewhere?: Elsewhere | undefined
}

export async function startPair(
  cleanUp: (undo: () => unknown) => void,
  console: ConsoleSpec,
  spec: BackendSpec,
  { backend: backendOptions, routes = {}, lockout = noLockout, elsewhere }: PairOptions = {}
): Promise<Pair> {
  const backend = await startBackend(cleanUp, spec, backendOptions)
  const lines = linesOf(console, spec)
  const sources = { login: { sources: { backend: null, ...elsewhere?.sources } } }
  const limits = { 'signed-in': { by: 'user', max: 100_000, window: '1m' } }
  const config = parse([...installation.routes, ...lines.routes].join('\n')) as {
    upstreams: { backend: object }
    routes: Record<string, object>
  }
  const credential = { as: spec.credential ?? 'bearer', ...elsewhere?.credential }
  if (elsewhere) Object.assign(config.upstreams.backend, { credential })
  for (const [name, keys] of Object.entries(routes)) {
    config.routes[name] = { ...config.routes[name], ...keys }
  }
  const gatewayLines = [...installation.gateway, ...lines.gateway].join('\n')
  const folder = textFolder(cleanUp, {
    'gateway.yaml': `${gatewayLines}\n${elsewhere ? stringify(sources) : ''}`,
    'routes.yaml': stringify(config),
    'users.yaml': stringify({ users: elsewhere?.users ?? {} }),
    'limits.yaml': stringify({ lockout, limits })
  })
  const gateway = await testGateway(cleanUp, folder, {
    BACKEND_URL: backend.url,
    OPS_SECRET: testSecret,
    ...elsewhere?.environment
  })
  let passedMs = 0
  const page = nodePage(gateway.url, () => Date.now() + passedMs)
  const { admin } = users
  const visit = elsewhere?.visit
  const { message, field } = spec.save
  const expected = {
    username: elsewhere?.username ?? spec.loginName?.(admin) ?? admin.username,
    password: admin.password,
    name: admin.name,
    wrongPassword: [spec.wrongPassword, ...wrongPassword],
    // Where only a field has a text, the message names the field too.
    refusal: [message, `${field}: ${message}`],
    ...(field !== undefined && { field }),
    ...(visit && { visitProvider: () => visit(console, page, gateway.url) }),
    endSession: () => gateway.ops('/ops/api/sessions/close', { json: { everyone: true } }),
    ...(!elsewhere && { endAtBackend: () => backend.endAllSessions() }),
    passTime: (ms: number) => {
      passedMs += ms
    }
  }
  return { backend, gateway, lines: lines.gateway.length + lines.routes.length, page, expected }
}

function linesOf({ name, calls }: ConsoleSpec, { name: family, list, save }: BackendSpec) {
  const pair = `${name} × ${family}`
  const query = {
    ...(list.search !== 'title' && { rename: { title: list.search } }),
    ...(listQueries[pair] ?? listQueries[family])
  }
  const notices = renamesOf(list.fields)
  const { title } = list.fields
  const isRenamed = title !== 'title' && !title.includes('.')
  const { operations = isRenamed ? [{ rename: { title } }] : undefined } = save
  const [upstream, rewrite] = ['backend', list.path]
  const listRoute = {
    ...{ path: pathOf(calls.list), methods: ['GET'], upstream, rewrite },
    ...(Object.keys(query).length > 0 && { query }),
    shape: notices === undefined ? 'list' : 'notices'
  }
  const saveRoute = {
    ...{ path: pathOf(calls.save), methods: ['POST'], upstream, rewrite: save.path },
    ...(operations && { body: { shape: 'to-notice' } }),
    shape: 'record'
  }
  const shapes = { ...(notices && { notices }), ...(operations && { 'to-notice': operations }) }
  return {
    gateway: [`extends: ${name}`, `backend: ${family}`],
    routes: [
      'permissions: { admin: ["*:*:*"] }',
      ...section('routes', { list: listRoute, save: saveRoute }),
      ...section('shapes', shapes),
      pairLines[pair] ?? ''
    ].filter(line => line !== '')
  }
}

/** A line for each entry. */
function section(name: string, entries: Readonly<Record<string, unknown>>): string[] {
  const lines = Object.entries(entries).map(
    ([key, value]) =>
      `  ${key}: ${stringify(value, { collectionStyle: 'flow', lineWidth: 0 }).trim()}`
  )
  return lines.length === 0 ? [] : [`${name}:`, ...lines]
}

/** The shape between the back-end's list and the console's, where members have other names. */
function renamesOf({ id, title }: BackendSpec['list']['fields']): readonly unknown[] | undefined {
  const renames = Object.entries({ [id]: 'id', [title]: 'title' }).filter(
    ([from, to]) => from !== to && !from.includes('.')
  )
  if (renames.length === 0) return undefined
  const each = [{ rename: Object.fromEntries(renames) }]
  return [{ use: 'rows' }, { at: { path: 'rows', operations: [{ each }] } }, { use: 'page' }]
}
