/** The measured processes: the gateway as its users start it, and its peers, each in a process of its own. */
import type { ChildProcess } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { residentMegabytes } from './accounting.ts'
import { type GatewayOptions, startGateway, temporaryFolder } from './gateway.ts'
import type { Request } from './load.ts'
import { freePort, has, type Place, startMeasured, stop, untilReady } from './place.ts'

const names = [
  'gateway',
  'plugin',
  'sum',
  'express',
  'by-hand',
  'nginx',
  'haproxy',
  'direct'
] as const
export type SubjectName = (typeof names)[number]

export const titles: Readonly<Record<SubjectName, string>> = {
  'gateway': 'Console Gateway',
  'plugin': 'bare @fastify/http-proxy',
  'sum': 'sum of Fastify plugins',
  'express': 'Express stack',
  'by-hand': 'handler by hand',
  'nginx': 'nginx, proxy only',
  'haproxy': 'HAProxy, proxy only',
  'direct': 'upstream, direct'
}

export interface Subject {
  readonly name: SubjectName
  readonly pid: number
  readonly origin: string
  /** From its start to its first answer of being ready. */
  readonly startMs: number
  /** Resident megabytes before anybody called. */
  readonly restMegabytes: number
  /** One request for each of so many connections, each of a user of its own, signed in where the subject knows sessions. */
  readonly requests: (path: string, connections: number, rest?: Partial<Request>) => Request[]
  /** Of the gateway: takes another config. */
  readonly reload?: (version: number) => Promise<void>
  readonly stop: () => Promise<void>
}

/** Headers of a browser's call behind a load balancer that ends TLS. */
const fields = {
  'accept': 'application/json, text/plain, */*',
  'accept-encoding': 'identity',
  'accept-language': 'en-GB,en;q=0.9',
  'referer': 'https://console.example.com/orders/list',
  'sec-fetch-dest': 'empty',
  'sec-fetch-mode': 'cors',
  'sec-fetch-site': 'same-origin',
  'user-agent':
    'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/150.0.0.0 Safari/537.36',
  'x-forwarded-proto': 'https'
}

const users = 64
const addressOf = (index: number) => `203.0.113.${(index % 250) + 1}`

interface Started {
  readonly child: ChildProcess
  readonly port: number
  readonly startMs: number
  readonly signInAt?: string
  readonly reload?: Subject['reload']
}

export const isGateway = (name: SubjectName) => name === 'gateway'

export const isThere = (name: SubjectName) => (name !== 'nginx' && name !== 'haproxy') || has(name)

interface Wishes {
  /** The pause before its memory is read, and before anybody signs in. */
  readonly restMs?: number
  /** A folder for the profile that Node writes when it ends. */
  readonly profileTo?: string
  /** Of the gateway: another checkout, or less than all that it does. */
  readonly gateway?: Pick<GatewayOptions, 'features' | 'folder'>
}

export async function startSubject(
  name: SubjectName,
  place: Place,
  { restMs = 0, profileTo, gateway = {} }: Wishes = {}
): Promise<Subject> {
  if (name === 'direct') {
    return {
      name,
      pid: process.pid,
      origin: place.upstream,
      startMs: 0,
      restMegabytes: 0,
      requests: (path, connections, rest) =>
        withFields(connections, () => ({
          method: 'GET',
          path: path
            .replace(/^\/api(\/public)?\/(notices|shaped)/, '/notices')
            .replace('/api/files', '/bytes'),
          headers: {},
          ...rest
        })),
      stop: async () => {}
    }
  }
  const { child, port, startMs, signInAt, reload } = await start(name, place, {
    ...gateway,
    nodeOptions: profileTo === undefined ? [] : ['--cpu-prof', '--cpu-prof-dir', profileTo]
  })
  const origin = `http://127.0.0.1:${port}`
  await wait(restMs)
  const restMegabytes = residentMegabytes(child.pid as number)
  const cookies =
    signInAt === undefined
      ? []
      : await Promise.all(
          Array.from({ length: users }, (_, index) => signIn(`${origin}${signInAt}`, index))
        )
  return {
    name,
    pid: child.pid as number,
    origin,
    startMs,
    restMegabytes,
    requests: (path, connections, rest) =>
      withFields(connections, index => {
        const cookie = cookies[index % users]
        return {
          method: 'GET',
          path,
          ...rest,
          headers: { ...(cookie !== undefined && { cookie }), ...rest?.headers }
        }
      }),
    ...(reload && { reload }),
    stop: async () => {
      await stop(child)
    }
  }
}

const withFields = (connections: number, requestOf: (index: number) => Request): Request[] =>
  Array.from({ length: connections }, (_, index) => {
    const request = requestOf(index)
    return {
      ...request,
      headers: { ...fields, 'x-forwarded-for': addressOf(index), ...request.headers }
    }
  })

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

async function start(
  name: Exclude<SubjectName, 'direct'>,
  place: Place,
  options: GatewayOptions
): Promise<Started> {
  const port = await freePort()
  if (name === 'gateway') return await startGateway(port, place, options)
  if (name === 'nginx' || name === 'haproxy') return await startNative(name, port, place)
  const began = performance.now()
  const child = startMeasured(
    process.execPath,
    [
      ...(options.nodeOptions ?? []),
      join(import.meta.dirname, 'peers', `${name}.js`),
      String(port),
      place.upstream,
      place.redis
    ],
    {
      env: {
        ...process.env,
        NODE_ENV: 'production'
      }
    }
  )
  await untilReady(`http://127.0.0.1:${port}/ready`, child)
  return {
    child,
    port,
    startMs: performance.now() - began,
    ...((name === 'sum' || name === 'express') && { signInAt: '/login' })
  }
}

/** One worker, kept connections, no access log: what a proxy costs that does nothing else. */
async function startNative(
  name: 'nginx' | 'haproxy',
  port: number,
  place: Place
): Promise<Started> {
  const folder = temporaryFolder(name)
  const upstream = new URL(place.upstream).host
  const file = join(folder, 'conf')
  writeFileSync(
    file,
    name === 'nginx'
      ? `daemon off; master_process off; pid ${folder}/pid; error_log stderr crit;
events { worker_connections 1024; }
http {
  access_log off; client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy; fastcgi_temp_path ${folder}/f; uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
  keepalive_requests 100000000;
  upstream backend { server ${upstream}; keepalive 128; keepalive_requests 100000000; }
  server {
    listen 127.0.0.1:${port};
    location = /ready { return 200 ready; }
    location ~ ^/api/(?:public/)?notices/(.*)$ { proxy_pass http://backend/notices/$1; proxy_http_version 1.1; proxy_set_header Connection ""; }
  }
}
`
      : `global
  nbthread 1
defaults
  mode http
  timeout client 60s
  timeout server 60s
  timeout connect 2s
frontend public
  bind 127.0.0.1:${port}
  http-request return status 200 content-type text/plain string ready if { path /ready }
  http-request replace-path /api/(public/)?notices/(.*) /notices/\\2
  default_backend backend
backend backend
  http-reuse always
  server upstream ${upstream}
`
  )
  const began = performance.now()
  const child = startMeasured(
    name,
    name === 'nginx' ? ['-c', file, '-p', folder, '-e', 'stderr'] : ['-f', file, '-db']
  )
  await untilReady(`http://127.0.0.1:${port}/ready`, child)
  return { child, port, startMs: performance.now() - began }
}
