/** The files that `init` writes: YAML with a comment above each key that needs one. */
import { randomBytes } from 'node:crypto'
import { appendFileSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { Document, isMap, isScalar, visit } from 'yaml'
import { schemaTexts } from '../../config/schema/for-editors.ts'
import { cannotWrite } from '../replace-file.ts'
import type { shapeOf } from './detect.ts'

/** A GET call that the console shall have. */
export interface DraftRoute {
  readonly name: string
  /** As the console calls it. */
  readonly publicPath: string
  /** At the back-end. */
  readonly path: string
  readonly upstream?: string
  readonly seen?: ReturnType<typeof shapeOf>
}

/** What the operator told, and what was found out, as parts of the config. */
export interface Draft {
  url: string
  readonly headers: Readonly<Record<string, string>>
  /** The folder of the console's built files, as seen from the config folder. */
  readonly root: string | undefined
  readonly consolePreset: string | undefined
  backendPreset?: string | undefined
  /** A users file's, in place of the back-end's sign-in. */
  users?: object
  /** Members of the source that is the back-end's sign-in, and of its upstream. */
  readonly source: Record<string, unknown>
  readonly upstream: Record<string, unknown>
  readonly routes: DraftRoute[]
  /** What was guessed or not found: a comment above a key, and a line at the end. */
  readonly notes: Array<readonly [place: string, text: string]>
  /** Texts that may stand in no file. */
  readonly secrets: string[]
}

export const sourcePlace = 'gateway.login.sources.backend'
export const upstreamPlace = 'routes.upstreams.backend'

const comments: Draft['notes'] = [
  ['gateway.redis', 'Without Redis, sessions are kept in memory: for one process.'],
  ['gateway.session.secrets', 'Of the file .env, unless the environment has another.'],
  ['gateway.session.cookie', 'For http on this machine. In production remove this.'],
  ['routes.paging', 'The names of page and size that the console sends.']
]

/** The sizes, and the lockout of sign-ins, are what they are without a word. */
const limits = {
  limits: {
    'signed-in': { by: 'user', max: 600, window: '1m' },
    'anonymous': { by: 'address', max: 120, window: '1m' }
  }
}

/** Content by name, relative to the folder. */
export function filesOf(draft: Draft): Map<string, string> {
  const { users } = draft
  const documents = { gateway: gatewayOf(draft), routes: routesOf(draft), limits }
  const notes = [...comments, ...draft.notes]
  const configs = Object.entries({ ...documents, ...(users && { users }) })
  return new Map([
    ...configs.map(([name, value]) => [`${name}.yaml`, fileText(name, value, notes)] as const),
    ['.env', `SESSION_SECRET=${randomBytes(32).toString('base64url')}\n`],
    ['.gitignore', '# Secrets stay on this machine.\n.env\n'],
    ...schemaTexts().map(([name, text]) => [`schema/${name}.schema.json`, text] as const)
  ])
}

function gatewayOf({ source, root, users, consolePreset, backendPreset }: Draft): object {
  const backend = { kind: 'upstream-login', upstream: 'backend', ...source }
  // `null` removes the preset's.
  const ofFile = { 'users-file': { kind: 'users-file' }, ...(backendPreset && { backend: null }) }
  return {
    extends: consolePreset,
    backend: backendPreset,
    server: { listen: '${LISTEN:-127.0.0.1:8080}' },
    ops: { listen: '${OPS_LISTEN:-127.0.0.1:9090}' },
    redis: { url: '${REDIS_URL:-}' },
    session: { secrets: ['${SESSION_SECRET}'], cookie: { secure: false } },
    login: { sources: users ? ofFile : { backend } },
    console: root && { root }
  }
}

function filled<T extends object>(mapping: T): T | undefined {
  return Object.keys(mapping).length === 0 ? undefined : mapping
}

function routesOf({ url, headers, upstream, routes, ...presets }: Draft): object {
  const { consolePreset, backendPreset } = presets
  const shapes: Record<string, unknown> = {}
  const paging = { page: 'current', size: 'pageSize', defaultSize: 20 }
  return {
    upstreams: {
      backend: { url: `\${BACKEND_URL:-${url}}`, headers: filled(headers), ...upstream }
    },
    paging: consolePreset === undefined && backendPreset !== undefined ? paging : undefined,
    routes: Object.fromEntries(routes.map(route => [route.name, routeOf(route, shapes, presets)])),
    shapes: filled(shapes)
  }
}

/**
 * A route of the config. Presets of both sides have a shape for each kind of value.
 * @param shapes gets that of the route, unless it has the same already
 */
export function routeOf(
  { name, publicPath, path, upstream = 'backend', seen }: DraftRoute,
  shapes: Record<string, unknown>,
  { consolePreset, backendPreset }: Pick<Draft, 'consolePreset' | 'backendPreset'>
): object {
  const isList = seen?.isList !== false
  const steps = backendPreset === undefined ? seen?.steps : [{ use: isList ? 'rows' : 'item' }]
  const own = isList ? { paging: { list: 'rows', total: 'total' } } : { wrap: 'envelope' }
  const last = consolePreset === undefined ? own : { use: isList ? 'page' : 'detail' }
  let shape: string | undefined = isList ? 'list' : 'record'
  if (backendPreset === undefined || consolePreset === undefined) {
    const all = steps && [...steps, last]
    const same = Object.keys(shapes).find(each => isDeepStrictEqual(shapes[each], all))
    shape = all && (same ?? name)
    if (shape !== undefined) shapes[shape] = all
  }
  const rewrite = path === publicPath ? undefined : path
  return { path: publicPath, upstream, rewrite, shape }
}

function fileText(name: string, value: object, notes: Draft['notes']): string {
  const document = new Document(value)
  visit(document, {
    Collection: (_key, node, path) => {
      node.flow = path.length > 5 && JSON.stringify(node).length < 80
    },
    Pair: (_key, { key }, path) => {
      if (path.length === 2 && isScalar(key)) key.spaceBefore = true
    }
  })
  for (const [place, text] of notes) {
    const [file, ...keys] = place.split('.')
    if (file === name) comment(document, keys, text)
  }
  const schema = `# yaml-language-server: $schema=schema/${name}.schema.json`
  return `${schema}\n# All keys: docs/configuration.md\n${document.toString({ lineWidth: 0 })}`
}

/** Above the key, or the nearest outer one that is there. */
function comment(document: Document, keys: readonly string[], text: string): void {
  const holder = document.getIn(keys.slice(0, -1), true)
  const items = isMap(holder) && holder.flow !== true ? holder.items : []
  const key = items.map(each => each.key).find(each => String(each) === keys.at(-1))
  if (isScalar(key)) {
    key.commentBefore = [key.commentBefore ?? [], ` ${text}`].flat().join('\n')
  } else if (keys.length > 1) comment(document, keys.slice(0, -1), text)
}

/** Files and folders that stand where `init` writes. */
export function namesInTheWay(folder: string): string[] {
  const names = ['gateway.yaml', 'routes.yaml', 'limits.yaml', 'users.yaml', '.env', 'schema']
  return names.filter(name => existsSync(join(folder, name)))
}

/**
 * None of them replaces another, but a `.gitignore` gets lines.
 * @throws CommandError when one cannot be written; those before it are removed then
 */
export function writeFiles(folder: string, files: ReadonlyMap<string, string>): void {
  const written: string[] = []
  for (const [name, content] of files) {
    const file = join(folder, name)
    try {
      mkdirSync(dirname(file), { recursive: true })
      if (name === '.gitignore' && existsSync(file)) {
        appendFileSync(file, `\n${content}`)
        continue
      }
      writeFileSync(file, content, { flag: 'wx', mode: name === '.env' ? 0o600 : 0o644 })
      written.push(file)
    } catch (error) {
      for (const each of written) rmSync(each)
      throw cannotWrite(file, error)
    }
  }
}
