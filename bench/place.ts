/** The place of a measurement: what is installed and built, cores, ports, processes, Redis, the upstream. */
import { type ChildProcess, spawn, spawnSync, type SpawnOptions } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, statSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { availableParallelism, cpus } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { Run, Sample } from './load.ts'

const here = import.meta.dirname
export const root = join(here, '..')
const last = availableParallelism() - 1
const pins = last > 0 && spawnSync('taskset', ['-c', '0', 'true']).status === 0
/** Whoever is measured has the last core for itself. */
const measuredCore = String(last)
const otherCores = `0-${last - 1}`

const children = new Set<ChildProcess>()
// Whatever ends us, nothing of ours goes on.
process.once('exit', () => {
  for (const child of children) child.kill('SIGKILL')
})
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))

function start(cores: string, words: readonly string[], options: SpawnOptions): ChildProcess {
  const [program = '', ...given] = pins ? ['taskset', '-c', cores, ...words] : words
  const child = spawn(program, given, options)
  children.add(child)
  child.once('exit', () => children.delete(child))
  return child
}

/** Starts Node on the core of whoever is measured. */
export function startMeasured(given: readonly string[], env: NodeJS.ProcessEnv): ChildProcess {
  const words = [process.execPath, ...given]
  return start(measuredCore, words, { env, stdio: ['ignore', 'ignore', 'inherit'] })
}

function startHelper(file: string, ...given: string[]): ChildProcess {
  const words = [process.execPath, join(here, file), ...given]
  return start(otherCores, words, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
}

export type Place = Awaited<ReturnType<typeof preparePlace>>

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

export async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGTERM')
  await once(child, 'exit')
}

/** Waits for the first answer with 200. */
export async function untilReady(url: string, child: ChildProcess): Promise<void> {
  for (const began = performance.now(); ; await wait(2)) {
    if (child.exitCode !== null || performance.now() - began > 20_000) {
      throw new Error(`${child.spawnargs.join(' ')} does not answer at ${url}`)
    }
    const response = await fetch(url).catch(() => undefined)
    await response?.arrayBuffer()
    if (response?.status === 200) return
  }
}

/** Makes a checkout's gateway as it is published. */
export const build = (folder: string): void => npm(folder, 'run', '-s', 'build')

/** The peers are no dependencies of the gateway. */
function installPeers(): void {
  const changedAt = (file: string) => statSync(join(here, file)).mtimeMs
  const installed = 'node_modules/.package-lock.json'
  const isThere = existsSync(join(here, installed))
  if (isThere && changedAt(installed) >= changedAt('package-lock.json')) return
  npm(here, 'ci', '--no-audit', '--no-fund')
}

function npm(cwd: string, ...given: string[]): void {
  const { status } = spawnSync('npm', given, { cwd, stdio: ['ignore', 'ignore', 'inherit'] })
  if (status !== 0) throw new Error(`npm ${given.join(' ')} failed in ${cwd}`)
}

export async function preparePlace() {
  installPeers()
  build(root)
  const upstreamPort = String(await freePort())
  const redisPort = String(await freePort())
  const upstream = startHelper('upstream.ts', upstreamPort)
  const loader = startHelper('load.ts')
  loader.once('exit', code => {
    if (code !== null && code !== 0) process.exit(1)
  })
  const words = ['redis-server', '--port', redisPort, '--bind', '127.0.0.1', '--save', '']
  const redis = start(otherCores, words, { stdio: ['ignore', 'ignore', 'inherit'] })
  await once(upstream, 'message')
  return {
    upstream: `http://127.0.0.1:${upstreamPort}`,
    redis: `redis://127.0.0.1:${redisPort}`,
    /** In words for the report. */
    machine: `${last + 1} × ${cpus()[0]?.model.trim() ?? 'unknown processor'}, Node ${process.versions.node}, processes ${pins ? '' : 'not '}pinned`,
    load: async (run: Run): Promise<Sample> => {
      const answered = once(loader, 'message') as Promise<[Sample]>
      loader.send(run)
      return (await answered)[0]
    },
    close: () => Promise.all([upstream, loader, redis].map(stop))
  }
}
