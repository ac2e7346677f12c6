/** The gateway as its users start it, with all that a signed-in request passes. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, type Place, startMeasured, untilReady } from './place.ts'
import { root } from './prepare.ts'

/**
 * A gateway that has run for less takes other processes into account that may share its counters,
 * and asks Redis five times as often.
 */
export const aloneAfterMs = 11_000

const secret = 'a-secret-of-the-bench-long-enough-for-anyone'

export interface GatewayOptions {
  /** Another checkout, which is built. */
  readonly folder?: string
  /** What stands in its config beside what is measured. */
  readonly size?: { readonly routes?: number; readonly expectations?: number }
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
 * balancer, every request logged.
 */
export async function startGateway(
  port: number,
  place: Place,
  { folder = root, size, turns }: GatewayOptions & { readonly turns: string }
) {
  const opsPort = await freePort()
  const configFolder = temporaryFolder('gateway')
  // JSON is YAML.
  const write = (name: string, content: object) =>
    writeFileSync(join(configFolder, `${name}.yaml`), JSON.stringify(content))
  write('gateway', gatewayConfig(port, opsPort, place))
  write('limits', limitsConfig)
  write('routes', routesConfig(place, size ?? {}))
  const began = performance.now()
  const child = startMeasured(
    process.execPath,
    [
      '--min-semi-space-size=8',
      '--max-semi-space-size=8',
      // It costs some megabytes, and time at the start.
      ...(size === undefined ? [] : ['--import', join(import.meta.dirname, 'peers/turns.js')]),
      join(folder, 'dist/launch.js'),
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
        SESSION_SECRET: secret,
        TURNS_FILE: turns
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
      write('routes', routesConfig(place, size ?? {}, 30 + version))
      await reload(ops)
    },
    signInAt: '/api/auth/admin/login'
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

function gatewayConfig(port: number, opsPort: number, place: Place): object {
  return {
    server: {
      listen: `127.0.0.1:${port}`,
      hosts: ['127.0.0.1'],
      trustedProxies: ['127.0.0.1/32']
    },
    ops: { listen: `127.0.0.1:${opsPort}`, secret: '${SESSION_SECRET}' },
    reload: { watch: false },
    drain: { notice: '0ms', grace: '1s' },
    log: { format: 'json', level: 'info' },
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
          token: 'token'
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

const limitsConfig = {
  inFlightPerUser: 1000,
  limits: { 'signed-in': { by: 'user', ...busy }, 'anonymous': { by: 'address', ...busy } }
}

function routesConfig(
  { upstream }: Place,
  { routes = 0, expectations = 0 }: NonNullable<GatewayOptions['size']>,
  timeoutSeconds = 30
): object {
  const route = (path: string, rewrite: string, more: object) => ({
    path: `${path}/*`,
    rewrite: `${rewrite}/*`,
    upstream: 'backend',
    ...more
  })
  const numbered = (count: number, entry: (n: number) => object) =>
    Object.fromEntries(Array.from({ length: count }, (_, n) => [`more-${n}`, entry(n)]))
  return {
    upstreams: {
      backend: {
        url: upstream,
        credential: 'bearer',
        identity: true
      }
    },
    routes: {
      'raw-notices': route('/api/notices', '/notices', {
        timeout: `${timeoutSeconds}s`
      }),
      'shaped-notices': route('/api/shaped', '/notices', { shape: 'notices' }),
      'public-notices': route('/api/public/notices', '/notices', { access: 'public' }),
      'files': route('/api/files', '/bytes', {}),
      ...numbered(routes, n => route(`/api/more/${n}`, '/notices', { shape: 'notices' }))
    },
    expect: numbered(expectations, n => ({
      request: `GET /api/notices/${n}`,
      status: 401,
      code: 'session.none'
    })),
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
