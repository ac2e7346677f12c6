/** A gateway as a process of its own, of any checkout: started, watched from outside, and measured. */
import { existsSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type Call, callOnce } from './call.ts'
import { program, running } from './command.ts'
import { clientOf } from './gateway.ts'
import { testSecret } from './ops.ts'
import { temporaryFolder } from './temporary.ts'
import { until } from './until.ts'

/** Series of a metric: its labels as they are written, and the value. */
export type Samples = ReturnType<typeof samplesOf>

export type GatewayProcess = Awaited<ReturnType<typeof startGatewayProcess>>

interface Start {
  /** The folder of the checkout that runs. */
  readonly checkout?: string
  /** Further options of `start`. */
  readonly more?: readonly string[]
  /** Further variables. */
  readonly environment?: Readonly<Record<string, string>>
  /** A module that is loaded before the gateway. */
  readonly preload?: string | undefined
}

const watcher = join(import.meta.dirname, 'watch-process.js')

/** Resolves once it listens. */
export async function startGatewayProcess(
  cleanUp: (undo: () => unknown) => void,
  folder: string,
  { checkout = '.', more = [], environment = {}, preload }: Start = {}
) {
  const report = join(temporaryFolder(), 'report.json')
  const preloaded = [watcher, ...(preload === undefined ? [] : [preload])]
  const modules = preloaded.flatMap(module => ['--import', module])
  const words = [resolve(checkout, program), 'start', '--config', folder, ...more]
  const env = { MEMORY_REPORT: report, ...environment }
  const gateway = running(cleanUp, process.execPath, ['--expose-gc', ...modules, ...words], env)
  const addresses = await gateway.listens()
  /** A request at the operators' listener, on a connection of its own. */
  const ask = async (path: string, { headers = {}, ...call }: Call = {}) =>
    await callOnce(addresses.opsUrl + path, {
      ...call,
      headers: { authorization: `Bearer ${testSecret}`, ...headers }
    })
  return {
    ...gateway,
    ...addresses,
    ...clientOf(addresses),
    folder,
    ask,
    // No connection of it stays open, which would count as one that was left.
    ready: async () =>
      await until('the gateway is ready', async () => (await ask('/readyz')).status === 200),
    /** Log lines with a stack. */
    faults: () =>
      gateway
        .written()
        .split('\n')
        .filter(line => line.includes('"err":{')),
    samples: async () => samplesOf((await ask('/metrics')).text),
    descriptors: () => descriptorsOf(gateway.pid),
    /** Memory after a forced collection. */
    collect: async (): Promise<{ memory: NodeJS.MemoryUsage; handles: string[] }> => {
      rmSync(report, { force: true })
      gateway.signal('SIGWINCH')
      await until('memory is collected', () => existsSync(report) || gateway.isOver())
      if (gateway.isOver()) throw new Error('the gateway ended')
      return JSON.parse(readFileSync(report, 'utf8'))
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
