/** The place of a measurement: cores, ports, processes, Redis and the upstream. */
import { type ChildProcess, fork, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { availableParallelism, cpus } from 'node:os'
import { createServer, type AddressInfo } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import type { Ran, Run } from './load.ts'

const here = import.meta.dirname
const cores = availableParallelism()
const pins = cores > 1 && spawnSync('taskset', ['-c', '0', 'true']).status === 0
/** Whoever is measured has the last core for itself. */
const measuredCore = cores - 1
const otherCore = (index: number) => index % measuredCore

const pinned = (core: number, program: string, given: readonly string[]): [string, string[]] =>
  pins ? ['taskset', ['-c', String(core), program, ...given]] : [program, [...given]]

const children = new Set<ChildProcess>()
// Whatever ends us, nothing of ours goes on.
process.once('exit', () => {
  for (const child of children) child.kill('SIGKILL')
})
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))

function owned(child: ChildProcess): ChildProcess {
  children.add(child)
  child.once('exit', () => children.delete(child))
  return child
}

export interface Place {
  readonly upstream: string
  readonly redis: string
  /** The machine, in words for the report. */
  readonly machine: string
  readonly load: (run: Run) => Promise<Ran>
  readonly close: () => Promise<void>
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** Starts a program on the core of whoever is measured. */
export function startMeasured(
  program: string,
  given: readonly string[],
  { env }: { readonly env: NodeJS.ProcessEnv }
): ChildProcess {
  const [started, words] = pinned(measuredCore, program, given)
  return owned(spawn(started, words, { env, stdio: ['ignore', 'ignore', 'inherit'] }))
}

export async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  const inTime = await Promise.race([ended.then(() => true), wait(5000, false, { ref: false })])
  if (!inTime) child.kill('SIGKILL')
  await ended
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

export async function preparePlace(): Promise<Place> {
  const [upstreamPort, redisPort] = [await freePort(), await freePort()]
  const upstream = helper('upstream.ts', 0, [String(upstreamPort)])
  const loader = helper('load.ts', 1, [])
  loader.once('exit', code => {
    if (code !== null && code !== 0) process.exit(1)
  })
  const words = ['--port', String(redisPort), '--bind', '127.0.0.1', '--save', '']
  const redis = owned(
    spawn(...pinned(otherCore(2), 'redis-server', words), {
      stdio: ['ignore', 'ignore', 'inherit']
    })
  )
  await once(upstream, 'message')
  return {
    upstream: `http://127.0.0.1:${upstreamPort}`,
    redis: `redis://127.0.0.1:${redisPort}`,
    machine: `${cores} × ${cpus()[0]?.model.trim() ?? 'unknown processor'}, Node ${process.versions.node}, processes ${pins ? '' : 'not '}pinned`,
    load: async run => {
      const answered = once(loader, 'message') as Promise<[Ran]>
      loader.send(run)
      return (await answered)[0]
    },
    close: async () => {
      await Promise.all([upstream, loader, redis].map(stop))
    }
  }
}

function helper(file: string, index: number, given: readonly string[]): ChildProcess {
  const child = owned(
    fork(`${here}/${file}`, given, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  )
  if (pins) spawnSync('taskset', ['-a', '-p', '-c', String(otherCore(index)), String(child.pid)])
  return child
}
