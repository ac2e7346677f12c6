/** Worker processes: starts them, replaces those that end by themselves, and calls them. */
import cluster, { type Worker } from 'node:cluster'
import { getCompileCacheDir } from 'node:module'
import { extname } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { toCloneable } from '../../config/load/cloneable.ts'
import type { Config } from '../../config/schema/config.ts'
import type { MaintenanceConfig } from '../../config/schema/maintenance.ts'
import { adopt } from '../../observability/emitters.ts'
import type { Log } from '../../services/services.ts'
import type { ListenerFds } from '../server/listeners.ts'
import { allAccepted, keepHandedConnections } from './handed-connections.ts'
import { HeldListeners } from './held-listeners.ts'
import type { LeaseLender } from './lease-lender.ts'
import { serveLedger, type WorkersLedger } from './ledger-relay.ts'
import { type CallWorker, connectWorker, WorkerGone, type WorkerState } from './rpc.ts'

export interface WorkerHandle {
  readonly index: number
  readonly worker: Worker
  readonly call: CallWorker
  readonly startedAt: number
  /** Starts in a row that failed before this one. */
  readonly failures: number
  /** Whether it serves the config that is in force. */
  isServing: boolean
  state?: WorkerState
}

interface Options {
  readonly config: Config
  readonly log: Log
  readonly onRestart: () => void
  /** Takes the entries of workers; undefined where config has no audit ledger. */
  readonly ledger?: WorkersLedger | undefined
  /** Counts limits for all workers; undefined where each counts for itself. */
  readonly lender?: Pick<LeaseLender, 'serve'> | undefined
}

const minBackoffMs = 100
const maxBackoffMs = 10_000
/** A worker that ran for this time did not fail at its start. */
const stableAfterMs = 30_000
/** The time that a worker with nothing left to do has to end. */
const exitWithinMs = 3000
/** The time for workers to accept the connections that the primary has taken. */
const acceptWithinMs = 1000

export class WorkerPool {
  readonly #options: Options
  readonly #listeners: HeldListeners
  readonly #workers = new Map<number, WorkerHandle>()
  /**
   * Workers with an uncaught error: they finish their requests and end; others have replaced them.
   */
  readonly #draining = new Set<WorkerHandle>()
  #inForce: { readonly number: number; readonly config: Config }
  /** That of operators. */
  #maintenance: MaintenanceConfig | undefined
  #count = 0
  #isListening = false
  #isStopping = false

  constructor(options: Options) {
    this.#options = options
    this.#listeners = new HeldListeners(options.config)
    this.#inForce = { number: 1, config: toCloneable(options.config) }
    // `advanced`, since the config holds values that JSON cannot.
    cluster.setupPrimary({
      exec: fileURLToPath(new URL(`worker${extname(import.meta.url)}`, import.meta.url)),
      args: [],
      serialization: 'advanced'
    })
  }

  /** The number of the generation that is in force. */
  get generation(): number {
    return this.#inForce.number
  }

  serving(): WorkerHandle[] {
    return [...this.#workers.values()].filter(({ isServing }) => isServing)
  }

  /** @throws when one of them cannot start */
  async start(count: number): Promise<void> {
    this.#count = count
    const handles = Array.from({ length: count }, (_, n) => this.#fork(n + 1, 0))
    await Promise.all(handles.map(handle => this.#start(handle)))
  }

  /** Calls all that serve. One that ends meanwhile gives no result. */
  async callAll<T>(
    method: (call: CallWorker) => Promise<T>,
    handles = this.serving()
  ): Promise<T[]> {
    const results = await Promise.all(
      handles.map(({ call }) =>
        method(call).catch((error: unknown) => {
          if (error instanceof WorkerGone) return undefined
          throw error
        })
      )
    )
    return results.filter((result): result is Awaited<T> & {} => result !== undefined)
  }

  async callAny<T>(method: (call: CallWorker) => Promise<T>): Promise<T> {
    const [any] = this.serving()
    if (any === undefined) throw new WorkerGone('no worker serves')
    return await method(any.call)
  }

  async activate(number: number, config: Config): Promise<void> {
    // Before the calls, so that a worker that is starting takes it too.
    this.#inForce = { number, config: toCloneable(config) }
    await this.callAll(call => call('activate', { number }))
  }

  async maintain(maintenance: MaintenanceConfig | undefined): Promise<void> {
    // Before the calls, so that a worker that is starting takes it too.
    this.#maintenance = maintenance
    await this.callAll(call => call('maintain', { maintenance }))
  }

  /** @returns the address of the listener, which all share */
  async listen(inherited: ListenerFds = {}): Promise<string> {
    this.#isListening = true
    this.#listeners.inherit(inherited)
    const [url = ''] = await this.callAll(call => call('listen', { fds: inherited }))
    return url
  }

  descriptors(): ReturnType<HeldListeners['descriptors']> {
    return this.#listeners.descriptors()
  }

  /** Asks all that serve for their state, and keeps it in their handles. */
  async states(): Promise<WorkerState[]> {
    const states = await this.callAll(call => call('state', {}))
    for (const state of states) {
      const handle = this.#workers.get(state.index)
      if (handle !== undefined) handle.state = state
    }
    return states
  }

  /** @returns whether all requests finished within the time */
  async stop(graceMs: number, lingerMs: number): Promise<boolean> {
    this.#isStopping = true
    this.#listeners.close()
    await allAccepted(acceptWithinMs)
    const results = await this.callAll(call => call('stop', { graceMs, lingerMs }), this.#all())
    return results.every(Boolean)
  }

  async close(): Promise<void> {
    this.#isStopping = true
    this.#listeners.close()
    await Promise.all(this.#all().map(async ({ worker }) => endWorker(worker)))
  }

  #all(): WorkerHandle[] {
    return [...this.#workers.values(), ...this.#draining]
  }

  /**
   * @returns when it serves the config in force, even if that changed meanwhile. @throws when it
   * cannot
   */
  async #start(handle: WorkerHandle): Promise<void> {
    let taken = this.#inForce
    await handle.call('start', { index: handle.index, count: this.#count, ...taken })
    let maintenance: MaintenanceConfig | undefined
    while (taken !== this.#inForce || maintenance !== this.#maintenance) {
      maintenance = this.#maintenance
      await handle.call('maintain', { maintenance })
      if (taken === this.#inForce) continue
      taken = this.#inForce
      await handle.call('build', taken)
      await handle.call('activate', { number: taken.number })
    }
    handle.isServing = true
    if (this.#isListening) await handle.call('listen', { fds: this.#listeners.fds() })
  }

  #fork(index: number, failures: number): WorkerHandle {
    const worker = adopt(cluster.fork({ NODE_COMPILE_CACHE: getCompileCacheDir() ?? '' }))
    keepHandedConnections(worker)
    const handle: WorkerHandle = {
      index,
      worker,
      call: connectWorker(worker, () => this.#drain(handle)),
      startedAt: performance.now(),
      failures,
      isServing: false
    }
    this.#workers.set(index, handle)
    const { ledger, lender } = this.#options
    if (ledger !== undefined) serveLedger(worker, index, ledger, handle.call)
    lender?.serve(worker)
    worker.once('exit', (code, signal) => {
      this.#draining.delete(handle)
      this.#replace(handle, { code, signal }, 'a worker ended')
    })
    return handle
  }

  /** After an uncaught error. */
  #drain(handle: WorkerHandle): void {
    this.#draining.add(handle)
    this.#replace(handle, {}, 'a worker had an internal error and drains')
  }

  #replace(handle: WorkerHandle, reason: object, message: string): void {
    const { index, failures, startedAt, isServing } = handle
    handle.isServing = false
    if (this.#isStopping || !isServing) return
    this.#workers.delete(index)
    const { onRestart, log } = this.#options
    onRestart()
    log.error({ worker: index, ...reason }, `${message}; starting another in its place`)
    const isStable = performance.now() - startedAt >= stableAfterMs
    void this.#restart(index, isStable ? 0 : failures + 1)
  }

  async #restart(index: number, failures: number): Promise<void> {
    // The first restart is immediate.
    if (failures > 1) await wait(Math.min(minBackoffMs * 2 ** failures, maxBackoffMs))
    if (this.#isStopping) return
    let handle: WorkerHandle | undefined
    try {
      handle = this.#fork(index, failures)
      await this.#start(handle)
    } catch (err) {
      // One that ended while it began to listen was replaced as one that served.
      if (handle !== undefined && this.#workers.get(index) !== handle) return
      this.#options.log.error({ worker: index, err }, 'a worker could not start; trying again')
      this.#kill(handle)
      void this.#restart(index, failures + 1)
    }
  }

  #kill(handle: WorkerHandle | undefined): void {
    if (handle === undefined) return
    handle.isServing = false
    this.#workers.delete(handle.index)
    handle.worker.process.kill('SIGKILL')
  }
}

/** Disconnected, a worker ends itself once it has written its log. */
async function endWorker(worker: Worker): Promise<void> {
  if (worker.isDead()) return
  const exited = new Promise<void>(resolve => {
    worker.once('exit', () => resolve())
  })
  if (worker.isConnected()) worker.process.disconnect()
  const timer = setTimeout(() => worker.process.kill('SIGKILL'), exitWithinMs)
  await exited
  clearTimeout(timer)
}
