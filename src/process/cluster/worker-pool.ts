/** Worker processes: starts them, replaces those that end by themselves, and calls them. */
import cluster from 'node:cluster'
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
import { type CallWorker, within, WorkerGone, WorkerSilent } from './rpc.ts'
import { WorkerHandle } from './worker-handle.ts'

interface Numbered {
  /** Of the generation. */
  readonly number: number
  readonly config: Config
}

/** That with which workers start; no later one has its number. */
export const firstGeneration = 1

interface Options {
  readonly config: Config
  readonly log: Log
  readonly onRestart: () => void
  /** Takes the entries of workers; undefined where config has no audit ledger. */
  readonly ledger?: WorkersLedger | undefined
  /** Counts limits for all workers; undefined where each counts for itself. */
  readonly lender?: Pick<LeaseLender, 'serve'> | undefined
  /** The time of a worker to build a config; by default `callMs`. */
  readonly buildMs?: number
  /** The time that a worker that answers may need to stop when all requests have ended. */
  readonly stopMs?: number
}

interface CallOptions {
  readonly handles?: readonly WorkerHandle[]
  readonly withinMs?: number
}

const minBackoffMs = 100
const maxBackoffMs = 10_000
/** A worker that ran for this time did not fail at its start. */
const stableAfterMs = 30_000
/** The time for workers to accept the connections that the primary has taken. */
const acceptWithinMs = 1000
/**
 * The time for most calls, also to build a config: the check before it builds the config, too, and
 * has a minute for everything that it does.
 */
export const callMs = 60_000
/** The time for an answer that the worker has at once. */
const answerMs = 5000
const defaultStopMs = 10_000

export class WorkerPool {
  readonly #options: Options
  readonly #listeners: HeldListeners
  readonly #workers = new Map<number, WorkerHandle>()
  /**
   * Workers with an uncaught error: they finish their requests and end; others have replaced them.
   */
  readonly #draining = new Set<WorkerHandle>()
  #inForce: Numbered
  /** That of operators. */
  #maintenance: readonly MaintenanceConfig[] = []
  #count = 0
  #isListening = false
  #isStopping = false

  constructor(options: Options) {
    this.#options = options
    this.#listeners = new HeldListeners(options.config)
    this.#inForce = { number: firstGeneration, config: toCloneable(options.config) }
    // `advanced`, since the config holds values that JSON cannot.
    cluster.setupPrimary({
      exec: fileURLToPath(new URL(`worker${extname(import.meta.url)}`, import.meta.url)),
      args: [],
      serialization: 'advanced'
    })
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

  /** Calls all that serve. One that ends meanwhile, or does not reply in time, gives no result. */
  async callAll<T>(
    method: (call: CallWorker, handle: WorkerHandle) => Promise<T>,
    { handles = this.serving(), withinMs = callMs }: CallOptions = {}
  ): Promise<T[]> {
    const results = await Promise.all(
      handles.map(handle =>
        within(withinMs, method(handle.call, handle)).catch((error: unknown) => {
          if (error instanceof WorkerGone || error instanceof WorkerSilent) return undefined
          throw error
        })
      )
    )
    return results.filter((result): result is Awaited<T> & {} => result !== undefined)
  }

  /** Calls one that answers. @throws WorkerGone, WorkerSilent, and what the worker throws */
  async callAny<T>(method: (call: CallWorker) => Promise<T>, withinMs = callMs): Promise<T> {
    const answering = await this.answering()
    // Where none answers in time, all may only be slow.
    const [first = this.serving()[0]] = answering
    const any = answering.find(({ state }) => state?.isClosing === false) ?? first
    if (any === undefined) throw new WorkerGone('no worker serves')
    return await within(withinMs, method(any.call))
  }

  /** Asks those that serve and answer. */
  async askAll<T>(method: (call: CallWorker) => Promise<T>): Promise<T[]> {
    return await this.callAll(method, { handles: await this.answering(), withinMs: answerMs })
  }

  /** Those that serve and answer. They were just asked for their state. */
  async answering(handles = this.serving()): Promise<WorkerHandle[]> {
    const ask = async (_call: CallWorker, handle: WorkerHandle) => {
      await handle.ask()
      return handle
    }
    return await this.callAll(ask, { handles })
  }

  /** Builds it in all that serve. @throws what building throws, and when it takes too long */
  async build(number: number, config: Config): Promise<void> {
    const generation = { number, config: toCloneable(config) }
    await Promise.all(this.serving().map(handle => this.#build(handle, generation)))
  }

  /** Does not fail: another worker, which starts with it, replaces one that cannot take it. */
  async activate(number: number, config: Config): Promise<void> {
    const generation = { number, config: toCloneable(config) }
    // Before the calls, so that a worker that is starting takes it too.
    this.#inForce = generation
    await Promise.all(this.serving().map(handle => this.#activate(handle, generation)))
  }

  async #build(handle: WorkerHandle, generation: Numbered): Promise<void> {
    const { buildMs = callMs } = this.#options
    try {
      await handle.call('build', generation, buildMs)
      handle.built = generation.number
    } catch (err) {
      if (err instanceof WorkerGone) return
      if (!(err instanceof WorkerSilent)) throw err
      const [isSlow] = await this.answering([handle])
      const slow = `a worker has not built it within ${buildMs} ms`
      if (isSlow) throw new Error(slow, { cause: err })
      this.#end(handle, err, 'a worker hangs')
    }
  }

  async #activate(handle: WorkerHandle, generation: Numbered): Promise<void> {
    const { number } = generation
    const { buildMs = callMs } = this.#options
    try {
      // It may have begun to serve after the build.
      if (handle.built !== number) await this.#build(handle, generation)
      await handle.call('activate', { number }, buildMs)
    } catch (err) {
      if (err instanceof WorkerGone) return
      this.#end(handle, err, 'a worker could not take the config')
    }
  }

  async maintain(maintenance: readonly MaintenanceConfig[]): Promise<void> {
    // Before the calls, so that a worker that is starting takes it too.
    this.#maintenance = maintenance
    await this.callAll(call => call('maintain', { maintenance }), { withinMs: answerMs })
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

  /** @returns whether all requests finished within the time */
  async stop(graceMs: number, lingerMs: number): Promise<boolean> {
    this.#isStopping = true
    this.#listeners.close()
    await allAccepted(acceptWithinMs)
    const { stopMs = defaultStopMs } = this.#options
    const times = { graceMs, lingerMs, stopMs }
    const results = await Promise.all(this.#all().map(handle => handle.stop(times)))
    return results.every(Boolean)
  }

  async close(): Promise<void> {
    this.#isStopping = true
    this.#listeners.close()
    await Promise.all(this.#all().map(handle => handle.end()))
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
    const { index } = handle
    await handle.call('start', { index, count: this.#count, ...taken }, callMs)
    let maintenance: readonly MaintenanceConfig[] | undefined
    while (taken !== this.#inForce || maintenance !== this.#maintenance) {
      maintenance = this.#maintenance
      await handle.call('maintain', { maintenance }, callMs)
      if (taken === this.#inForce) continue
      const former = taken
      taken = this.#inForce
      await handle.call('build', taken, callMs)
      await handle.call('activate', { number: taken.number }, callMs)
      // The retirement of all could not reach it, and it has had no requests yet.
      await handle.call('retire', { number: former.number, graceMs: 0 }, callMs)
    }
    handle.isServing = true
    if (this.#isListening) await handle.call('listen', { fds: this.#listeners.fds() }, callMs)
  }

  #fork(index: number, failures: number): WorkerHandle {
    const worker = adopt(cluster.fork({ NODE_COMPILE_CACHE: getCompileCacheDir() ?? '' }))
    keepHandedConnections(worker)
    const { ledger, lender, log } = this.#options
    const handle: WorkerHandle = new WorkerHandle({
      index,
      worker,
      failures,
      onFailing: () => this.#drain(handle),
      log
    })
    this.#workers.set(index, handle)
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
      this.#workers.delete(index)
      handle?.kill()
      void this.#restart(index, failures + 1)
    }
  }

  /** Starts another in its place. */
  #end(handle: WorkerHandle, err: unknown, message: string): void {
    this.#replace(handle, { err }, message)
    handle.kill()
  }
}
