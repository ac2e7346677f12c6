/**
 * The running gateway: public server, operators' listener and the config in force: load → build →
 * listen → watch → swap → drain.
 */
import { setTimeout as wait } from 'node:timers/promises'
import { describeFault } from '../config/schema/faults.ts'
import type { Config } from '../config/schema/config.ts'
import { saveLastGood } from '../config/load/last-good.ts'
import type { Environment } from '../config/load/references.ts'
import { isAsRead, type Watch, watchFiles } from './reload/watcher.ts'
import { type Validate, validate } from './reload/validator.ts'
import { createUserReview } from './reload/user-review.ts'
import type { Outcome, Refused, Trigger } from './reload/outcome.ts'
import { Reloader } from './reload/reload.ts'
import { Fleet, type ReplicaState } from '../services/fleet.ts'
import { createLogger, type Log } from '../services/services.ts'
import { measureSessions } from './live-sessions.ts'
import { createSeal } from '../session/seal.ts'
import { takeListenFds } from './listen-fds.ts'
import { createState, type Life } from './state.ts'
import { createOperators, type Operators } from './operators.ts'
import type { Generation } from './server/generation.ts'
import { createPublicServer, type PublicServer } from './server/public-server.ts'
import type { GatewayState } from '../observability/gateway-state.ts'
import { measureAudit, openAudit, reloadEntry, storeHeads } from './audit.ts'
import { countReload, measureConfig } from './status.ts'

export interface Gateway {
  /** The address for the console, with the real port, also when config says 0. */
  readonly url: string
  readonly opsUrl: string
  /** Reads the config files and runs their config, or returns why not. */
  readonly reload: (by: Trigger) => Promise<Outcome>
  /**
   * Reports not ready for `drain.notice`, then takes no new requests, and ends those in flight
   * after `drain.grace`. Further calls wait for the same end.
   */
  readonly stop: (options?: { readonly noticeMs?: number }) => Promise<void>
}

interface FilesAtStart {
  /** The folder where the config that runs is kept. */
  readonly state?: string | undefined
  readonly refused?: Refused | undefined
}

/**
 * @param environment the values of references in config, at reloads
 * @throws when a listener cannot be opened; everything opened before is closed again
 */
export async function startGateway(
  config: Config,
  log = createLogger(config.gateway.log),
  environment: Environment = process.env,
  atStart: FilesAtStart = {}
): Promise<Gateway> {
  for (const warning of config.warnings) log.warn({ config: warning.path }, describeFault(warning))
  const opened = new AsyncDisposableStack()
  try {
    return await open({ config, log, environment, atStart, opened })
  } catch (error) {
    await opened.disposeAsync().catch(() => {})
    throw error
  }
}

interface Start {
  readonly config: Config
  readonly log: Log
  readonly environment: Environment
  readonly atStart: FilesAtStart
  /** Closes what was opened, the last first: at the end, and when a later step of the start fails. */
  readonly opened: AsyncDisposableStack
}

async function open(start: Start): Promise<Gateway> {
  const { config, log, environment, atStart, opened } = start
  const life: Life = { phase: 'starting' }
  let watch: Watch | undefined
  let operators: Operators | undefined
  const ledger = openAudit(config, log)
  const publicServer = createPublicServer(config, log, ledger)
  const { services, generations } = publicServer
  opened.defer(publicServer.close)
  opened.defer(() => ledger?.close())
  publicServer.activate(await publicServer.create(1, config))
  const validateFiles: Validate = running => validate(config.folder, { ...environment }, running)
  const userReview = createUserReview({
    config,
    sessions: services.sessions,
    log,
    isStopping: () => life.phase === 'stopping'
  })
  const reloader = new Reloader({
    generations,
    validate: validateFiles,
    create: (number, next) => buildInAll(publicServer, operators, number, next),
    activate: publicServer.activate,
    reviewUsers: userReview.reviewUsers,
    onFiles: files => watch?.follow(files),
    onOutcome: (outcome, by, operator) => {
      countReload(services.metrics, outcome.outcome)
      if (outcome.outcome !== 'unchanged') ledger?.append(reloadEntry(outcome, by, operator))
    },
    onTaken: keepLastGood(atStart.state, log),
    refused: atStart.refused,
    log
  })
  opened.defer(() => reloader.close())
  opened.defer(async () => void (await publicServer.stop(0)))
  measureConfig(services.metrics, reloader, generations)
  measureSessions(services.metrics, services.sessions.countAlive)
  if (ledger !== undefined) measureAudit(services.metrics, ledger)
  const state = createState({ life, publicServer, reloader, ledger })
  const fleet = createFleet(publicServer, state)
  opened.defer(() => fleet.close())
  if (ledger !== undefined) storeHeads(ledger, config, services.background)
  operators = createOperators({
    config,
    publicServer,
    reloader,
    state,
    validate: validateFiles,
    fleet,
    ledger,
    log
  })
  opened.defer(operators.close)
  const held = takeListenFds()
  const opsUrl = await operators.listen(held.ops)
  // A maintenance that was begun before the start is in force from the first request on.
  await fleet.begin()
  const url = await publicServer.listen(held)
  life.phase = 'serving'
  // Requests need not wait for it: each session is reviewed when it is used as well.
  void userReview.reviewAll()
  watch = watchConfig(config, reloader)
  opened.defer(() => watch?.close())
  log.info({ url, ops: opsUrl }, `listening on ${url}, for operators on ${opsUrl}`)
  const reload = (by: Trigger) => reloader.reload(by)
  return { url, opsUrl, reload, stop: createStop(start, life, publicServer) }
}

/** @throws what building throws, also where operators cannot be served; nothing is left then */
async function buildInAll(
  publicServer: PublicServer,
  operators: Operators | undefined,
  number: number,
  config: Config
): Promise<Generation> {
  const generation = await publicServer.create(number, config)
  try {
    // What cannot be taken must not be found out when requests see the config.
    operators?.takeCertificate(config)
    return generation
  } catch (error) {
    await generation.end()
    throw error
  }
}

/** A config that cannot be kept runs all the same. */
function keepLastGood(state: string | undefined, log: Log): (config: Config) => void {
  return config => {
    try {
      if (state !== undefined) saveLastGood(state, config)
    } catch (err) {
      log.warn({ event: 'config.not-kept', err }, `the config cannot be kept in ${state}`)
    }
  }
}

function createFleet(publicServer: PublicServer, state: () => GatewayState): Fleet {
  const { services, maintenance } = publicServer
  return new Fleet({
    id: services.replica,
    ...services.background,
    seal: createSeal(services.secrets, 'replica'),
    describe: () => describeReplica(state(), publicServer),
    onMaintenance: sealed => maintenance.take(sealed)
  })
}

/** What other replicas and operators see of this one. */
function describeReplica(
  { version, startedAt, ready, config }: GatewayState,
  { present }: Pick<PublicServer, 'present'>
): ReplicaState {
  const { generation, hash, files, restartNeeded } = config
  const { requestsPerSecond, errorShare, inFlight, queued, p99Ms } = present.read()
  return {
    version,
    pid: process.pid,
    startedAt,
    ready,
    generation,
    configHash: hash,
    files: files.state,
    since: files.state === 'refused' ? files.since : undefined,
    fault: files.faults?.[0],
    restartNeeded: [...restartNeeded],
    ...{ requestsPerSecond, errorShare, inFlight, queued, p99Ms }
  }
}

function watchConfig(
  { gateway: { reload }, inputs }: Config,
  reloader: Reloader
): Watch | undefined {
  if (!reload.watch) return undefined
  const onChange = () => void reloader.reload('files changed')
  const watch = watchFiles({ files: Object.keys(inputs), onChange })
  // The files may have changed since they were read.
  if (!isAsRead(inputs)) onChange()
  return watch
}

function createStop(
  { config, log, opened }: Start,
  life: Life,
  publicServer: PublicServer
): Gateway['stop'] {
  const { drain } = config.gateway
  let stopping: Promise<void> | undefined

  async function stop(noticeMs: number): Promise<void> {
    life.phase = 'stopping'
    // Kept connections go elsewhere, or wait for the next process, before this one ends.
    if (noticeMs > 0) publicServer.leave()
    log.info(`stopping: not ready; taking requests for ${noticeMs} ms more`)
    await wait(noticeMs)
    if (!(await publicServer.stop(drain.grace))) {
      log.warn(`requests were still running after ${drain.grace} ms: cut`)
    }
    await opened.disposeAsync()
    log.info('stopped')
  }

  return ({ noticeMs = drain.notice } = {}) => (stopping ??= stop(noticeMs))
}
