/**
 * A gateway of its own for a test: config from objects, real sockets, its log kept. Most need no more
 * than `testGateway(t.after, { backend: backend.url, routes: { routes: { orders: {} } } })`.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { stringify } from 'yaml'
import { createGateway } from '../../src/index.ts'
import { merged } from './config-files.ts'
import { askOps, opsJson, type OpsOptions, testSecret } from './ops.ts'
import { password, signInAtBackend } from './sign-in.ts'
import { testUsers } from './users.ts'
import { temporaryFolder } from './temporary.ts'
import { until } from './until.ts'

type Tree = Record<string, unknown>

export interface Files {
  readonly gateway?: Tree
  /** Its Redis, by its URL or as config has it. Replicas share one, and the secret of sessions. */
  readonly redis?: string | Tree | undefined
  /**
   * The upstream `b`, by its URL or as config has it. With it a route without `path` is at
   * `/api/NAME`, and one without `upstream`, `answer` and `parts` goes there.
   */
  readonly backend?: string | Tree
  /** Users sign in at the upstream `b`: what the source has beside its path and the user's id. */
  readonly source?: Tree
  readonly routes?: Tree
  readonly limits?: Tree
  readonly users?: Tree
  /** Own code and other files, by their names. */
  readonly code?: Readonly<Record<string, string | Uint8Array>>
}

export { password }

/** `session.secrets` of every config folder that tests write. */
export const sessionSecret = 'the secret of sessions in every test'

/** With a key that stands in every config folder. */
export const audit = { key: 'file:session-secret' }

/** Guessing may go on. */
export const noLockout = { accountAndAddress: 'off', address: 'off', account: 'off' }

const byUrl = (given: string | Tree | undefined) =>
  typeof given === 'string' ? { url: given } : given

function gatewayTree({ gateway = {}, redis, source }: Files): Tree {
  const base = {
    server: { listen: '127.0.0.1:0' },
    ops: { listen: '127.0.0.1:0', secret: 'file:ops-secret' },
    drain: { notice: '0ms', grace: '2s' },
    reload: { watch: false },
    session: {
      cookie: { secure: false },
      perUser: { max: 1000 },
      secrets: ['file:session-secret']
    },
    ...(redis !== undefined && { redis: byUrl(redis) })
  }
  // Sources that are in `gateway` come first.
  return merged(merged(base, gateway), source ? { login: signInAtBackend(source) } : {}) as Tree
}

function routesTree({ routes = {}, backend }: Files): Tree {
  if (backend === undefined) return routes
  const complete = ([name, route]: [string, Tree]): [string, Tree] => {
    const isAnswered = ['upstream', 'answer', 'parts'].some(key => key in route)
    return [name, { path: `/api/${name}`, ...(!isAnswered && { upstream: 'b' }), ...route }]
  }
  const named = Object.entries((routes['routes'] ?? {}) as Record<string, Tree>).map(complete)
  const upstreams = { b: byUrl(backend), ...(routes['upstreams'] as Tree | undefined) }
  return { ...routes, upstreams, routes: Object.fromEntries(named) }
}

type Content = Tree | string | Uint8Array

/** Writes a file of a config folder. */
export function writeConfig(folder: string, name: string, content: Content): void {
  const isText = typeof content === 'string' || content instanceof Uint8Array
  writeFileSync(join(folder, name), isText ? content : stringify(content))
}

/** A config folder: `alice` (roles admin, user) and `bob` (role user), free ports, generous limits and no lockout, unless `files` says otherwise. */
export async function configFolder(files: Files = {}): Promise<string> {
  const folder = temporaryFolder()
  const write = (name: string, content: Content) => writeConfig(folder, name, content)
  write('gateway.yaml', gatewayTree(files))
  write('ops-secret', testSecret)
  write('session-secret', sessionSecret)
  write('routes.yaml', routesTree(files))
  write('limits.yaml', {
    lockout: noLockout,
    ...(files.limits ?? { limits: { 'signed-in': { by: 'user', max: 100_000, window: '1m' } } })
  })
  write('users.yaml', files.users ?? { users: testUsers })
  for (const [name, text] of Object.entries(files.code ?? {})) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    write(name, text)
  }
  return folder
}

export type TestGateway = Awaited<ReturnType<typeof testGateway>>

export interface CallOptions {
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly cookie?: string
  readonly json?: unknown
  readonly body?: string | Uint8Array
}

export type Called = Awaited<ReturnType<typeof callGateway>>

/** What a console and operators ask of a gateway, wherever it runs. */
export function clientOf({ url, opsUrl }: { readonly url: string; readonly opsUrl: string }) {
  const call = (path: string, options: CallOptions = {}) => callGateway(url + path, options)
  const ops = (path: string, options: OpsOptions = {}) => askOps(opsUrl, path, options)
  /** A try at the sign-in of the console. */
  const attempt = (username: string, extra: Tree = {}) =>
    call('/api/auth/admin/login', { json: { username, password, ...extra } })
  return {
    /** A call without redirects; JSON bodies are written and read. */
    call,
    status: async (path: string, options: CallOptions = {}) => (await call(path, options)).status,
    /** A call to the operators' listener, with its secret. */
    ops,
    /** What `/ops/api/PATH` answers; `json` is sent by POST. */
    opsJson: (path: string, json?: unknown) => opsJson(opsUrl, path, json),
    metrics: async () => await (await ops('/metrics')).text(),
    ready: async () =>
      await until('the gateway is ready', async () => (await ops('/readyz')).status === 200),
    attempt,
    /** Signs in and gives the `Cookie` field's value. */
    signIn: async (username = 'alice', extra: Tree = {}): Promise<string> => {
      const answer = await attempt(username, extra)
      if (answer.status !== 200) throw new Error(`sign-in: ${answer.status} ${answer.text}`)
      return cookieOf(answer)
    }
  }
}

/**
 * @param cleanUp registers what has to be undone: tap's `t.after`, or `t.teardown` at the top of a
 * file, which then ends with its last test
 */
export async function testGateway(
  cleanUp: (undo: () => unknown) => void,
  files: Files | string = {},
  environment: Record<string, string> = {}
) {
  const folder = typeof files === 'string' ? files : await configFolder(files)
  const log: Tree[] = []
  const waiting = new Set<() => void>()
  const gateway = await createGateway({
    config: folder,
    env: environment,
    log: line => {
      log.push(line)
      for (const look of waiting) look()
    }
  })
  cleanUp(() => gateway.stop({ noticeMs: 0 }))
  return {
    ...gateway,
    ...clientOf(gateway),
    /** Every log line so far. */
    log,
    /** The first line that fits, from the `from`th on; waits for it. */
    logged: (fits: (line: Tree) => boolean, from = 0) =>
      new Promise<Tree>(resolve => {
        const look = () => {
          const found = log.slice(from).find(fits)
          if (found === undefined) return void waiting.add(look)
          waiting.delete(look)
          resolve(found)
        }
        look()
      }),
    folder
  }
}

async function callGateway(url: string, options: CallOptions) {
  const { headers = {}, cookie, json } = options
  const { body = json === undefined ? undefined : JSON.stringify(json) } = options
  const answer = await fetch(url, {
    method: options.method ?? (json === undefined ? 'GET' : 'POST'),
    redirect: 'manual',
    headers: {
      ...(cookie !== undefined && { cookie }),
      ...(json !== undefined && { 'content-type': 'application/json' }),
      ...headers
    },
    ...(body !== undefined && { body: body as string })
  })
  const text = await answer.text()
  // What a console would read; tests name the members they expect.
  let parsed: any
  try {
    parsed = JSON.parse(text)
  } catch {}
  return { status: answer.status, headers: answer.headers, text, json: parsed }
}

/** The `name=value` of the session cookie that an answer sets. */
export function cookieOf(answer: Called, name = 'console_sid'): string {
  const found = answer.headers
    .getSetCookie()
    .filter(cookie => cookie.startsWith(`${name}=`) || cookie.startsWith(`__Host-${name}=`))
  if (found.length !== 1) throw new Error(`expected one ${name} cookie, found ${found.length}`)
  return found[0]?.split(';', 1)[0] ?? ''
}
