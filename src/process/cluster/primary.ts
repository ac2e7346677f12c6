/**
 * Serves from several processes: all workers take a config or none does, and their answers are
 * merged.
 */
import type { FastifyInstance, RouteHandlerMethod } from 'fastify'
import { apiPrefix, type Paths, pathsIn } from '../../admin/api.ts'
import { secretOperator } from '../../admin/operator.ts'
import { signInPath } from '../../admin/sign-in.ts'
import { stateOf } from '../../admin/dependencies.ts'
import type { Readiness } from '../../admin/server.ts'
import { forwardedOf } from '../../admin/forwarded.ts'
import type { Config } from '../../config/schema/config.ts'
import { sourcesOf } from '../../login/changed-users.ts'
import { measureEventLoop } from '../../observability/event-loop.ts'
import { createMetrics, type Metrics, type MetricsText } from '../../observability/metrics.ts'
import type { MetricsFormat } from '../../observability/metrics-text.ts'
import type { Log } from '../../services/services.ts'
import type { Generation } from '../server/generation.ts'
import type { PublicServer } from '../server/public-server.ts'
import { measureStrayErrors } from '../server/uncaught.ts'
import { LeaseLender } from './lease-lender.ts'
import type { WorkersLedger } from './ledger-relay.ts'
import { mergeTexts } from './merge-metrics.ts'
import { callMs, firstGeneration, WorkerPool } from './worker-pool.ts'

interface Options {
  readonly count: number
  readonly config: Config
  readonly log: Log
  readonly ledger?: WorkersLedger | undefined
}

/** A worker reads all sessions. Longer, so that no second review begins beside it. */
const reviewMs = 600_000

/** @throws when a worker cannot start */
export async function createPrimary({
  count,
  config,
  log,
  ledger
}: Options): Promise<PublicServer> {
  const metrics = createMetrics()
  measureStrayErrors(metrics)
  const endEventLoop = measureEventLoop(metrics)
  const restarts = metrics
    .counter(
      'console_gateway_worker_restarts_total',
      'Workers that ended by themselves and were started anew.'
    )
    .with()
  const lender = openLender(config, metrics, count)
  const pool = new WorkerPool({ config, log, onRestart: () => restarts.inc(), ledger, lender })
  metrics.read('console_gateway_workers', 'Workers that serve and answer.', [], () => [
    [[], pool.serving().filter(({ isSilent }) => !isSilent).length]
  ])
  try {
    await pool.start(count)
  } catch (error) {
    endEventLoop()
    await pool.close()
    await lender?.close()
    throw error
  }
  return {
    create: (number, next) => buildInAll(pool, number, next),
    activate: async ({ number, config: next }) => {
      if (number !== firstGeneration) await pool.activate(number, next)
    },
    countEndings: (before, after) =>
      pool.callAny(
        call => call('countEndings', { before: sourcesOf(before), after: sourcesOf(after) }),
        reviewMs
      ),
    reviewChanged: changed => pool.callAny(call => call('reviewChanged', { changed }), reviewMs),
    reviewSignedIn: sources =>
      pool.callAny(call => call('reviewSignedIn', { sources: sourcesOf(sources) }), reviewMs),
    maintain: maintenance => pool.maintain(maintenance),
    listen: fds => pool.listen(fds),
    descriptors: () => pool.descriptors(),
    countAlive: () => pool.callAny(call => call('countAlive', {})),
    readiness: async () => {
      const states = (await pool.answering()).flatMap(({ state }) => state ?? [])
      const best = states.find(({ readiness }) => readiness.ready) ?? states[0]
      return {
        ready: best?.readiness.ready === true,
        parts: { workers: `${states.length} of ${count}`, ...best?.readiness.parts },
        redis: mergeRedis(states.flatMap(({ readiness: { redis } }) => redis ?? [])),
        upstreams: mergeUpstreams(states.map(({ readiness }) => readiness.upstreams ?? []))
      }
    },
    workers: () =>
      pool
        .serving()
        .flatMap(({ index, state, isSilent }) =>
          state === undefined
            ? []
            : [{ worker: index, pid: state.pid, ready: state.readiness.ready && !isSilent }]
        ),
    findOperator: secretId => pool.callAny(call => call('findOperator', { secretId })),
    metrics,
    observe: async (kind, query) =>
      (await pool.askAll(call => call('observe', { kind, query }))).flat(),
    metricsText: format => metricsTextOf(pool, metrics, format),
    addAdminRoutes: app => forwardToWorker(app, pool),
    stop: (graceMs, lingerMs = 0) => pool.stop(graceMs, lingerMs),
    close: async () => {
      endEventLoop()
      await pool.close()
      await lender?.close()
    }
  }
}

function openLender(config: Config, metrics: Metrics, workers: number): LeaseLender | undefined {
  const { folder, gateway } = config
  return gateway.redis && new LeaseLender({ redis: gateway.redis, folder, metrics, workers })
}

type Upstreams = NonNullable<Readiness['upstreams']>

/** Each worker has connections of its own, also to Redis. */
function mergeRedis(ofWorkers: ReadonlyArray<NonNullable<Readiness['redis']>>): Readiness['redis'] {
  if (ofWorkers.length === 0) return undefined
  const working = ofWorkers.filter(({ state }) => state === 'up')
  return {
    state: stateOf(working.length, ofWorkers.length),
    since: Math.max(...ofWorkers.map(({ since }) => since))
  }
}

/** Each worker has connections of its own: an address is as it is for the one that it fails. */
function mergeUpstreams(ofWorkers: readonly Upstreams[]): Upstreams {
  const merged = new Map<string, Upstreams[number]>()
  for (const status of ofWorkers.flat()) {
    const key = `${status.upstream} ${status.address}`
    const before = merged.get(key)
    const worse = before === undefined || before.state === 'up' ? status : before
    const inFlight = status.inFlight + (before?.inFlight ?? 0)
    merged.set(key, { ...worse, inFlight })
  }
  return [...merged.values()]
}

async function buildInAll(pool: WorkerPool, number: number, config: Config): Promise<Generation> {
  // Workers build the first one, and put it in force, as they start.
  if (number === firstGeneration) return generationOf(pool, number, config)
  try {
    await pool.build(number, config)
  } catch (error) {
    await pool.callAll(call => call('drop', { number }))
    throw error
  }
  return generationOf(pool, number, config)
}

/** A generation whose requests are the sum of the workers'. */
function generationOf(pool: WorkerPool, number: number, config: Config): Generation {
  return {
    number,
    config,
    handle: () => {
      throw new Error('workers handle requests')
    },
    responsesOf: () => [],
    requests: () =>
      sum(
        pool
          .serving()
          .map(({ state }) => state?.requests.find(([each]) => each === number)?.[1] ?? 0)
      ),
    retire: async graceMs =>
      sum(
        await pool.callAll(call => call('retire', { number, graceMs }), {
          withinMs: graceMs + callMs
        })
      )
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

async function metricsTextOf(
  pool: WorkerPool,
  metrics: Metrics,
  format: MetricsFormat = 'prometheus'
): Promise<MetricsText> {
  // Before the count of those that answer.
  const texts = await pool.askAll(call => call('metrics', { format }))
  const { type, body } = await metrics.text(format)
  const ofWorkers = texts.map(({ index, body: text }) => ({ labels: `worker="${index}"`, text }))
  return { type, body: mergeTexts([{ labels: '', text: body }, ...ofWorkers], format) }
}

/** Paths that the primary does not answer itself go to one of the workers. */
function forwardToWorker(app: FastifyInstance, pool: WorkerPool): void {
  const forward: RouteHandlerMethod = async (request, reply) => {
    const { method, url, headers, body } = request
    if (pool.serving().length === 0) {
      return await reply.code(503).send({ error: 'No worker is running.' })
    }
    const { authorization: _, cookie: _cookie, ...forwardedHeaders } = headers
    const response = await pool.callAny(call =>
      call('admin', {
        method,
        url,
        headers: forwardedHeaders,
        ...(body !== undefined && { body }),
        forwarded: forwardedOf(request)
      })
    )
    const { status, type, text, headers: others } = response
    return await reply.code(status).type(type).headers(others).send(text)
  }
  app.post(signInPath, { config: { isOpen: true } }, forward)
  app.all('/*', forward)
  app.describeAlso(() => describedByWorker(pool))
}

/** The paths of the operators' API that workers answer. */
async function describedByWorker(pool: WorkerPool): Promise<Paths> {
  const { text } = await pool.callAny(call =>
    call('admin', {
      method: 'GET',
      url: `${apiPrefix}/openapi.json`,
      headers: { host: 'localhost' },
      forwarded: { operator: secretOperator, requestId: '', address: '' }
    })
  )
  return pathsIn(text)
}
