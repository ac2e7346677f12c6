/**
 * The running gateway: public server, operators' listener and the config in force: load → build →
 * listen → watch → swap → drain.
 */
import { availableParallelism } from 'node:os'
import { describeFault } from '../config/schema/faults.ts'
import { type GatewayConfig, usesRedis } from '../config/schema/gateway.ts'
import type { Config } from '../config/schema/config.ts'
import { configHashes } from '../config/load/config-hash.ts'
import type { Environment } from '../config/load/references.ts'
import { isAsRead, type Watch, watchFiles } from './reload/watcher.ts'
import { type Validate, validate } from './reload/validator.ts'
import { createUserReview } from './reload/user-review.ts'
import type { Attempt, Outcome, Trigger } from './reload/outcome.ts'
import { createReloader, type Reloader } from './reload/reload.ts'
import { createOpsServices, type OpsServices } from '../services/ops-services.ts'
import { Handover } from '../services/handover.ts'
import { createLogger, type Log } from '../services/services.ts'
import { createEnding, type Ending } from './ending.ts'
import { measureSessions } from './live-sessions.ts'
import type { Operated } from './operated.ts'
import { readinessOf, stateAtStart } from './readiness.ts'
import { openOperators, type Operators } from './operators.ts'
import type { Predecessor } from './restart/predecessor.ts'
import { Restart, type RestartOutcome } from './restart/restart.ts'
import type { Program } from './restart/successor.ts'
import type { Generation } from './server/generation.ts'
import { createPublicServer, type PublicServer } from './server/public-server.ts'
import { type AuditLedger, measureAudit, openAudit, reloadEntry } from './audit.ts'
import { measureConfig, version } from './status.ts'
import { createPrimary } from './cluster/primary.ts'

export interface Gateway {
  /** The address for the console, with the real port, also when config says 0. */
  readonly url: string
  readonly opsUrl: string
  /** Reads the config files and runs their config, or returns why not. */
  readonly reload: (by: Trigger) => Promise<Outcome>
  /** Starts a new process that takes the requests; this one drains then. */
  readonly restart: () => Promise<RestartOutcome>
  /** The id of the process that has replaced this one, which drains. */
  readonly successor: () => number | undefined
  /** Resolves once a new process has replaced this one, which has drained. */
  readonly replaced: Promise<void>
  /**
   * Reports not ready for `drain.notice`, then takes no new requests, and ends those in flight
   * after `drain.grace`.
   */
  readonly stop: (options?: { readonly noticeMs?: number }) => Promise<void>
}

/** The process around a gateway that may be replaced by a new one. */
interface Restartable {
  /** Undefined where the gateway is a part of another program. */
  readonly program?: Program | undefined
  /** Called after a restart that failed: this process stays the one that serves. */
  readonly onKept?: () => void
  /** The process that this one replaces, if any. */
  readonly predecessor?: Predecessor | undefined
}

/**
 * @param environment the values of references in config, at reloads
 * @throws when a listener cannot be opened; everything opened before is closed again
 */
export async function startGateway(
  config: Config,
  log = createLogger(config.gateway.log),
  environment: Environment = process.env,
  restartable: Restartable = {}
): Promise<Gateway> {
  for (const warning of config.warnings) log.warn({ config: warning.path }, describeFault(warning))
  const opened: Start['opened'] = []
  try {
    return await open({ config, log, environment, opened, ...restartable })
  } catch (error) {
    for (const close of opened.toReversed()) await Promise.try(close).catch(() => {})
    throw error
  }
}

interface Start extends Restartable {
  readonly config: Config
  readonly log: Log
  readonly environment: Environment
  /** Closes what was opened, when a later step fails. */
  readonly opened: Array<() => unknown>
}

async function open(start: Start): Promise<Gateway> {
  const { config, log, environment, opened } = start
  const { folder, gateway } = config
  const ledger = openAudit(config, log, opened)
  const state = stateAtStart(ledger)
  let watch: Watch | undefined
  let operators: Operators | undefined
  let ending: Ending | undefined
  const validateFiles: Validate = running =>
    validate({ folder, environment: { ...environment }, ...(running && { running }) })
  const count = workersOf(gateway)
  const handover = (await start.predecessor?.handover()) ?? new Handover()
  const publicServer = await openPublicServer({ ...start, count, ledger, handover })
  opened.push(publicServer.close)
  const first = await publicServer.create(1, config)
  await publicServer.activate(first)
  const measured = measureConfig(publicServer.metrics)
  measureSessions(publicServer.metrics, publicServer.countAlive)
  const userReview = createUserReview({ publicServer, log, isStopping: () => state.isStopping })
  const reloader = createReloader({
    first,
    validate: validateFiles,
    create: (number, next) => buildInAll(publicServer, operators, number, next),
    activate: publicServer.activate,
    ...userReview,
    onFiles: files => watch?.follow(files),
    onOutcome: recordOutcomes(measured.onOutcome, ledger),
    log
  })
  opened.push(reloader.close)
  measured.follow(reloader)
  opened.push(() => publicServer.stop(0))
  const readiness = async () => readinessOf(await publicServer.readiness(), reloader, state)
  const ops = openOpsServices({ config, log, publicServer, reloader, readiness, handover })
  opened.push(ops.close)
  ledger?.useRedis(ops.redis)
  state.maintenance = () => ops.maintenance.current()
  const { restart, successor } = new Restart({
    program: start.program,
    listeners: () => [...publicServer.descriptors(), ...(operators?.descriptors() ?? [])],
    handover,
    isStopping: () => state.isStopping,
    onReplaced: keepsSecretFile => void ending?.leave(keepsSecretFile),
    onKept: () => start.onKept?.(),
    log
  })
  operators = await openOperators({
    config,
    restart,
    handover,
    publicServer,
    reloader,
    readiness,
    validate: validateFiles,
    ops,
    ledger,
    log,
    opened
  })
  const urls = await listen(start, { publicServer, operators, ops })
  state.isListening = true
  // Requests need not wait for it: each session is reviewed when it is used as well.
  void userReview.reviewAtStart(reloader.current().config)
  watch = watchConfig(config, reloader)
  opened.push(() => watch?.close())
  logListening(log, urls, count)
  const endWatch = () => watch?.close()
  const parts = { config, publicServer, reloader, operators, ledger, ops, log }
  const { predecessor } = start
  ending = createEnding({ ...parts, state, endWatch, predecessor })
  const { stop, replaced } = ending
  return { ...urls, reload: reloader.reload, restart, successor, replaced, stop }
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
    await generation.retire(0)
    throw error
  }
}

interface Listening extends Pick<Operated, 'publicServer' | 'ops'> {
  readonly operators: Operators
}

type Urls = Pick<Gateway, 'url' | 'opsUrl'>

async function listen(
  { config, predecessor }: Start,
  { publicServer, operators, ops }: Listening
): Promise<Urls> {
  await predecessor?.takeOver(publicServer.readiness)
  const fds = predecessor?.descriptors(config)
  const opsUrl = await operators.listen(fds?.ops)
  // A maintenance that was begun before the start is in force from the first request on.
  await ops.read
  return { url: await publicServer.listen(fds), opsUrl }
}

function logListening(log: Log, { url, opsUrl }: Urls, count: number): void {
  const workers = count > 1 ? ` with ${count} workers` : ''
  log.info(
    { url, ops: opsUrl, ...(count > 1 && { workers: count }) },
    `listening on ${url}${workers}, for operators on ${opsUrl}`
  )
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

type Parts = Pick<
  Operated,
  'config' | 'log' | 'publicServer' | 'reloader' | 'readiness' | 'handover'
>

function openOpsServices({
  config,
  log,
  publicServer,
  reloader,
  readiness,
  handover
}: Parts): OpsServices {
  const { gateway, folder } = config
  return createOpsServices({
    gateway,
    folder,
    log,
    metrics: publicServer.metrics,
    version,
    handover,
    state: async () => ({
      generation: reloader.current().number,
      configHash: configHashes(reloader.current().config).config,
      ready: (await readiness()).ready,
      workers: publicServer.workers?.().length ?? 0
    }),
    onMaintenance: publicServer.maintain
  })
}

interface ServerOptions extends Pick<Start, 'config' | 'log' | 'environment'> {
  /** Of processes. */
  readonly count: number
  readonly ledger: AuditLedger | undefined
  readonly handover: Handover
}

/** Worker processes inherit the environment of this one. */
async function openPublicServer(options: ServerOptions): Promise<PublicServer> {
  const { count, config, log, environment, ledger, handover } = options
  const publicServer =
    count > 1
      ? await createPrimary({ count, config, log, ledger })
      : createPublicServer(config, log, { environment, ledger, handover })
  if (ledger !== undefined) measureAudit(publicServer.metrics, ledger)
  return publicServer
}

/** One process without Redis: others could not see its embedded store. */
function workersOf(gateway: GatewayConfig): number {
  if (!usesRedis(gateway)) return 1
  return gateway.server.workers === 'auto' ? availableParallelism() : gateway.server.workers
}

function watchConfig(
  { gateway: { reload }, inputs }: Config,
  reloader: Reloader
): Watch | undefined {
  if (!reload.watch) return undefined
  const onChange = () => void reloader.reload('files changed')
  const watch = watchFiles({
    files: Object.keys(inputs),
    settleMs: reload.settle,
    pollMs: reload.poll,
    onChange
  })
  // The files may have changed since they were read.
  if (!isAsRead(inputs)) onChange()
  return watch
}
