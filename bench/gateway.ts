/** The gateway as its users start it, with all that a signed-in request passes or with less of it. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, type Place, startMeasured, untilReady } from './place.ts'
import { root } from './prepare.ts'

/** What a config may leave out, and the gateway then leaves out when it is built. */
export interface Features {
  /** The client's address and scheme are a load balancer's word. */
  readonly trustedProxy: boolean
  /** A line for each request. */
  readonly accessLog: boolean
  /** Through Redis: of users, and of addresses for those who are not signed in. */
  readonly limits: boolean
  /** Routes are behind a sign-in: sessions in Redis, read from the cookie, and a guard. */
  readonly sessions: boolean
  /** The upstream is told who the user is. */
  readonly identity: boolean
  /** The upstream gets the token that it gave at the sign-in. */
  readonly credential: boolean
}

export const allFeatures: Features = {
  trustedProxy: true,
  accessLog: true,
  limits: true,
  sessions: true,
  identity: true,
  credential: true
}

/**
 * A gateway that has run for less takes other processes into account that may share its counters,
 * and asks Redis five times as often.
 */
export const aloneAfterMs = 11_000

const secret = 'a-secret-of-the-bench-long-enough-for-anyone'

export interface GatewayOptions {
  readonly features?: Features
  /** Another checkout, which is built. */
  readonly folder?: string
  readonly nodeOptions?: readonly string[]
}

const folders: string[] = []
process.once('exit', () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

/** A folder for config; gone when the bench ends, however it ends. */
export function temporaryFolder(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `bench-${name}-`))
  folders.push(folder)
  return folder
}

/**
 * As in production: compiled, sessions and counters in Redis, a back-end's sign-in, behind a load
 * balancer, every request logged. Profiled from its sources, so that functions are found in their
 * files.
 */
export async function startGateway(port: number, place: Place, options: GatewayOptions = {}) {
  const { features = allFeatures, nodeOptions = [] } = options
  const opsPort = await freePort()
  const configFolder = temporaryFolder('gateway')
  // JSON is YAML.
  const write = (name: string, content: object) =>
    writeFileSync(join(configFolder, `${name}.yaml`), JSON.stringify(content))
  write('gateway', gatewayConfig({ port, opsPort, place, features }))
  write('limits', limitsConfig(features))
  write('routes', routesConfig(place, features))
  const launched = join(
    options.folder ?? root,
    nodeOptions.length > 0 ? 'src' : 'dist',
    'launch.js'
  )
  const began = performance.now()
  const child = startMeasured(
    process.execPath,
    [
      '--min-semi-space-size=8',
      '--max-semi-space-size=8',
      ...nodeOptions,
      launched,
      'start',
      '--config',
      configFolder
    ],
    {
      env: {
        ...process.env,
        NODE_ENV: 'production',
        MALLOC_ARENA_MAX: '1',
        MALLOC_TRIM_THRESHOLD_: '262144',
        MALLOC_MMAP_THRESHOLD_: '262144',
        SESSION_SECRET: secret
      }
    }
  )
  const ops = `http://127.0.0.1:${opsPort}`
  await untilReady(`${ops}/readyz`, child)
  return {
    child,
    port,
    startMs: performance.now() - began,
    reload: async (version: number) => {
      write('routes', routesConfig(place, features, 30 + version))
      await reload(ops)
    },
    ...(features.sessions && { signInAt: '/api/auth/admin/login' })
  }
}

async function reload(ops: string): Promise<void> {
  const response = await fetch(`${ops}/ops/api/reload`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'authorization': `Bearer ${secret}` },
    body: '{}'
  })
  const { outcome } = (await response.json()) as { outcome?: string }
  if (outcome !== 'reloaded') throw new Error(`the reload was ${response.status} ${outcome}`)
}

interface GatewayConfigOptions {
  readonly port: number
  readonly opsPort: number
  readonly place: Place
  readonly features: Features
}

function gatewayConfig({ port, opsPort, place, features }: GatewayConfigOptions): object {
  return {
    server: {
      listen: `127.0.0.1:${port}`,
      hosts: ['127.0.0.1'],
      ...(features.trustedProxy && { trustedProxies: ['127.0.0.1/32'] })
    },
    ops: { listen: `127.0.0.1:${opsPort}`, secret: '${SESSION_SECRET}' },
    reload: { watch: false },
    drain: { notice: '0ms', grace: '1s' },
    log: { format: 'json', level: features.accessLog ? 'info' : 'warn' },
    // Each subject counts for itself. A machine that is busy with other things must not make errors.
    redis: { url: place.redis, prefix: `${port}:`, commandTimeout: '5s' },
    session: { secrets: ['${SESSION_SECRET}'] },
    login: {
      sources: [
        {
          kind: 'upstream-login',
          upstream: 'backend',
          path: '/login',
          user: {
            id: 'user.id',
            username: 'user.username',
            name: 'user.name',
            roles: 'user.roles'
          },
          ...(features.credential && { token: 'token' })
        }
      ]
    }
  }
}

/**
 * In a second what the default allows in a minute: nobody is refused, and Redis is asked as often
 * as by users who are in the middle of their work.
 */
const busy = { max: 600, window: '1s' }

function limitsConfig({ limits }: Features): object {
  return {
    inFlightPerUser: 1000,
    limits: limits
      ? { 'signed-in': { by: 'user', ...busy }, 'anonymous': { by: 'address', ...busy } }
      : {}
  }
}

function routesConfig(
  { upstream }: Place,
  { sessions, identity, credential }: Features,
  timeoutSeconds = 30
): object {
  const route = (path: string, rewrite: string, more: object) => ({
    path: `${path}/*`,
    rewrite: `${rewrite}/*`,
    upstream: 'backend',
    ...more
  })
  const access = sessions ? {} : { access: 'public' }
  return {
    upstreams: {
      backend: {
        url: upstream,
        ...(credential && { credential: 'bearer' }),
        ...(identity && { identity })
      }
    },
    routes: {
      'raw-notices': route('/api/notices', '/notices', {
        ...access,
        timeout: `${timeoutSeconds}s`
      }),
      'shaped-notices': route('/api/shaped', '/notices', { ...access, shape: 'notices' }),
      'public-notices': route('/api/public/notices', '/notices', { access: 'public' }),
      'public-shaped': route('/api/public/shaped', '/notices', {
        access: 'public',
        shape: 'notices'
      }),
      'files': route('/api/files', '/bytes', {
        ...access,
        methods: ['GET', 'POST'],
        maxBody: '200MiB'
      })
    },
    shapes: { notices: noticesShape }
  }
}

const noticesShape = [
  { open: 'code-data' },
  {
    paging: {
      list: 'list',
      total: 'count',
      each: [
        {
          rename: {
            noticeId: 'id',
            subject: 'title',
            body: 'description',
            createdAt: 'datetime',
            state: 'status',
            kind: 'type'
          }
        },
        { convert: { id: 'string', datetime: 'date-seconds' } },
        { map: { status: { 0: 'unread', 1: 'read', '*': 'unknown' } } },
        { default: { type: 'notification' } },
        { pick: ['id', 'title', 'description', 'datetime', 'status', 'type'] }
      ]
    }
  }
]
