/**
 * Announcements of Redis to each process, by the number of processes, with the same traffic in all: with
 * use that is announced (`session.records: 1`) and with use that is not (`3`).
 *
 *     npm run --prefix bench news -- [PROCESSES,…] [SECONDS]
 */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { keyOf } from '../src/session/record.ts'
import type { RecordVersion } from '../src/session/record-format.ts'
import { openReplica, opening, readyClient, startRedis } from './session-replica.ts'

const sessionCount = 200
/** Use is written once in a quarter of this: 100 times a second, as that of 6,000 sessions is. */
const idleMs = 8000
/** Of all processes together. */
const requestsPerSecond = 2000
const signInsPerSecond = 5
const tickMs = 20
const warmUpMs = 4000

interface Counts {
  readonly news: number
  readonly requests: number
  readonly commands: number
  readonly cpuMs: number
}

const idOf = (n: number) => `id-${n}`

/** One of `processes`: its share of the traffic, and what it counted when it is asked. */
async function serve(port: number, records: RecordVersion, processes: number): Promise<void> {
  const counts = { news: 0, requests: 0, commands: 0 }
  const { sessions, client } = await openReplica({
    port,
    records,
    idleMs,
    onNews: () => counts.news++
  })
  const send = client.sendCommand.bind(client) as Redis['sendCommand']
  client.sendCommand = ((...words: Parameters<typeof send>) => {
    counts.commands++
    return send(...words)
  }) as typeof client.sendCommand
  const keys = Array.from({ length: sessionCount }, (_, n) => keyOf(idOf(n)))

  async function request(): Promise<void> {
    const key = keys[Math.floor(Math.random() * sessionCount)] ?? ''
    const cached = sessions.getCachedByKey(key)
    counts.requests++
    if (cached !== undefined) return void sessions.use(cached)
    const found = await sessions.getByKey(key)
    if (!('live' in found)) throw new Error(`a session in use is over: ${JSON.stringify(found)}`)
    sessions.use(found.live)
  }

  let visitors = 0
  async function visit(): Promise<void> {
    const id = `visitor-${process.pid}-${++visitors}`
    await sessions.open(id, opening(1_000_000 + process.pid * 1000 + visitors * 2))
    await sessions.close(id, 'revoked')
  }

  /** By the clock, so that a busy machine delays requests and loses none. */
  function startTraffic(): void {
    const startedAt = performance.now()
    setInterval(() => {
      const due = (performance.now() - startedAt) / 1000 / processes
      while (counts.requests < due * requestsPerSecond) void request()
      while (visitors < due * signInsPerSecond) void visit()
    }, tickMs)
  }
  process.on('message', message => {
    if (message === 'go') return startTraffic()
    const { user, system } = process.cpuUsage()
    process.send?.({ ...counts, cpuMs: (user + system) / 1000 } satisfies Counts)
  })
  process.send?.('ready')
}

async function ask(child: ChildProcess): Promise<Counts> {
  const answer = once(child, 'message')
  child.send('counts')
  return (await answer)[0] as Counts
}

/** @returns a row of the table */
async function measure(records: RecordVersion, processes: number, ms: number): Promise<string> {
  const port = 20_000 + (process.pid % 20_000) + processes * 10 + records
  const endRedis = await startRedis(port)
  const children = Array.from({ length: processes }, () =>
    fork(import.meta.filename, ['serve', String(port), String(records), String(processes)])
  )
  await Promise.all(children.map(async child => await once(child, 'message')))
  const { sessions, close } = await openReplica({ port, records, idleMs })
  for (let n = 0; n < sessionCount; n++) await sessions.open(idOf(n), opening(n))
  close()
  for (const child of children) child.send('go')
  await wait(warmUpMs)
  const admin = await readyClient(port)
  const redisCpu = async () => {
    const info = await admin.info('cpu')
    const of = (name: string) => Number(new RegExp(`${name}:([\\d.]+)`).exec(info)?.[1])
    return (of('used_cpu_sys') + of('used_cpu_user')) * 1000
  }
  const take = async () => ({
    at: performance.now(),
    redisMs: await redisCpu(),
    counts: await Promise.all(children.map(ask))
  })
  const from = await take()
  await wait(ms)
  const to = await take()
  for (const child of children) child.kill()
  admin.disconnect()
  endRedis()
  const seconds = (to.at - from.at) / 1000
  const sum = (what: keyof Counts) =>
    to.counts.reduce((all, each, n) => all + each[what] - (from.counts[n]?.[what] ?? 0), 0)
  const perRequest = (total: number) => total / sum('requests')
  return [
    records,
    processes,
    (sum('requests') / seconds).toFixed(0),
    (sum('news') / processes / seconds).toFixed(1),
    (sum('news') / seconds).toFixed(0),
    perRequest(sum('commands')).toFixed(3),
    (perRequest(sum('cpuMs')) * 1000).toFixed(0),
    (perRequest(to.redisMs - from.redisMs) * 1000).toFixed(0)
  ].join(' | ')
}

const [first, ...rest] = process.argv.slice(2)
if (first === 'serve') {
  const [port, records, processes] = rest.map(Number)
  await serve(port ?? 0, records === 3 ? 3 : 1, processes ?? 1)
} else {
  const sizes = (first ?? '2,4,8,16').split(',').map(Number)
  const ms = Number(rest[0] ?? 10) * 1000
  process.stdout.write(
    '| `records` | Processes | Requests/s, all | News/s of a process | News/s, all | Redis commands a request | µs CPU a request | µs CPU of Redis a request |\n|---|---|---|---|---|---|---|---|\n'
  )
  for (const records of [1, 3] as const) {
    for (const processes of sizes) {
      process.stdout.write(`| ${await measure(records, processes, ms)} |\n`)
    }
  }
}
