/** The measured processes: the gateway as its users start it, and its peers, each in a process of its own. */
import type { ChildProcess } from 'node:child_process'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { residentMegabytes } from './accounting.ts'
import { type GatewayOptions, startGateway, temporaryFolder } from './gateway.ts'
import type { Request } from './load.ts'
import { freePort, type Place, startMeasured, stop, untilReady } from './place.ts'

export type SubjectName = 'gateway' | 'plugin' | 'express'

export const titles: Readonly<Record<SubjectName, string>> = {
  gateway: 'Console Gateway',
  plugin: 'bare @fastify/http-proxy',
  express: 'Express stack'
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
  readonly requests: (path: string, connections: number) => Request[]
  /** Of the gateway: takes another config. */
  readonly reload: (version: number) => Promise<void>
  /** Milliseconds of the longest turn of its event loop since the last call. */
  readonly longestTurn: () => Promise<number>
  readonly stop: () => Promise<void>
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

const users = 64
const addressOf = (index: number) => `203.0.113.${(index % 250) + 1}`

interface Started {
  readonly child: ChildProcess
  readonly port: number
  readonly startMs: number
  readonly signInAt?: string
  readonly reload: Subject['reload']
}

interface Wishes {
  /** The pause before its memory is read, and before anybody signs in. */
  readonly restMs?: number
  readonly gateway?: GatewayOptions
}

export async function startSubject(
  name: SubjectName,
  place: Place,
  { restMs = 0, gateway = {} }: Wishes = {}
): Promise<Subject> {
  const turns = join(temporaryFolder(name), 'turns')
  const { child, port, startMs, signInAt, reload } = await start(name, place, { ...gateway, turns })
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
    requests: (path, connections) =>
      Array.from({ length: connections }, (_, index) => {
        const cookie = cookies[index % users]
        const own = cookie === undefined ? {} : { cookie }
        const headers = { ...fields, 'x-forwarded-for': addressOf(index), ...own }
        return { method: 'GET', path, headers }
      }),
    reload,
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

async function start(
  name: SubjectName,
  place: Place,
  options: GatewayOptions & { readonly turns: string }
): Promise<Started> {
  const port = await freePort()
  if (name === 'gateway') return await startGateway(port, place, options)
  const began = performance.now()
  const peer = join(import.meta.dirname, 'peers', `${name}.js`)
  const child = startMeasured(process.execPath, [peer, String(port), place.upstream, place.redis], {
    env: { ...process.env, NODE_ENV: 'production' }
  })
  await untilReady(`http://127.0.0.1:${port}/ready`, child)
  return {
    child,
    port,
    startMs: performance.now() - began,
    reload: async () => {},
    ...(name === 'express' && { signInAt: '/login' })
  }
}
