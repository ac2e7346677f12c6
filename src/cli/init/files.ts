import { randomBytes } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { Document, type Scalar, visit, type YAMLMap } from 'yaml'
import type { GatewayConfig } from '../../config/schema/gateway.ts'
import { cannotWrite } from '../replace-file.ts'
import type { shapeOf } from './detect.ts'

export interface DraftRoute {
  readonly name: string
  readonly publicPath: string
  path: string
  readonly upstream?: string
  seen?: ReturnType<typeof shapeOf>
}

/** What the operator told, and what was found out, as parts of the config. */
export interface Draft {
  url: string
  readonly headers: Readonly<Record<string, string>>
  /** The folder of the console's built files, as seen from the config folder. */
  readonly root: string | undefined
  readonly presets: { extends?: string; backend?: string }
  /** In the place of the back-end's sign-in; `secret` is a variable of `.env`. */
  other?: { readonly name: string; readonly source: object; readonly secret?: string }
  users?: object
  readonly source: Record<string, unknown>
  readonly upstream: Record<string, unknown>
  readonly routes: DraftRoute[]
  /** Comments for sections of the files, which are printed, too. */
  readonly notes: Readonly<Record<'login' | 'upstreams' | 'routes', string[]>>
  /** Texts that may stand in no file. */
  readonly secrets: string[]
}

const comments = {
  redis: ['Without Redis, sessions are kept in memory: for one process.'],
  session: [
    '`secrets`: of the file .env, unless the environment has another.',
    '`cookie`: for http on this machine. In production remove this.'
  ]
}

const limits = {
  'signed-in': { by: 'user', max: 600, window: '1m' },
  'anonymous': { by: 'address', max: 120, window: '1m' }
}

export type Files = Readonly<Record<string, string>>

export function filesOf(draft: Draft): Files {
  const { users, other } = draft
  const todo = other?.secret === undefined ? '' : `${other.secret}=TODO\n`
  const notes = { ...comments, ...draft.notes }
  return {
    'gateway.yaml': fileText(gatewayOf(draft), notes),
    'routes.yaml': fileText(routesOf(draft), notes),
    'limits.yaml': fileText({ limits }),
    ...(users && { 'users.yaml': fileText({ users }) }),
    '.env': `SESSION_SECRET=${randomBytes(32).toString('base64url')}\n${todo}`,
    '.gitignore': '\n# Secrets stay on this machine.\n.env\n'
  }
}

function gatewayOf({ source, root, other, presets }: Draft): object {
  const own = { kind: 'upstream-login', upstream: 'backend', ...source }
  // `null` removes the preset's.
  const backend = presets.backend && null
  const sources = other ? { [other.name]: other.source, backend } : { backend: own }
  return {
    ...presets,
    server: { listen: '${LISTEN:-127.0.0.1:8080}' },
    ops: { listen: '${OPS_LISTEN:-127.0.0.1:9090}' },
    redis: { url: '${REDIS_URL:-}' },
    session: { secrets: ['${SESSION_SECRET}'], cookie: { secure: false } },
    login: { sources },
    console: root && { root, signIn: other?.name === 'sso' ? 'sso' : undefined }
  }
}

function routesOf({ url, headers, upstream, routes, presets, other }: Draft): object {
  const shapes: Record<string, unknown> = {}
  const hasPaging = presets.extends === undefined && presets.backend !== undefined
  // A preset's is that of the sign-in that it describes.
  const credential = presets.backend && other ? 'none' : undefined
  return {
    upstreams: {
      backend: { url: `\${BACKEND_URL:-${url}}`, headers: filled(headers), credential, ...upstream }
    },
    paging: hasPaging ? { page: 'current', size: 'pageSize', defaultSize: 20 } : undefined,
    routes: Object.fromEntries(routes.map(route => [route.name, routeOf(route, shapes, presets)])),
    shapes: filled(shapes)
  }
}

export function filled<T extends object>(mapping: T): T | undefined {
  return Object.keys(mapping).length === 0 ? undefined : mapping
}

/** @param shapes gets that of the route, unless it has the same already */
export function routeOf(
  { name, publicPath, path, upstream = 'backend', seen }: DraftRoute,
  shapes: Record<string, unknown>,
  presets: Pick<GatewayConfig, 'extends' | 'backend'>
): object {
  const isList = seen?.isList !== false
  const rewrite = path === publicPath ? undefined : path
  const route = { path: publicPath, upstream, rewrite }
  // Presets of both sides have a shape for each kind of value.
  const isPreset = presets.backend !== undefined && presets.extends !== undefined
  if (isPreset) return { ...route, shape: isList ? 'list' : 'record' }
  const first = presets.backend === undefined ? seen?.steps : [{ use: isList ? 'rows' : 'item' }]
  if (first === undefined) return route
  const own = isList ? { paging: { list: 'rows', total: 'total' } } : { wrap: 'envelope' }
  const last = presets.extends === undefined ? own : { use: isList ? 'page' : 'detail' }
  const steps = [...first, last]
  const shape = Object.keys(shapes).find(each => isDeepStrictEqual(shapes[each], steps)) ?? name
  shapes[shape] = steps
  return { ...route, shape }
}

function fileText(sections: object, notes: Readonly<Record<string, string[]>> = {}): string {
  const document = new Document<YAMLMap<Scalar<string>>>(sections as never)
  for (const { key } of document.contents?.items ?? []) {
    const own = notes[key.value] ?? []
    key.commentBefore = own.map(text => ` ${text}`).join('\n')
    key.spaceBefore = true
  }
  visit(document, {
    Collection: (_key, node, path) => {
      node.flow = path.length > 5 && JSON.stringify(node).length < 80
    }
  })
  return `# All keys: docs/configuration.md\n${document.toString({ lineWidth: 0 })}`
}

export function writeFiles(folder: string, files: Files): void {
  for (const [name, content] of Object.entries(files)) {
    const file = join(folder, name)
    // A `.gitignore` that is there gets lines.
    const flag = name === '.gitignore' ? 'a' : 'wx'
    try {
      mkdirSync(folder, { recursive: true })
      writeFileSync(file, content, { flag, mode: name === '.env' ? 0o600 : 0o644 })
    } catch (error) {
      throw cannotWrite(file, error)
    }
  }
}
