/** A gateway as a process of its own, of any checkout: started, watched from outside, and measured. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { type Call, callOnce } from './call.ts'
import { testSecret } from './ops.ts'
import { temporaryFolder } from './temporary.ts'
import { until } from './until.ts'

/** Series of a metric: its labels as they are written, and the value. */
export type Samples = ReturnType<typeof samplesOf>

export type GatewayProcess = Awaited<ReturnType<typeof startGatewayProcess>>

interface Start {
  /** The folder of the checkout that runs. */
  readonly checkout?: string
  /** Its config folder. */
  readonly folder: string
  /** Further variables, beside the secrets. */
  readonly environment?: Readonly<Record<string, string>>
  /** A module that is loaded before the gateway. */
  readonly preload?: string | undefined
}

const watcher = join(import.meta.dirname, 'watch-process.js')
const keptLines = 4000

/** What config of a gateway in its own process may refer to. */
const secrets = {
  SESSION_SECRET: 'a secret of at least thirty-two characters',
  OPS_SECRET: testSecret
}

/** Resolves once it listens. */
export async function startGatewayProcess(
  cleanUp: (undo: () => unknown) => void,
  { checkout = '.', folder, preload, environment = {} }: Start
) {
  const report = join(temporaryFolder(), 'report.json')
  const preloaded = [watcher, ...(preload === undefined ? [] : [preload])]
  const words = ['--expose-gc', ...preloaded.flatMap(module => ['--import', module])]
  const start = [resolve(checkout, 'src/launch.js'), 'start', '--config', folder]
  const child = spawn(process.execPath, [...words, ...start], {
    cwd: checkout,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env['PATH'] ?? '',
      TMPDIR: tmpdir(),
      RUNTIME_DIRECTORY: tmpdir(),
      MEMORY_REPORT: report,
      ...secrets,
      ...environment
    }
  })
  const lines: string[] = []
  const complaints: string[] = []
  const faults: string[] = []
  let exit: { code: number | null; signal: NodeJS.Signals | null } | undefined
  const keep = (line: string, ...places: string[][]) => {
    for (const kept of places) {
      kept.push(line)
      if (kept.length > keptLines) kept.splice(0, keptLines / 2)
    }
  }
  createInterface({ input: child.stdout }).on('line', line =>
    keep(line, lines, ...(line.includes('"err":{') ? [faults] : []))
  )
  createInterface({ input: child.stderr }).on('line', line => keep(line, lines, complaints))
  const ended = once(child, 'close').then(([code, signal]) => (exit = { code, signal }))
  const kill = async () => {
    child.kill('SIGKILL')
    await ended
  }
  cleanUp(kill)

  let [url, ops] = ['', '']
  await until('the gateway listens, or ends', () => {
    const line = lines.find(each => each.includes('"listening on '))
    if (line !== undefined) ({ url, ops } = JSON.parse(line) as { url: string; ops: string })
    return url !== '' || exit !== undefined
  })
  if (url === '') throw new Error(`the gateway did not start:\n${lines.join('\n')}`)

  /** A request at the operators' listener. */
  const ask = async (path: string, { headers = {}, ...call }: Call = {}) =>
    await callOnce(ops + path, {
      ...call,
      headers: { authorization: `Bearer ${testSecret}`, ...headers }
    })
  return {
    pid: child.pid ?? 0,
    url,
    /** The newest lines of both outputs, the last one last. */
    lines: () => lines,
    /** What Node wrote to standard error: warnings, stacks. */
    complaints: () => complaints,
    /** Log lines with a stack. */
    faults: () => faults,
    exit: () => exit,
    ended,
    signal: (signal: NodeJS.Signals) => void child.kill(signal),
    ask,
    ready: async () =>
      await until('the gateway is ready', async () => (await ask('/readyz')).status === 200),
    metrics: async () => samplesOf((await ask('/metrics')).text),
    descriptors: () => descriptorsOf(child.pid ?? 0),
    /** Memory after a forced collection. */
    collect: async (): Promise<{ memory: NodeJS.MemoryUsage; handles: string[] }> => {
      rmSync(report, { force: true })
      child.kill('SIGWINCH')
      await until('memory is collected', () => existsSync(report) || exit !== undefined)
      if (exit !== undefined) throw new Error('the gateway ended')
      return JSON.parse(readFileSync(report, 'utf8'))
    },
    stop: async () => {
      child.kill('SIGTERM')
      await Promise.race([ended, new Promise(resolve => setTimeout(resolve, 20_000).unref())])
      await kill()
    }
  }
}

function samplesOf(body: string) {
  return body.split('\n').flatMap(line => {
    const [, name, labels = '', value] = /^([a-z_]+)(\{.*\})? (\S+)$/.exec(line) ?? []
    return name === undefined ? [] : [{ name, labels, value: Number(value) }]
  })
}

/** How many descriptors of a process there are of each kind. */
function descriptorsOf(pid: number): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const name of readdirSync(`/proc/${pid}/fd`)) {
    let link = 'closed meanwhile'
    try {
      link = readlinkSync(`/proc/${pid}/fd/${name}`)
    } catch {}
    const kind = link.replace(/:\[\d+\]$/, '')
    counts[kind] = (counts[kind] ?? 0) + 1
  }
  return counts
}
