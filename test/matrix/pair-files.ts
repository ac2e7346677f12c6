/** The folder of a pair, as its operator would write it: two presets, and the operator's own lines. */
import { stringify } from 'yaml'
import type { BackendFamily } from './backend.ts'
import type { Driver } from './driver.ts'

export interface PairFiles {
  readonly gateway: string
  readonly routes: string
}

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

/** This console lets nobody in who has no role, and this back-end tells none. */
const oneRole = 'endpoints: { profile: { answer: { json: { roles: [user] } } } }'

/** Further lines of routes.yaml that only a pair needs. */
const pairLines: Readonly<Record<string, string>> = {
  'vue-element-admin × jeecg': oneRole
}

export function pairFiles({ name, calls }: Driver, family: BackendFamily): PairFiles {
  const { list, save } = family
  const pair = `${name} × ${family.name}`
  const query = {
    ...(list.search !== 'title' && { rename: { title: list.search } }),
    ...(listQueries[pair] ?? listQueries[family.name])
  }
  const renames = renamesOf(list.fields)
  const routes = [
    'permissions: { admin: ["*:*:*"] }',
    'routes:',
    `  list: ${flow({
      path: calls.list,
      methods: ['GET'],
      upstream: 'backend',
      rewrite: list.path,
      ...(Object.keys(query).length > 0 && { query }),
      shape: renames === undefined ? 'list' : 'notices'
    })}`,
    `  save: ${flow({
      path: calls.save,
      methods: ['POST'],
      upstream: 'backend',
      rewrite: save.path,
      ...(save.operations.length > 0 && { body: { shape: 'to-notice' } }),
      shape: 'record'
    })}`
  ]
  const shapes = [
    ...(renames === undefined ? [] : [`  notices: ${flow(renames)}`]),
    ...(save.operations.length === 0 ? [] : [`  to-notice: ${flow(save.operations)}`])
  ]
  const lines = [...routes, ...(shapes.length === 0 ? [] : ['shapes:', ...shapes])]
  return {
    gateway: text([`extends: ${name}`, `backend: ${family.name}`, ...installation.gateway]),
    routes: text([...installation.routes, ...lines, pairLines[pair] ?? ''])
  }
}

/** Lines without comments, hosts and secrets. */
export function countLines({ gateway, routes }: PairFiles): number {
  const fixed = new Set([...installation.gateway, ...installation.routes])
  const isCounted = (line: string) => !/^\s*(?:#|$)/.test(line) && !fixed.has(line)
  return `${gateway}\n${routes}`.split('\n').filter(isCounted).length
}

function text(lines: readonly string[]): string {
  return `${lines.filter(line => line !== '').join('\n')}\n`
}

/** On one line. */
function flow(value: unknown): string {
  return stringify(value, { collectionStyle: 'flow', lineWidth: 0 }).trim()
}

/** The shape between the back-end's list and the console's, where members have other names. */
function renamesOf({ id, title }: BackendFamily['list']['fields']): readonly unknown[] | undefined {
  const renames = Object.entries({ [id]: 'id', [title]: 'title' }).filter(
    ([from, to]) => from !== to && !from.includes('.')
  )
  if (renames.length === 0) return undefined
  const each = [{ rename: Object.fromEntries(renames) }]
  return [{ use: 'rows' }, { at: { path: 'rows', operations: [{ each }] } }, { use: 'page' }]
}
