/** A gateway as a process of its own, of any checkout: started, watched from outside, and measured. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { until } from './until.ts'
import { temporaryFolder } from './temporary.ts'

export interface Exit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

export interface PlainAnswer {
  readonly status: number
  readonly body: string
  readonly headers: NodeJS.Dict<string | string[]>
}

interface CallOptions {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly json?: unknown
  readonly timeoutMs?: number
}

/** Series of a metric: its labels as they are written, and the value. */
export type Samples = ReadonlyArray<{
  readonly name: string
  readonly labels: string
  readonly value: number
}>

export interface GatewayProcess {
  readonly pid: number
  readonly url: string
  readonly opsUrl: string
  /** The newest lines of both outputs, the last one last. */
  readonly lines: () => readonly string[]
  /** What Node wrote to standard error: warnings, stacks. */
  readonly complaints: () => readonly string[]
  /** Log lines with a stack. */
  readonly faults: () => readonly string[]
  readonly exit: () => Exit | undefined
  readonly ended: Promise<Exit>
  readonly signal: (signal: NodeJS.Signals) => void
  /** A request at the operators' listener. */
  readonly ask: (path: string, options?: CallOptions) => Promise<PlainAnswer>
  readonly metrics: () => Promise<Samples>
  readonly descriptors: () => number
  /** What each descriptor is, for reports. */
  readonly describeDescriptors: () => Record<string, number>
  /** Memory after a forced collection. */
  readonly collect: () => Promise<{ memory: NodeJS.MemoryUsage; handles: string[] }>
  readonly stop: () => Promise<void>
}

interface Start {
  /** The folder of the checkout that runs. */
  readonly checkout: string
  /** Its config folder. */
  readonly folder: string
  readonly environment?: Readonly<Record<string, string>>
  /** A module that is loaded before the gateway. */
  readonly preload?: string
}

const watcher = fileURLToPath(new URL('watch-process.js', import.meta.url))
const keptLines = 4000
export const opsSecret = 'a-secret-of-operators-with-more-than-32-characters'

/** One request on a connection of its own, which is closed after it. */
export async function callOnce(url: string, options: CallOptions = {}): Promise<PlainAnswer> {
  const { method, headers = {}, json, timeoutMs = 15_000 } = options
  const body = json === undefined ? undefined : JSON.stringify(json)
  const asked = request(url, {
    method: method ?? (body === undefined ? 'GET' : 'POST'),
    agent: false,
    signal: AbortSignal.timeout(timeoutMs),
    headers: {
      connection: 'close',
      ...(body !== undefined && {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body)
      }),
      ...headers
    }
  })
  asked.end(body)
  const [response] = await once(asked, 'response')
  return { status: response.statusCode, headers: response.headers, body: await text(response) }
}

export async function startGatewayProcess(
  cleanUp: (undo: () => unknown) => void,
  { checkout, folder, preload, environment = {} }: Start
): Promise<GatewayProcess> {
  const reports = temporaryFolder()
  const report = join(reports, 'report.json')
  const child = spawn(
    process.execPath,
    [
      '--expose-gc',
      '--import',
      watcher,
      ...(preload === undefined ? [] : ['--import', preload]),
      resolve(checkout, 'src/launch.js'),
      'start',
      '--config',
      folder
    ],
    {
      cwd: checkout,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH: process.env['PATH'] ?? '',
        TMPDIR: tmpdir(),
        RUNTIME_DIRECTORY: tmpdir(),
        MEMORY_REPORT: report,
        ...environment
      }
    }
  )
  const pid = child.pid ?? 0
  const lines: string[] = []
  const complaints: string[] = []
  const faults: string[] = []
  let exit: Exit | undefined
  const keep = (kept: string[], line: string) => {
    kept.push(line)
    if (kept.length > keptLines) kept.splice(0, keptLines / 2)
  }
  createInterface({ input: child.stdout }).on('line', line => {
    keep(lines, line)
    if (line.includes('"err":{')) keep(faults, line)
  })
  createInterface({ input: child.stderr }).on('line', line => {
    keep(lines, line)
    keep(complaints, line)
  })
  const ended = once(child, 'close').then(([code, signal]) => (exit = { code, signal }))
  const kill = async () => {
    child.kill('SIGCONT')
    child.kill('SIGKILL')
    await ended
  }
  cleanUp(kill)

  let listening: { url: string; ops: string } | undefined
  await until('the gateway listens', () => {
    if (exit !== undefined) return true
    const line = lines.find(line => line.includes('"listening on '))
    if (line !== undefined) listening = JSON.parse(line) as NonNullable<typeof listening>
    return line !== undefined
  })
  if (listening === undefined) throw new Error(`the gateway did not start:\n${lines.join('\n')}`)
  const { url, ops } = listening

  const ask = async (path: string, { headers = {}, ...options }: CallOptions = {}) =>
    await callOnce(ops + path, {
      ...options,
      headers: { authorization: `Bearer ${opsSecret}`, ...headers }
    })
  const descriptors = () => readdirSync(`/proc/${pid}/fd`).length
  return {
    pid,
    url,
    opsUrl: ops,
    lines: () => lines,
    complaints: () => complaints,
    faults: () => faults,
    exit: () => exit,
    ended,
    signal: signal => {
      child.kill(signal)
    },
    ask,
    metrics: async () => samplesOf((await ask('/metrics')).body),
    descriptors,
    describeDescriptors: () => describe(pid),
    collect: async () => {
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

function samplesOf(body: string): Samples {
  return body.split('\n').flatMap(line => {
    const [, name, labels = '', value] = /^([a-z_]+)(\{.*\})? (\S+)$/.exec(line) ?? []
    return name === undefined ? [] : [{ name, labels, value: Number(value) }]
  })
}

/** How many descriptors there are of each kind. */
function describe(pid: number): Record<string, number> {
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
