/** A console with a back-end: two presets, and the lines that an operator writes. */
import { testGateway } from '../support/gateway.ts'
import type { BackendSpec } from './backend.ts'
import { type ConsoleSpec, pathOf } from './console.ts'
import type { Elsewhere } from './elsewhere.ts'
import { nodePage } from './page.ts'
import { admin, type BackendOptions, startBackend } from './server.ts'

/** Of the route of the list: what the back-end needs for it, and what it refuses. */
const listQueries: Readonly<Record<string, object>> = {
  // Directus counts only if it is asked.
  'directus': { set: { meta: 'filter_count' } },
  // JSON:API refuses parameters that it does not know: a page by two names, an order of its own.
  'base-response × json-api': { drop: ['current', 'pageSize'] },
  'jeecg × json-api': { drop: ['column', 'order', 'field'] }
}

/** Further keys of routes.yaml that only a pair needs. */
const pairKeys: Readonly<Record<string, object>> = {
  // This console lets nobody in who has no role, and this back-end tells none.
  'vue-element-admin × jeecg': { endpoints: { profile: { answer: { json: { roles: ['user'] } } } } }
}

/** In the gateway's words, where no text of the back-end takes their place. */
export const wrongPassword = ['The user name or the password is wrong.', '用户名或密码错误。']

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
  { backend: backendOptions, routes = {}, lockout, elsewhere }: PairOptions = {}
) {
  const backend = await startBackend(cleanUp, spec, backendOptions)
  const own = operatorsRoutes(console, spec)
  // Of config that the pair needs, without hosts, secrets and a sign-in elsewhere: one for each
  // preset, each section and each of its entries.
  const lines = 2 + Object.values(own).reduce((sum, each) => sum + 1 + Object.keys(each).length, 0)
  for (const [name, keys] of Object.entries(routes)) {
    own.routes[name] = { ...own.routes[name], ...keys }
  }
  const credential = elsewhere && {
    credential: { as: spec.credential ?? 'bearer', ...elsewhere.credential }
  }
  const files = {
    gateway: {
      extends: console.name,
      backend: spec.name,
      ...(elsewhere && { login: { sources: { backend: null, ...elsewhere.sources } } })
    },
    routes: { upstreams: { backend: { url: backend.url, ...credential } }, ...own },
    users: { users: elsewhere?.users ?? {} },
    ...(lockout && { limits: { lockout } })
  }
  const gateway = await testGateway(cleanUp, files, elsewhere?.environment)
  let passedMs = 0
  const page = nodePage(gateway.url, () => Date.now() + passedMs)
  const visit = elsewhere?.visit
  const { message, field } = spec.save
  const expected = {
    username: (!elsewhere && spec.loginName) || admin.username,
    password: admin.password,
    name: admin.name,
    wrongPassword: [spec.wrongPassword, ...wrongPassword],
    // Where only a field has a text, the message names the field too.
    refusal: [message, `${field}: ${message}`],
    ...(field !== undefined && { field }),
    ...(visit && { visitProvider: () => visit(console, page, gateway.url) }),
    endSession: () => gateway.ops('/ops/api/sessions/close', { json: { everyone: true } }),
    ...(!elsewhere && { endAtBackend: () => backend.tokens.endAll() }),
    passTime: (ms: number) => {
      passedMs += ms
    }
  }
  return { backend, gateway, lines, page, expected }
}

function operatorsRoutes({ name, calls }: ConsoleSpec, { name: family, list, save }: BackendSpec) {
  const pair = `${name} × ${family}`
  const query = {
    ...(list.query.search !== 'title' && { rename: { title: list.query.search } }),
    ...(listQueries[pair] ?? listQueries[family])
  }
  const notices = renamesOf(list.fields)
  const { title } = list.fields
  const isRenamed = title !== 'title' && !title.includes('.')
  const { operations = isRenamed ? [{ rename: { title } }] : undefined } = save
  const shapes = { ...(notices && { notices }), ...(operations && { 'to-notice': operations }) }
  const routes: Record<string, object> = {
    list: {
      path: pathOf(calls.list),
      methods: ['GET'],
      upstream: 'backend',
      rewrite: list.path,
      ...(Object.keys(query).length > 0 && { query }),
      shape: notices === undefined ? 'list' : 'notices'
    },
    save: {
      path: pathOf(calls.save),
      methods: ['POST'],
      upstream: 'backend',
      rewrite: save.path,
      ...(operations && { body: { shape: 'to-notice' } }),
      shape: 'record'
    }
  }
  const permissions = { admin: ['*:*:*'] }
  const hasShapes = Object.keys(shapes).length > 0
  return { permissions, routes, ...(hasShapes && { shapes }), ...pairKeys[pair] }
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
