/**
 * The running gateway: public server, operators' listener and the config in force: load → build →
 * listen → watch → swap → drain.
 */
import { describeFault } from '../config/schema/faults.ts'
import type { Config } from '../config/schema/config.ts'
import { saveLastGood } from '../config/load/last-good.ts'
import type { Environment } from '../config/load/references.ts'
import { isAsRead, type Watch, watchFiles } from './reload/watcher.ts'
import { type Validate, validate } from './reload/validator.ts'
import { createUserReview } from './reload/user-review.ts'
import type { Attempt, Outcome, Refused, Trigger } from './reload/outcome.ts'
import { createReloader, type Reloader } from './reload/reload.ts'
import { Fleet, type ReplicaState } from '../services/fleet.ts'
import { createLogger, type Log } from '../services/services.ts'
import { createStop } from './ending.ts'
import { measureSessions } from './live-sessions.ts'
import { createSeal } from '../session/seal.ts'
import { takeListenFds } from './listen-fds.ts'
import { createState, type Life } from './state.ts'
import { openOperators, type Operators } from './operators.ts'
import type { Generation } from './server/generation.ts'
import { createPublicServer, type PublicServer } from './server/public-server.ts'
import type { AuditLedger } from '../observability/audit/ledger.ts'
import type { GatewayState } from '../observability/gateway-state.ts'
import { measureAudit, openAudit, reloadEntry, storeHeads } from './audit.ts'
import { measureConfig } from './status.ts'

export interface Gateway {
  /** The address for the console, with the real port, also when config says 0. */
  readonly url: string
  readonly opsUrl: string
  /** Reads the config files and runs their config, or returns why not. */
  readonly reload: (by: Trigger) => Promise<Outcome>
  /**
   * Reports not ready for `drain.notice`, then takes no new requests, and ends those in flight
   * after `drain.grace`.
   */
  readonly stop: (options?: { readonly noticeMs?: number }) => Promise<void>
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
  const opened: Start['opened'] = []
  try {
    return await open({ config, log, environment, atStart, opened })
  } catch (error) {
    for (const close of opened.toReversed()) await Promise.try(close).catch(() => {})
    throw error
  }
}

interface FilesAtStart {
  /** The folder where the config that runs is kept. */
  readonly state?: string | undefined
  readonly refused?: Refused | undefined
}

interface Start {
  readonly config: Config
  readonly log: Log
  readonly environment: Environment
  readonly atStart: FilesAtStart
  /** Closes what was opened, when a later step fails. */
  readonly opened: Array<() => unknown>
}

async function open(start: Start): Promise<Gateway> {
  const { config, log, environment, atStart, opened } = start
  const { folder } = config
  const ledger = openAudit(config, log)
  opened.push(() => ledger?.close())
  const life: Life = { phase: 'starting' }
  let watch: Watch | undefined
  let operators: Operators | undefined
  const validateFiles: Validate = running => validate(folder, { ...environment }, running)
  const publicServer = createPublicServer(config, log, ledger)
  if (ledger !== undefined) measureAudit(publicServer.metrics, ledger)
  opened.push(publicServer.close)
  publicServer.activate(await publicServer.create(1, config))
  const measured = measureConfig(publicServer.metrics)
  measureSessions(publicServer.metrics, publicServer.countAlive)
  const userReview = createUserReview({
    publicServer,
    log,
    isStopping: () => life.phase === 'stopping'
  })
  const reloader = createReloader({
    generations: publicServer.generations,
    validate: validateFiles,
    create: (number, next) => buildInAll(publicServer, operators, number, next),
    activate: publicServer.activate,
    ...userReview,
    onFiles: files => watch?.follow(files),
    onOutcome: recordOutcomes(measured.onOutcome, ledger),
    onTaken: keepLastGood(atStart.state, log),
    refused: atStart.refused,
    log
  })
  opened.push(reloader.close)
  measured.follow(reloader)
  opened.push(() => publicServer.stop(0))
  const { strictRedis } = config.gateway.ops
  const state = createState({ life, publicServer, reloader, ledger, strictRedis })
  const fleet = new Fleet({
    id: publicServer.replica,
    ...publicServer.background,
    seal: createSeal(publicServer.secrets, 'replica'),
    describe: () => describeReplica(state(), publicServer),
    onMaintenance: sealed => publicServer.maintenance.take(sealed)
  })
  opened.push(() => fleet.close())
  if (ledger !== undefined) storeHeads(ledger, config, publicServer.background)
  operators = await openOperators({
    config,
    publicServer,
    reloader,
    state,
    validate: validateFiles,
    fleet,
    ledger,
    log,
    opened
  })
  const held = takeListenFds()
  const opsUrl = await operators.listen(held.ops)
  // A maintenance that was begun before the start is in force from the first request on.
  await fleet.begin()
  const url = await publicServer.listen(held)
  life.phase = 'serving'
  // Requests need not wait for it: each session is reviewed when it is used as well.
  void userReview.reviewAtStart(reloader.current().config)
  watch = watchConfig(config, reloader)
  opened.push(() => watch?.close())
  log.info({ url, ops: opsUrl }, `listening on ${url}, for operators on ${opsUrl}`)
  const endWatch = () => watch?.close()
  const parts = { config, publicServer, reloader, operators, ledger, fleet, log }
  return { url, opsUrl, reload: reloader.reload, stop: createStop({ ...parts, life, endWatch }) }
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

/** Measures what becomes of a reload, and records it in the audit ledger. */
function recordOutcomes(
  measure: (outcome: Outcome['outcome']) => void,
  ledger: AuditLedger | undefined
): (outcome: Outcome, attempt: Attempt) => void {
  return (outcome, attempt) => {
    measure(outcome.outcome)
    if (outcome.outcome !== 'unchanged') ledger?.append(reloadEntry(attempt, outcome))
  }
}

/** What other replicas and operators see of this one. */
function describeReplica(
  { version, startedAt, ready, config }: GatewayState,
  publicServer: PublicServer
): ReplicaState {
  const { generation, hash, files, restartNeeded } = config
  const { requestsPerSecond, errorShare, inFlight, queued, p99Ms } = publicServer.present.read()
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
  const watch = watchFiles({
    files: Object.keys(inputs),
    onChange
  })
  // The files may have changed since they were read.
  if (!isAsRead(inputs)) onChange()
  return watch
}
