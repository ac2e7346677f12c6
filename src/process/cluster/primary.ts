/** Serving from several processes: starts them, keeps their number, has them take a config all or none, and puts together what they say. */
import cluster, { type Worker } from 'node:cluster'
import { getCompileCacheDir } from 'node:module'
import { extname } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Config } from '../../config/schema/config.ts'
import type { Generation } from '../server/generation.ts'
import { createMetrics } from '../../observability/metrics.ts'
import { mergeTexts } from './merge-metrics.ts'
import { sourcesOf } from '../../login/changed-users.ts'
import { adopt } from '../../observability/emitters.ts'
import { keepHandedConnections } from './handed-connections.ts'
import { measureStrayErrors } from '../server/uncaught.ts'
import type { Log } from '../../services/services.ts'
import type { PublicServer } from '../server/public-server.ts'
import { askWorker, type CallWorker, WorkerGone, type WorkerState } from './rpc.ts'

interface Options {
  readonly count: number
  readonly config: Config
  readonly log: Log
}

interface WorkerHandle {
  readonly index: number
  readonly worker: Worker
  readonly ask: CallWorker
  /** Serves the config that is in force. */
  up: boolean
  state?: WorkerState
}

const soonestMs = 100
const latestMs = 10_000
/** Who lived so long did not fail at the start. */
const soundAfterMs = 30_000
/** To one who has nothing left to do. */
const patienceMs = 3000

/** @throws when one of them cannot start */
export async function createPrimary({ count, config, log }: Options): Promise<PublicServer> {
  // The config goes over as it is, with what was read from secrets.
  cluster.setupPrimary({
    exec: fileURLToPath(new URL(`worker${extname(import.meta.url)}`, import.meta.url)),
    args: [],
    serialization: 'advanced'
  })
  let present = { number: 1, config }
  let listening = false
  let stopping = false
  const workers = new Map<number, WorkerHandle>()
  /** They had an uncaught error: they finish what is in flight, and end. Others stand in their place. */
  const draining = new Set<WorkerHandle>()
  const metrics = createMetrics()
  measureStrayErrors(metrics)
  const restarts = metrics
    .counter(
      'console_gateway_worker_restarts_total',
      'Workers that ended by themselves and were started anew.'
    )
    .with()
  metrics.read('console_gateway_workers', 'Workers that serve.', [], () => [[[], up().length]])

  function up() {
    return [...workers.values()].filter(one => one.up)
  }
  /** What each of those who serve says; who ends meanwhile says nothing. */
  async function askAll<T>(what: (ask: CallWorker) => Promise<T>, whom = up()): Promise<T[]> {
    const told = await Promise.all(
      whom.map(({ ask }) =>
        what(ask).catch((error: unknown) => {
          if (error instanceof WorkerGone) return undefined
          throw error
        })
      )
    )
    return told.filter((each): each is Awaited<T> & {} => each !== undefined)
  }

  async function askAny<T>(what: (ask: CallWorker) => Promise<T>): Promise<T> {
    const [any] = up()
    if (any === undefined) throw new WorkerGone('no worker serves')
    return await what(any.ask)
  }

  /** @returns once it serves what is in force, though that has changed meanwhile. @throws when it cannot */
  async function start(index: number, failures = 0): Promise<void> {
    const worker = adopt(cluster.fork({ NODE_COMPILE_CACHE: getCompileCacheDir() ?? '' }))
    keepHandedConnections(worker)
    const replace = (reason: object, message: string) => {
      const served = one.up
      one.up = false
      if (stopping || !served) return
      restarts.inc()
      log.error({ worker: index, ...reason }, `${message}; starting another in its place`)
      void restart(index, performance.now() - began < soundAfterMs ? failures + 1 : 0)
    }
    const onFailing = () => {
      draining.add(one)
      replace({}, 'a worker had an internal error and drains')
    }
    const one: WorkerHandle = { index, worker, ask: askWorker(worker, onFailing), up: false }
    workers.set(index, one)
    const began = performance.now()
    worker.once('exit', (code, signal) => {
      draining.delete(one)
      replace({ code, signal }, 'a worker ended')
    })
    let taken = present
    await one.ask('start', { index, ...taken })
    while (taken !== present) {
      taken = present
      await one.ask('build', taken)
      await one.ask('activate', { number: taken.number })
    }
    one.up = true
    if (listening) await one.ask('listen', {})
  }

  async function restart(index: number, failures: number): Promise<void> {
    // The first time at once.
    if (failures > 1) await wait(Math.min(soonestMs * 2 ** failures, latestMs))
    if (stopping) return
    try {
      await start(index, failures)
    } catch (err) {
      log.error({ worker: index, err }, 'a worker could not start; trying again')
      end(index)
      void restart(index, failures + 1)
    }
  }

  function end(index: number): void {
    const one = workers.get(index)
    workers.delete(index)
    one?.worker.process.kill('SIGKILL')
  }

  /** All of a generation, wherever its requests are. */
  const proxyOf = (number: number, its: Config): Generation => ({
    number,
    config: its,
    handle: () => {
      throw new Error('workers handle requests')
    },
    requests: () =>
      up().reduce(
        (sum, { state }) => sum + (state?.requests.find(([of]) => of === number)?.[1] ?? 0),
        0
      ),
    retire: async graceMs =>
      (await askAll(ask => ask('retire', { number, graceMs }))).reduce(
        (sum, ended) => sum + ended,
        0
      )
  })

  const serving: PublicServer = {
    create: async (number, next) => {
      if (number === present.number) return proxyOf(number, next)
      try {
        await askAll(async ask => await ask('build', { number, config: next }))
      } catch (error) {
        await askAll(ask => ask('drop', { number }))
        throw error
      }
      return proxyOf(number, next)
    },
    activate: async ({ number, config: next }) => {
      if (number === present.number) return
      // First of all: who starts just now takes it too.
      present = { number, config: next }
      await askAll(ask => ask('activate', { number }))
    },
    countEndings: async (before, after) => {
      return await askAny(ask =>
        ask('countEndings', { before: sourcesOf(before), after: sourcesOf(after) })
      )
    },
    reviewChanged: async changed => await askAny(ask => ask('reviewChanged', { changed })),
    reviewSignedIn: async sources => {
      return await askAny(ask => ask('reviewSignedIn', { sources: sourcesOf(sources) }))
    },
    listen: async () => {
      listening = true
      const [url = ''] = await askAll(ask => ask('listen', {}))
      return url
    },
    readiness: async () => {
      const states = await askAll(ask => ask('state', {}))
      for (const state of states) Object.assign(workers.get(state.index) ?? {}, { state })
      const best = states.find(({ readiness }) => readiness.ready) ?? states[0]
      return {
        ready: best?.readiness.ready === true,
        parts: { workers: `${states.length} of ${count}`, ...best?.readiness.parts }
      }
    },
    workers: () =>
      up().flatMap(({ index, state }) =>
        state === undefined ? [] : [{ worker: index, pid: state.pid, ready: state.readiness.ready }]
      ),
    metrics,
    metricsText: async () => {
      const own = await metrics.text()
      const texts = await askAll(async ask => ask('metrics', {}))
      return {
        type: own.type,
        body: mergeTexts([
          { labels: '', text: own.body },
          ...texts.map(({ index, body }) => ({ labels: `worker="${index}"`, text: body }))
        ])
      }
    },
    addAdminRoutes: ops => {
      // Whatever is not answered here.
      ops.all('/*', async ({ method, url, headers, body }, reply) => {
        const [any] = up()
        if (any === undefined) return await reply.code(503).send({ error: 'No worker is running.' })
        const { status, type, text } = await any.ask('admin', {
          method,
          url,
          headers,
          ...(body !== undefined && { body })
        })
        return await reply.code(status).type(type).send(text)
      })
    },
    stop: async graceMs => {
      stopping = true
      const whom = [...workers.values(), ...draining]
      const all = await askAll(ask => ask('stop', { graceMs }), whom)
      return all.every(Boolean)
    },
    close: async () => {
      stopping = true
      await Promise.all(
        [...workers.values(), ...draining].map(async ({ worker }) => {
          if (worker.isDead()) return
          const gone = new Promise<void>(resolve => {
            worker.once('exit', () => resolve())
          })
          // It ends itself when it is left alone, with all it has to log.
          if (worker.isConnected()) worker.process.disconnect()
          const patience = setTimeout(() => worker.process.kill('SIGKILL'), patienceMs)
          await gone
          clearTimeout(patience)
        })
      )
    }
  }
  try {
    await Promise.all(Array.from({ length: count }, (_, n) => start(n + 1)))
  } catch (error) {
    await serving.close()
    throw error
  }
  return serving
}
