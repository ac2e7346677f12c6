/**
 * The running gateway: public server, operators' listener and the config in force: load → build →
 * listen → watch → swap → drain.
 */
import { randomBytes } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { setTimeout as wait } from 'node:timers/promises'
import { createGuard } from '../admin/guard.ts'
import { createHostCheck } from '../admin/hosts.ts'
import { type SecretFile, writeSecretFile } from '../admin/secret-file.ts'
import { splitHostPort } from '../config/schema/host-port.ts'
import { describeFault } from '../config/schema/faults.ts'
import { type GatewayConfig, usesRedis } from '../config/schema/gateway.ts'
import type { Config } from '../config/schema/config.ts'
import { comparePlan } from '../config/load/plan.ts'
import { openApi } from '../api-docs/openapi.ts'
import type { Environment } from '../config/load/references.ts'
import { isAsRead, type Watch, watchFiles } from './reload/watcher.ts'
import { createAdminServer, type Readiness } from '../admin/server.ts'
import { addConfigRoutes } from '../admin/config.ts'
import { validate, type Validated } from './reload/validator.ts'
import { createUserReview } from './reload/user-review.ts'
import type { Outcome, Trigger } from './reload/outcome.ts'
import { createReloader, type Reloader } from './reload/reload.ts'
import { createLogger, type Log } from '../services/services.ts'
import { urlOf } from './server/listeners.ts'
import { createPublicServer, type PublicServer } from './server/public-server.ts'
import { createStatus, measureConfig } from './status.ts'
import { createPrimary } from './cluster/primary.ts'

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
  environment: Environment = process.env
): Promise<Gateway> {
  for (const warning of config.warnings) log.warn({ config: warning.path }, describeFault(warning))
  const opened: Start['opened'] = []
  try {
    return await open({ config, log, environment, opened })
  } catch (error) {
    for (const close of opened.toReversed()) await Promise.try(close).catch(() => {})
    throw error
  }
}

interface Start {
  readonly config: Config
  readonly log: Log
  readonly environment: Environment
  /** Closes what was opened, when a later step fails. */
  readonly opened: Array<() => unknown>
}

type Validate = (running?: GatewayConfig) => Promise<Validated>

async function open({ config, log, environment, opened }: Start): Promise<Gateway> {
  const { folder, gateway } = config
  const state = { isStopping: false }
  let watch: Watch | undefined
  const validateFiles: Validate = running =>
    validate({ folder, environment: { ...environment }, ...(running && { running }) })
  const count = workersOf(gateway)
  const publicServer =
    count > 1 ? await createPrimary({ count, config, log }) : createPublicServer(config, log)
  opened.push(publicServer.close)
  const first = await publicServer.create(1, config)
  await publicServer.activate(first)
  const measured = measureConfig(publicServer.metrics)
  const userReview = createUserReview({ publicServer, log, isStopping: () => state.isStopping })
  const reloader = createReloader({
    first,
    validate: validateFiles,
    create: publicServer.create,
    activate: publicServer.activate,
    massClosing: userReview.massClosing,
    reviewUsers: userReview.reviewUsers,
    onFiles: files => watch?.follow(files),
    onOutcome: measured.onOutcome,
    log
  })
  opened.push(reloader.close)
  measured.follow(reloader)
  opened.push(() => publicServer.stop(0))
  const admin = await openAdmin({
    config,
    publicServer,
    reloader,
    readiness: async () => readinessOf(await publicServer.readiness(), reloader, state.isStopping),
    validate: validateFiles,
    log,
    opened
  })
  const url = await publicServer.listen()
  // Requests need not wait for it: each session is reviewed when it is used as well.
  void userReview.reviewAtStart(reloader.current().config)
  watch = watchConfig(config, reloader)
  opened.push(() => watch?.close())
  log.info(
    { url, ops: admin.url, ...(count > 1 && { workers: count }) },
    `listening on ${url}${count > 1 ? ` with ${count} workers` : ''}, for operators on ${admin.url}`
  )
  const stop = once(
    async ({ noticeMs = gateway.drain.notice }: { readonly noticeMs?: number } = {}) => {
      state.isStopping = true
      watch?.close()
      log.info(`stopping: not ready; taking requests for ${noticeMs} ms more`)
      await wait(noticeMs)
      if (!(await publicServer.stop(gateway.drain.grace))) {
        log.warn(`requests were still running after ${gateway.drain.grace} ms: cut`)
      }
      await reloader.close()
      await admin.close()
      await publicServer.close()
      log.info('stopped')
    }
  )
  return { url, opsUrl: admin.url, reload: reloader.reload, stop }
}

interface AdminOptions extends Omit<Start, 'environment'> {
  readonly publicServer: PublicServer
  readonly reloader: Reloader
  readonly readiness: () => Promise<Readiness>
  readonly validate: Validate
}

/** Opens the operators' listener. A secret that config does not set is written to a file. */
async function openAdmin({
  config,
  publicServer,
  reloader,
  readiness,
  validate: validateFiles,
  log,
  opened
}: AdminOptions): Promise<{ readonly url: string; readonly close: () => Promise<void> }> {
  const { listen, hosts, openMetrics, secret: configured } = config.gateway.ops
  const secret = configured ?? randomBytes(32).toString('base64url')
  const app = createAdminServer({
    readiness,
    metrics: { text: publicServer.metricsText },
    openApi: () => openApi(reloader.current().config),
    guard: createGuard({ secret, openMetrics }),
    checkHost: createHostCheck({ hosts, log })
  })
  publicServer.addAdminRoutes(app)
  addConfigRoutes(app, {
    status: createStatus(reloader, readiness, publicServer.workers),
    reload: confirmed => reloader.reload('operator', confirmed),
    rollback: reloader.rollback,
    plan: async balancerMs => {
      const { result } = await validateFiles()
      const { config: running } = reloader.current()
      if ('config' in result) return comparePlan(running, result.config, balancerMs)
      const faults = result.faults.filter(({ severity }) => severity === 'fault')
      return { faults: faults.map(describeFault) }
    }
  })
  opened.push(() => app.close())
  const address = splitHostPort(listen)
  await app.listen(address)
  const url = urlOf(address.host, app.server)
  const secretFile = configured === undefined ? leaveSecret(url, secret, log) : undefined
  opened.push(() => secretFile?.remove())
  return {
    url,
    close: async () => {
      await app.close()
      secretFile?.remove()
    }
  }
}

/** Without the file only local commands fail, so the gateway starts all the same. */
function leaveSecret(opsUrl: string, secret: string, log: Log): SecretFile | undefined {
  try {
    const secretFile = writeSecretFile(opsUrl.slice('http://'.length), secret)
    log.info(
      { file: secretFile.file },
      'ops.secret is not set: generated one for this run ' +
        'and wrote it to a file for commands on this machine'
    )
    return secretFile
  } catch (err) {
    log.warn(
      { err },
      'ops.secret is not set, and the generated one cannot be written to a file: ' +
        '`console-gateway status` and the other commands that ask this gateway are refused. ' +
        'Set ops.secret, or XDG_RUNTIME_DIR to a folder of this user'
    )
    return undefined
  }
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

function readinessOf(
  { ready, parts, ...others }: Readiness,
  reloader: Reloader,
  isStopping: boolean
): Readiness {
  return {
    ...others,
    ready: ready && !isStopping,
    parts: {
      ...(isStopping && { gateway: 'stopping' }),
      ...configPart(reloader),
      ...parts
    }
  }
}

/**
 * Information only: with a refused config a replica stays ready, since it runs the last good one.
 */
function configPart(reloader: Reloader): { readonly config?: string } {
  const files = reloader.files()
  if (files.state === 'running') return {}
  const reason = files.state === 'refused' ? `: ${files.faults[0] ?? ''}` : ''
  const { number } = reloader.current()
  return {
    config: `generation ${number} runs; the files were ${files.state} at ${files.since}${reason}`
  }
}

function once<A extends unknown[], T>(
  work: (...parameters: A) => Promise<T>
): (...parameters: A) => Promise<T> {
  let running: Promise<T> | undefined
  return (...parameters) => (running ??= work(...parameters))
}
