/** One client floods the gateway and the bare plugin by turns: how do the others fare? */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { residentMegabytes } from './accounting.ts'
import { bounds } from './bounds.ts'
import type { Outcome, Stage } from './cases.ts'
import type { Clients, Served } from './flood.ts'
import { temporaryFolder } from './gateway.ts'
import { freePort, type Place, startMeasured, stop, untilReady } from './place.ts'
import { root } from './prepare.ts'
import { figure, paired } from './rounds.ts'

const connections = 1000
const floodMs = 6000
/** After the last flood, before memory is read again. */
const restMs = 20_000

interface Subject {
  readonly label: string
  readonly child: ChildProcess
  readonly port: number
  readonly folder: string
}

interface Round {
  readonly flood: Served
  readonly other: Served
  readonly office: Served
  readonly longestTurnMs: number
  readonly megabytes: number
}

const surroundings = (folder: string) => ({
  ...process.env,
  NODE_ENV: 'production',
  NODE_OPTIONS: `--import ${join(import.meta.dirname, 'peers', 'turns.js')}`,
  TURNS_FILE: join(folder, 'turns'),
  MALLOC_ARENA_MAX: '1',
  MALLOC_TRIM_THRESHOLD_: '262144',
  MALLOC_MMAP_THRESHOLD_: '262144'
})

async function startPlugin(place: Place): Promise<Subject> {
  const port = await freePort()
  const folder = temporaryFolder('plugin')
  const program = join(import.meta.dirname, 'peers', 'plugin.js')
  const child = startMeasured(process.execPath, [program, String(port), place.upstream], {
    env: surroundings(folder)
  })
  await untilReady(`http://127.0.0.1:${port}/ready`, child)
  return { label: 'bare @fastify/http-proxy', child, port, folder }
}

/** Nothing but overload refuses anybody: limits count, and allow more than there is. */
async function startGateway({ upstream }: Place): Promise<Subject> {
  const [port, opsPort] = [await freePort(), await freePort()]
  const folder = temporaryFolder('gateway')
  const notices = {
    path: '/api/public/notices/*',
    rewrite: '/notices/*',
    upstream: 'backend',
    access: 'public'
  }
  const files = {
    gateway: {
      server: { listen: `127.0.0.1:${port}` },
      ops: { listen: `127.0.0.1:${opsPort}` },
      drain: { notice: '0ms', grace: '1s' },
      log: { format: 'json', level: 'info' }
    },
    limits: {
      inFlightPerUser: 1000,
      limits: { anonymous: { by: 'address', max: 1_000_000_000, window: '1m' } }
    },
    users: { users: {} },
    routes: { upstreams: { backend: { url: upstream } }, routes: { notices } }
  }
  for (const [name, content] of Object.entries(files)) {
    // JSON is YAML.
    writeFileSync(join(folder, `${name}.yaml`), JSON.stringify(content))
  }
  const flags = ['--min-semi-space-size=8', '--max-semi-space-size=8']
  const child = startMeasured(
    process.execPath,
    [...flags, join(root, 'dist/launch.js'), 'start', '--config', folder],
    { env: surroundings(folder), output: openSync(logOf(folder), 'w') }
  )
  await untilReady(`http://127.0.0.1:${opsPort}/readyz`, child)
  return { label: 'Console Gateway', child, port, folder }
}

const logOf = (folder: string) => join(folder, 'log')

async function load(clients: Clients): Promise<Served> {
  const child = fork(join(import.meta.dirname, 'flood.ts'), { stdio: ['ignore', 2, 2, 'ipc'] })
  child.send(clients)
  const [served] = (await once(child, 'message')) as [Served]
  child.disconnect()
  return served
}

const clientsOf = ({ port }: Subject): Clients => ({
  port,
  path: '/api/public/notices/small',
  from: '127.0.0.2',
  connections,
  ms: floodMs,
  pauseMs: 0,
  connectsAnew: false
})

/** As long as the last turn lasts, the signal waits. */
async function longestTurn({ child, folder }: Subject): Promise<number> {
  const file = join(folder, 'turns')
  rmSync(file, { force: true })
  child.kill('SIGWINCH')
  for (;;) {
    await wait(20)
    try {
      const text = readFileSync(file, 'latin1')
      if (text !== '') return Number(text)
    } catch {
      // Not written yet.
    }
  }
}

async function flooded(subject: Subject): Promise<Round> {
  const clients = clientsOf(subject)
  await longestTurn(subject)
  const other = { from: '127.0.0.3', connections: 4, pauseMs: 20, connectsAnew: true }
  const office = { from: '127.0.0.4', connections: 30, pauseMs: 200 }
  const [ofFlood, ofOther, ofOffice] = await Promise.all([
    load(clients),
    load({ ...clients, ...other }),
    load({ ...clients, ...office })
  ])
  return {
    flood: ofFlood,
    other: ofOther,
    office: ofOffice,
    longestTurnMs: await longestTurn(subject),
    megabytes: residentMegabytes(subject.child.pid as number)
  }
}

/** Of the lines for what was shed: how many, and how many in the fullest second. */
function shedLines(text: string): { readonly all: number; readonly inOneSecond: number } {
  const seconds = new Map<number, number>()
  const lines = text.split('\n').filter(line => line.includes('"requests.shed"'))
  for (const line of lines) {
    const second = Math.floor(Date.parse((JSON.parse(line) as { time: string }).time) / 1000)
    seconds.set(second, (seconds.get(second) ?? 0) + 1)
  }
  return { all: lines.length, inOneSecond: Math.max(0, ...seconds.values()) }
}

const lost = ({ statuses }: Served) =>
  Object.entries(statuses).reduce((sum, [status, n]) => sum + (status === '200' ? 0 : n), 0)

/** A flood of one client, a user whose connections are new, and an office of 30 users. */
export async function overload({ place, rounds }: Stage): Promise<Outcome> {
  const subjects = [await startPlugin(place), await startGateway(place)]
  const turns = subjects.map(() => [] as Round[])
  const rest: number[] = []
  for (const [index, subject] of subjects.entries()) {
    await load({ ...clientsOf(subject), connections: 48, ms: 5000 })
    await wait(2000)
    rest[index] = residentMegabytes(subject.child.pid as number)
  }
  for (let round = 0; round < rounds; round++) {
    for (const [index, subject] of subjects.entries()) {
      turns[index]?.push(await flooded(subject))
    }
  }
  await wait(restMs)
  const memory = subjects.map(({ child }, index) => {
    return residentMegabytes(child.pid as number) / (rest[index] ?? NaN)
  })
  const [, { child, folder } = { folder: '' }] = subjects
  if (child !== undefined) await stop(child)
  const lines = shedLines(readFileSync(logOf(folder), 'utf8'))
  await Promise.all(subjects.map(subject => stop(subject.child)))
  const figures = (of: (round: Round) => number) => turns.map(each => each.map(of))
  const [p99OfPlugin = [], p99 = []] = figures(({ other }) => other.p99Ms)
  const share = paired(p99, p99OfPlugin, (own, others) => own / others)
  const shed = figures(({ flood }) => flood.statuses['503'] ?? 0)
  const served = figures(({ flood }) => flood.statuses['200'] ?? 0)
  const refusals = shed[1]?.reduce((sum, n) => sum + n, 0)
  const columns: ReadonlyArray<readonly [string, number[][]]> = [
    ['another user’s p50 ms', figures(({ other }) => other.p50Ms)],
    ['p99 ms', [p99OfPlugin, p99]],
    ['slowest ms', figures(({ other }) => other.maxMs)],
    ['office’s p99 ms', figures(({ office }) => office.p99Ms)],
    ['office’s losses', figures(({ office }) => lost(office))],
    ['longest turn ms', figures(({ longestTurnMs }) => longestTurnMs)],
    ['flood served/s', served.map(each => each.map(n => (n / floodMs) * 1000))],
    ['flood refused/s', shed.map(each => each.map(n => (n / floodMs) * 1000))],
    ['RSS MB in the flood', figures(({ megabytes }) => megabytes)],
    ['RSS after/before', memory.map(ratio => [ratio])]
  ]
  return {
    title:
      `One client floods over ${connections} connections; ${lines.all} log lines for ` +
      `${refusals} refusals, at most ${lines.inOneSecond} in a second`,
    columns: columns.map(([title]) => title),
    rows: subjects.map(({ label }, index) => ({
      label,
      cells: columns.map(([, values]) => figure(values[index] ?? []))
    })),
    verdicts: [
      {
        what: 'another user’s p99 in a flood, to the plugin’s',
        value: share,
        unit: '',
        ...bounds.floodedP99
      },
      {
        what: 'RSS after a flood, to that before',
        value: figure([memory[1] ?? NaN]),
        unit: '',
        ...bounds.residentAfterFlood
      }
    ]
  }
}
