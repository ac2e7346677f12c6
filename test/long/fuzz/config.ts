/** The config that is attacked, and what reloads make of it. */
import { configFolder, noLockout, writeConfig } from '../../support/gateway.ts'
import type { Random } from '../../support/random.ts'
import { testUsers } from '../../support/users.ts'

export const users = ['alice', 'bob']

const kinds = ['steady', 'faulty', 'narrow', 'gone', 'fickle'] as const

/** By name in routes.yaml, where each back-end listens. */
export type Places = Readonly<Record<(typeof kinds)[number], string>>

const otherKinds = [
  ...['shaped', 'lifted', 'open/lifted', 'observed', 'strict', 'parts', 'cached', 'lasting'],
  'several'
]
export const webSocketPrefixes = ['/api/socket', '/api/open/socket']

/** The public paths below which something is proxied. */
export const proxiedPrefixes = [
  ...kinds.flatMap(kind => [`/api/${kind}`, `/api/open/${kind}`]),
  ...otherKinds.map(kind => `/api/${kind}`)
]

const all = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']
const timeouts = { connectTimeout: '500ms', responseTimeout: '700ms' }
const webSocket = { maxMessage: '2KiB' }
const contract = {
  type: 'object',
  required: ['rows'],
  properties: { rows: { type: 'array', items: { type: 'object', required: ['id'] } } }
}

function routes(places: Places): Record<string, unknown> {
  const upstream = (url: string | string[], more: object = {}) => ({ url, ...timeouts, ...more })
  const route = (name: string, more: object) => [
    name.replace('/', '-'),
    { path: `/api/${name}/*`, methods: all, upstream: 'faulty', rewrite: '/*', ...more }
  ]
  const open = { access: 'public', passCookies: ['kept'], setCookies: ['given'] }
  return {
    upstreams: {
      steady: upstream(places.steady),
      faulty: upstream(places.faulty, { connections: 16, queue: 8, credential: 'bearer' }),
      narrow: upstream(places.narrow, { connections: 2, queue: 4 }),
      gone: upstream(places.gone, { connections: 4, queue: 8 }),
      fickle: upstream(places.fickle, { connections: 4, queue: 8 }),
      several: upstream([places.fickle, places.steady, places.gone])
    },
    endpoints: {},
    routes: Object.fromEntries([
      ...kinds.flatMap(kind => [
        route(kind, { upstream: kind }),
        route(`open/${kind}`, { upstream: kind, ...open })
      ]),
      route('shaped', { shape: 'rows' }),
      route('lifted', { shape: 'lifted' }),
      route('open/lifted', { access: 'public', shape: 'lifted' }),
      route('observed', { contract: { file: 'contract.json', mode: 'observe' } }),
      route('strict', { shape: 'rows', contract: { file: 'contract.json', mode: 'strict' } }),
      route('cached', { cache: 'browser' }),
      route('lasting', { shape: 'rows', fallback: { body: { data: [] } } }),
      route('several', { upstream: 'several' }),
      route('socket', { methods: ['GET'], websocket: webSocket }),
      route('open/socket', { methods: ['GET'], access: 'public', websocket: webSocket }),
      route('parts', {
        methods: ['GET'],
        parts: {
          first: { upstream: 'faulty', rewrite: '/*', into: 'first', required: false },
          second: { upstream: 'narrow', rewrite: '/second', into: 'second', required: false },
          third: { upstream: 'fickle', rewrite: '/third', into: 'third' }
        }
      })
    ]),
    shapes: {
      rows: [
        { unwrap: 'rows' },
        { each: [{ rename: { id: 'key' } }, { default: { read: false } }] },
        { wrap: 'list' }
      ],
      lifted: [{ lift: 'rows' }, { nest: { as: 'rows', count: 'total' } }]
    }
  }
}

const limits = {
  sizes: { body: '1MiB' },
  inFlightPerUser: 48,
  lockout: noLockout,
  limits: { 'signed-in': { by: 'user', max: 100_000, window: '2s' } }
}

const backEndLogin = {
  kind: 'upstream-login',
  upstream: 'faulty',
  path: '/login',
  body: { login: '{username}', secret: '{password}' },
  outcomes: [
    { is: 'refused', path: 'code', in: [401] },
    { is: 'success', path: 'code', in: [200] }
  ],
  user: { id: 'uid', username: 'name', name: 'name', roles: 'roles' },
  token: 'token'
}

export type AttackedConfig = Awaited<ReturnType<typeof attackedConfig>>

const shortTimeouts = {
  requestTimeout: '2s',
  keepAlive: '1s',
  origins: ['http://console.test']
}

interface Options {
  readonly places: Places
  /** The `redis` section of gateway.yaml. */
  readonly redis: Record<string, unknown>
  /** Its `server` section; short time-outs without it, so that slow clients meet them. */
  readonly server?: Record<string, unknown>
  /** Further keys of its `session` section. */
  readonly session?: Record<string, unknown>
  /** Further files. */
  readonly userFile?: Record<string, unknown>
}

export async function attackedConfig({
  places,
  redis,
  server = shortTimeouts,
  session,
  userFile = { users: testUsers }
}: Options) {
  const base = routes(places)
  const folder = await configFolder({
    gateway: {
      server,
      redis,
      session: { perUser: { max: 20 }, ...session },
      reload: { watch: true },
      console: { root: 'console' },
      login: { sources: { 'users-file': { kind: 'users-file' }, 'faulty': backEndLogin } },
      identity: { prefix: true }
    },
    routes: base,
    limits,
    users: userFile,
    code: {
      'contract.json': JSON.stringify(contract),
      'console/index.html': '<!doctype html><title>console</title>',
      'console/large.bin': Buffer.alloc(3_000_000, 'large')
    }
  })
  const restore = () => {
    writeConfig(folder, 'routes.yaml', base)
    writeConfig(folder, 'limits.yaml', limits)
  }
  return {
    folder,
    restore,
    /** Writes the files as a reload shall find them: changed somehow, or as they were at first. */
    change: (random: Random): string => {
      restore()
      const name = random.pick(Object.keys(changes))
      const changed = changes[name]?.(structuredClone(base) as Tree, random)
      if (changed !== undefined) writeConfig(folder, changed.file, changed.tree)
      return name
    }
  }
}

type Tree = Record<string, any>
type Change = (base: Tree, random: Random) => { readonly file: string; readonly tree: Tree }

const changes: Readonly<Record<string, Change>> = {
  'as at first': base => ({ file: 'routes.yaml', tree: base }),
  'no YAML': () => ({ file: 'routes.yaml', tree: { upstreams: { a: 1 }, routes: [] } }),
  'another pool': (base, random) => {
    const kind = random.pick(['faulty', 'narrow', 'gone', 'fickle'])
    base['upstreams'][kind].connections = random.integer(1, 20)
    return { file: 'routes.yaml', tree: base }
  },
  'a route less': (base, random) => {
    delete base['routes'][random.pick(Object.keys(base['routes']))]
    return { file: 'routes.yaml', tree: base }
  },
  'another shape': base => {
    base['shapes'].rows = [{ pick: ['rows', 'total'] }, { wrap: 'envelope' }]
    return { file: 'routes.yaml', tree: base }
  },
  'low limits': () => ({
    file: 'limits.yaml',
    tree: { ...limits, inFlightPerUser: 4, limits: { all: { by: 'user', max: 20, window: '1s' } } }
  })
}
