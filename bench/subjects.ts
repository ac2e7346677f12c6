/** The measured processes: the gateway as its users start it, and its peers, each in a process of its own. */
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { residentMegabytes } from './accounting.ts'
import type { Request } from './load.ts'
import { freePort, type Place, root, startMeasured, stop, untilReady } from './place.ts'

const here = import.meta.dirname
const secret = 'a-secret-of-the-bench-long-enough-for-anyone'
const users = 64
const temporary = mkdtempSync(join(tmpdir(), 'bench-'))
process.once('exit', () => rmSync(temporary, { recursive: true }))

export const titles = {
  gateway: 'Console Gateway',
  plugin: 'bare @fastify/http-proxy',
  express: 'Express stack'
}
export type SubjectName = keyof typeof titles

export interface Subject {
  readonly pid: number
  readonly origin: string
  /** From its start to its first answer of being ready. */
  readonly startMs: number
  /** Resident megabytes before anybody called. */
  readonly restMegabytes: number
  /** One request for each of so many connections, each of a user of its own, signed in where the subject knows sessions. */
  readonly requests: (path: string, connections: number, upload?: number) => Request[]
  /** Of the gateway: takes another config. */
  readonly reload: (version: number) => Promise<void>
  /** Milliseconds of the longest turn of its event loop since the last call. */
  readonly longestTurn: () => Promise<number>
  readonly stop: () => Promise<void>
}

interface Wishes {
  /** The pause before its memory is read, and before anybody signs in. */
  readonly restMs?: number
  /** Another checkout of the gateway, which is built. */
  readonly folder?: string
  /** What stands in the gateway's config from its first reload on. */
  readonly size?: { readonly routes?: number; readonly expectations?: number }
}

/** Headers of a browser's call behind a load balancer that ends TLS. */
const fields = {
  'accept': 'application/json, text/plain, */*',
  'accept-encoding': 'identity',
  'accept-language': 'en-GB,en;q=0.9',
  'sec-fetch-mode': 'cors',
  'sec-fetch-site': 'same-origin',
  'user-agent': 'Mozilla/5.0 (X11; Linux x86_64) Chrome/150.0.0.0 Safari/537.36',
  'x-forwarded-proto': 'https'
}
const ofUpload = (bytes: number) => ({
  'content-type': 'application/octet-stream',
  'content-length': String(bytes)
})
const addressOf = (index: number) => `203.0.113.${(index % 250) + 1}`

export async function startSubject(
  name: SubjectName,
  place: Place,
  { restMs = 0, folder = root, size }: Wishes = {}
): Promise<Subject> {
  const isGateway = name === 'gateway'
  const [port, opsPort] = [await freePort(), await freePort()]
  const config = join(temporary, String(port))
  const turns = join(config, 'turns')
  cpSync(join(here, 'config'), config, { recursive: true })
  const flags = ['--min-semi-space-size=8', '--max-semi-space-size=8']
  // It costs some megabytes, and time at the start.
  if (size !== undefined) flags.push('--import', join(here, 'peers/turns.js'))
  const words = isGateway
    ? [...flags, join(folder, 'dist/launch.js'), 'start', '--config', config]
    : [join(here, 'peers', `${name}.js`), String(port), place.upstream, place.redis]
  const began = performance.now()
  const child = startMeasured(words, {
    ...process.env,
    NODE_ENV: 'production',
    ...(isGateway && {
      MALLOC_ARENA_MAX: '1',
      MALLOC_TRIM_THRESHOLD_: '262144',
      MALLOC_MMAP_THRESHOLD_: '262144'
    }),
    SESSION_SECRET: secret,
    PORT: String(port),
    OPS_PORT: String(opsPort),
    UPSTREAM: place.upstream,
    REDIS: place.redis,
    TURNS_FILE: turns
  })
  const origin = `http://127.0.0.1:${port}`
  const ops = `http://127.0.0.1:${opsPort}`
  await untilReady(isGateway ? `${ops}/readyz` : `${origin}/ready`, child)
  const startMs = performance.now() - began
  await wait(restMs)
  const pid = child.pid as number
  const restMegabytes = residentMegabytes(pid)
  const signInAt = { gateway: '/api/auth/admin/login', express: '/login', plugin: undefined }[name]
  const cookies = await Promise.all(
    Array.from({ length: signInAt === undefined ? 0 : users }, (_, index) =>
      signIn(`${origin}${signInAt}`, index)
    )
  )
  return {
    pid,
    origin,
    startMs,
    restMegabytes,
    requests: (path, connections, bytes = 0) =>
      Array.from({ length: connections }, (_, index) => {
        const cookie = cookies[index % users]
        const ofUser = { 'x-forwarded-for': addressOf(index), ...(cookie && { cookie }) }
        const headers = { ...fields, ...ofUser }
        if (bytes === 0) return { method: 'GET', path, headers, bytes }
        return { method: 'POST', path, headers: { ...headers, ...ofUpload(bytes) }, bytes }
      }),
    reload: async version => {
      writeFileSync(join(config, 'routes.yaml'), routesOf(version, size ?? {}))
      await reload(ops)
    },
    longestTurn: async () => {
      rmSync(turns, { force: true })
      child.kill('SIGWINCH')
      while (!existsSync(turns) || readFileSync(turns, 'utf8') === '') await wait(5)
      return Number(readFileSync(turns, 'utf8'))
    },
    stop: () => stop(child)
  }
}

async function signIn(url: string, index: number): Promise<string> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { ...fields, 'x-forwarded-for': addressOf(index), 'content-type': 'application/json' },
    body: JSON.stringify({ username: `user.${index}`, password: 'a password' })
  })
  // All that a browser would send from then on: without those that were cleared.
  const cookies = response.headers
    .getSetCookie()
    .map(each => each.slice(0, each.indexOf(';')))
    .filter(each => !each.endsWith('='))
  if (response.status !== 200 || cookies.length === 0) {
    throw new Error(`no session from ${url}: ${response.status} ${await response.text()}`)
  }
  return cookies.join('; ')
}

/** The config's routes, one of which is another in each version, and more of them. */
function routesOf(version: number, { routes = 0, expectations = 0 }: NonNullable<Wishes['size']>) {
  const many = (count: number, of: (n: number) => string) =>
    Array.from({ length: count }, (_, n) => `  more-${n}: { ${of(n)} }`)
  const target = 'rewrite: /notices/small, upstream: backend'
  return [
    readFileSync(join(here, 'config/routes.yaml'), 'utf8').trimEnd(),
    `  version: { path: /api/version, ${target}, timeout: ${version}s }`,
    ...many(routes, n => `path: /api/more/${n}, ${target}, shape: notices`),
    'expect:',
    ...many(expectations, n => `request: GET /api/notices/${n}, status: 401, code: session.none`)
  ].join('\n')
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
