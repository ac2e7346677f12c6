/**
 * A worker process: serves the calls of the primary. Without it, `node:cluster` ends the process at
 * once.
 */
import packageJson from '../../../package.json' with { type: 'json' }
import { forwarded } from '../../admin/forwarded.ts'
import { createActLedger } from '../../admin/act-ledger.ts'
import { fromCloneable } from '../../config/load/cloneable.ts'
import { createAdminServer } from '../../admin/server.ts'
import type { Generation } from '../server/generation.ts'
import { catchUncaught } from '../server/uncaught.ts'
import { createLogger, type Log } from '../../services/services.ts'
import { createPublicServer, type PublicServer } from '../server/public-server.ts'
import type { LimitAnswers, LimitAsks } from './lease-messages.ts'
import { LeaseRelay } from './lease-relay.ts'
import { LedgerRelay } from './ledger-relay.ts'
import { servePrimary, reportFailing } from './rpc.ts'

// A terminal sends signals to all processes; only the primary acts on them.
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGUSR2'] as const) {
  process.on(signal, () => {})
}

let index = 0
let log: Log | undefined
let publicServer: PublicServer | undefined
let admin: ReturnType<typeof createAdminServer> | undefined
let relay: LedgerRelay | undefined
let limits: LeaseRelay | undefined
let graceMs = 0
/** Generations that take requests, drain, or are built and wait. */
const generations = new Map<number, Generation>()
let building: Promise<unknown> = Promise.resolve()

const started = () => {
  if (publicServer === undefined || admin === undefined) {
    throw new Error('the worker was not started')
  }
  return { publicServer, admin }
}

/** The time that a failing worker has to end after the drain. */
const endMs = 3000
/** The time to hand the last entries of the audit ledger to the primary. */
const flushMs = 1000
/** The time in which a request on an idle connection is still answered. */
const lingerMs = 500
let stopping: Promise<boolean> | undefined
let isClosing = false

async function stop(withinMs: number, idleMs: number): Promise<boolean> {
  stopping ??= drain(withinMs, idleMs)
  return await stopping
}

async function drain(withinMs: number, idleMs: number): Promise<boolean> {
  if (publicServer === undefined) return true
  const inTime = await publicServer.stop(withinMs, idleMs)
  await Promise.all([...generations.values()].map(generation => generation.retire(0)))
  isClosing = true
  await publicServer.close()
  return inTime
}

catchUncaught({
  log: () => (log ??= createLogger({ level: 'info', format: 'json' })),
  onFatal: () => {
    setTimeout(() => process.exit(1), graceMs + endMs)
    reportFailing()
    void endFailed()
  }
})

async function endFailed(): Promise<void> {
  await stop(graceMs, Math.min(lingerMs, graceMs)).catch(() => {})
  await handOver()
  process.exit(1)
}

/** What the primary does not have yet of limits and of the audit ledger. */
async function handOver(): Promise<void> {
  limits?.flush()
  await relay?.flush(flushMs)
}

function sendLimits(message: { readonly limits: LimitAsks }): boolean {
  if (!process.connected) return false
  // Without a callback, a message that cannot be sent is an `error` of the process.
  process.send?.(message, undefined, undefined, () => {})
  return true
}

process.on('message', ({ limits: answers }: { readonly limits?: LimitAnswers }) => {
  if (answers !== undefined) limits?.onAnswers(answers)
})

servePrimary({
  start: async ({ number, config: sent, ...worker }) => {
    const config = fromCloneable(sent)
    index = worker.index
    graceMs = config.gateway.drain.grace
    log = createLogger(config.gateway.log, undefined, { worker: index })
    if (config.gateway.audit !== undefined) relay = new LedgerRelay()
    limits = new LeaseRelay(sendLimits, worker.count, config.gateway.redis?.commandTimeout ?? 0)
    const server = createPublicServer(config, log, {
      environment: process.env,
      ledger: relay,
      machine: limits
    })
    publicServer = server
    admin = createAdminServer({
      readiness: server.readiness,
      metrics: server.metrics,
      openApi: () => Buffer.of(),
      access: 'checked elsewhere',
      version: packageJson.version,
      log,
      ledger: relay === undefined ? undefined : createActLedger({ ledger: relay, log })
    })
    server.addAdminRoutes(admin)
    const first = await server.create(number, config)
    generations.set(number, first)
    await server.activate(first)
    return true
  },
  listen: async ({ fds }) => await started().publicServer.listen(fds),
  build: async ({ number, config }) => {
    const build = async () => {
      const built = await started().publicServer.create(number, fromCloneable(config))
      generations.set(number, built)
    }
    const done = build()
    building = done.catch(() => {})
    await done
    return true
  },
  activate: async ({ number }) => {
    const generation = generations.get(number)
    if (generation === undefined) throw new Error(`generation ${number} was not built`)
    await started().publicServer.activate(generation)
    return true
  },
  drop: async ({ number }) => {
    // Another worker could not build it while this one still does.
    await building
    await generations.get(number)?.retire(0)
    generations.delete(number)
    return true
  },
  retire: async ({ number, graceMs: within }) => {
    const ended = (await generations.get(number)?.retire(within)) ?? 0
    generations.delete(number)
    return ended
  },
  maintain: async ({ maintenance }) => {
    await started().publicServer.maintain(maintenance)
    return true
  },
  state: async () => ({
    index,
    pid: process.pid,
    isClosing,
    readiness: await started().publicServer.readiness(),
    requests: Array.from(
      generations,
      ([number, generation]) => [number, generation.requests()] as const
    )
  }),
  observe: async ({ kind, query }) => {
    const observations = await started().publicServer.observe(kind, query)
    return observations.map(observation => ({ ...observation, worker: index }))
  },
  metrics: async ({ format }) => ({
    index,
    body: (await started().publicServer.metricsText(format)).body
  }),
  countAlive: async () => await started().publicServer.countAlive(),
  countEndings: async ({ before, after }) =>
    await started().publicServer.countEndings(before, after),
  reviewChanged: async ({ changed }) => await started().publicServer.reviewChanged(changed),
  reviewSignedIn: async ({ sources }) => await started().publicServer.reviewSignedIn(sources),
  findOperator: async ({ secretId }) => await started().publicServer.findOperator(secretId),
  admin: async ({ method, url, headers, body, forwarded: from }) => {
    const { 'content-length': _, ...rest } = headers
    const {
      statusCode,
      headers: { 'content-type': type = 'application/json', ...responseHeaders },
      body: text
    } = await forwarded.run(from, () =>
      started().admin.inject({
        method: method as 'GET',
        url,
        headers: rest,
        ...(body !== undefined && { payload: body as object })
      })
    )
    const { 'set-cookie': setCookie, 'retry-after': retryAfter } = responseHeaders
    const others = {
      ...(setCookie && { 'set-cookie': setCookie }),
      ...(retryAfter && { 'retry-after': retryAfter })
    }
    return { status: statusCode, type, text, headers: others }
  },
  audited: async reply => {
    relay?.onReply(reply)
    return true
  },
  stop: async ({ graceMs: within, lingerMs: idleMs }) => {
    const inTime = await stop(within, idleMs)
    await handOver()
    // After the reply.
    setImmediate(() => process.disconnect())
    return inTime
  }
})
