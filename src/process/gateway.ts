/** The whole that runs: who serves, the operators' listener, and the config that is in force: load → build → listen → watch → swap → drain. */
import { randomBytes } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { setTimeout as wait } from 'node:timers/promises'
import { createGuard } from '../admin/guard.ts'
import { createHostCheck } from '../admin/hosts.ts'
import { type SecretFile, writeSecretFile } from '../admin/secret-file.ts'
import { describeFault } from '../config/schema/faults.ts'
import { type GatewayConfig, usesRedis } from '../config/schema/gateway.ts'
import type { Config } from '../config/schema/config.ts'
import { comparePlan } from '../config/load/plan.ts'
import { openApi } from '../api-docs/openapi.ts'
import type { Environment } from '../config/load/references.ts'
import { isAsRead, watchFiles } from './reload/watcher.ts'
import { createAdminServer, type Readiness } from '../admin/server.ts'
import { addConfigRoutes } from '../admin/config.ts'
import { validate } from './reload/validator.ts'
import { createUserReview } from './reload/user-review.ts'
import { createReloader, type Outcome, type Reloader, type Trigger } from './reload/reload.ts'
import { createLogger, type Log } from '../services/services.ts'
import { createPublicServer, splitAddress, urlOf } from './server/public-server.ts'
import { createStatus, measureConfig } from './status.ts'
import { createPrimary } from './cluster/primary.ts'

export interface Gateway {
  /** Where the console reaches it; the port is the real one, also where config says 0. */
  readonly url: string
  readonly opsUrl: string
  /** Reads the config files and takes what they say, or says why not. */
  readonly reload: (by: Trigger) => Promise<Outcome>
  /** Not ready, then no new requests, then an end for those in flight. Takes `drain.notice` and at most `drain.grace`. */
  readonly stop: (options?: { readonly noticeMs?: number }) => Promise<void>
}

/**
 * @param environment what references in config stand for, at reloads
 * @throws when a listener cannot be had; what was opened by then is closed again
 */
export async function startGateway(
  config: Config,
  log = createLogger(config.gateway.log),
  environment: Environment = process.env
): Promise<Gateway> {
  const {
    gateway: { ops: opsSettings, drain }
  } = config
  for (const warning of config.warnings) log.warn({ config: warning.path }, describeFault(warning))
  const count = workersOf(config.gateway)
  const state = { stopping: false }
  const opened: Array<() => unknown> = []
  try {
    const serving =
      count > 1 ? await createPrimary({ count, config, log }) : createPublicServer(config, log)
    opened.push(serving.close)
    const first = await serving.create(1, config)
    await serving.activate(first)
    const measured = measureConfig(serving.metrics)
    const userReview = createUserReview({ serving, log, isStopping: () => state.stopping })
    const reloader = createReloader({
      massClosing: userReview.massClosing,
      reviewUsers: userReview.reviewUsers,
      first,
      validate: running =>
        validate({ folder: config.folder, environment: { ...environment }, running }),
      create: serving.create,
      activate: serving.activate,
      onFiles: files => watch?.follow(files),
      onOutcome: measured.onOutcome,
      log
    })
    opened.push(reloader.close)
    measured.follow(reloader)
    opened.push(() => serving.stop(0))
    const ready = async () => readiness(await serving.readiness(), reloader, state.stopping)
    const secret = opsSettings.secret ?? randomBytes(32).toString('base64url')
    const ops = createAdminServer({
      readiness: ready,
      metrics: { text: serving.metricsText },
      openApi: () => openApi(reloader.current().config),
      guard: createGuard({ secret, openMetrics: opsSettings.openMetrics }),
      checkHost: createHostCheck({ hosts: opsSettings.hosts, log })
    })
    serving.addAdminRoutes(ops)
    addConfigRoutes(ops, {
      status: createStatus(reloader, ready, serving.workers),
      reload: confirmed => reloader.reload('operator', confirmed),
      rollback: reloader.rollback,
      plan: async balancerMs => {
        const { result } = await validate({
          folder: config.folder,
          environment: { ...environment }
        })
        const { config: running } = reloader.current()
        if ('config' in result) return comparePlan(running, result.config, balancerMs)
        const faults = result.faults.filter(({ severity }) => severity === 'fault')
        return { faults: faults.map(describeFault) }
      }
    })
    opened.push(() => ops.close())
    const opsAddress = splitAddress(opsSettings.listen)
    await ops.listen(opsAddress)
    const opsUrl = urlOf(opsAddress.host, ops.server)
    const isMadeUp = opsSettings.secret === undefined
    const secretFile = isMadeUp ? leaveSecret(opsUrl, secret, log) : undefined
    opened.push(() => secretFile?.remove())
    const url = await serving.listen()
    // Requests need not wait for it: each session is judged when it is used as well.
    void userReview.reviewAtStart(reloader.current().config)
    const watch = watchConfig(config, reloader)
    opened.push(() => watch?.close())
    log.info(
      { url, ops: opsUrl, ...(count > 1 && { workers: count }) },
      `listening on ${url}${count > 1 ? ` with ${count} workers` : ''}, for operators on ${opsUrl}`
    )
    const stop = once(async ({ noticeMs = drain.notice }: { readonly noticeMs?: number } = {}) => {
      state.stopping = true
      watch?.close()
      log.info(`stopping: not ready; taking requests for ${noticeMs} ms more`)
      await wait(noticeMs)
      if (!(await serving.stop(drain.grace)))
        log.warn(`requests were still running after ${drain.grace} ms: cut`)
      await reloader.close()
      await ops.close()
      secretFile?.remove()
      await serving.close()
      log.info('stopped')
    })
    return { url, opsUrl, reload: reloader.reload, stop }
  } catch (error) {
    for (const close of opened.toReversed()) await Promise.try(close).catch(() => {})
    throw error
  }
}

/** Without the file only local commands fail, so the gateway serves all the same. */
function leaveSecret(opsUrl: string, secret: string, log: Log): SecretFile | undefined {
  try {
    const secretFile = writeSecretFile(opsUrl.slice('http://'.length), secret)
    log.info(
      { file: secretFile.file },
      'ops.secret is not set: made one up for this run ' +
        'and left it in a file for commands on this machine'
    )
    return secretFile
  } catch (err) {
    log.warn(
      { err },
      'ops.secret is not set, and no folder can hold the one that was made up: ' +
        '`console-gateway status` and the other commands that ask this gateway are refused. ' +
        'Set ops.secret, or XDG_RUNTIME_DIR to a folder of this user'
    )
    return undefined
  }
}

/** The embedded store is one process's own. */
function workersOf(gateway: GatewayConfig): number {
  if (!usesRedis(gateway)) return 1
  return gateway.server.workers === 'auto' ? availableParallelism() : gateway.server.workers
}

function watchConfig(
  { gateway: { reload }, inputs }: Config,
  reloader: Reloader
): ReturnType<typeof watchFiles> | undefined {
  if (!reload.watch) return undefined
  const onChange = () => void reloader.reload('files changed')
  const watch = watchFiles({
    files: Object.keys(inputs),
    settleMs: reload.settle,
    pollMs: reload.poll,
    onChange
  })
  // They may have changed since they were read.
  if (!isAsRead(inputs)) onChange()
  return watch
}

function readiness({ ready, parts }: Readiness, reloader: Reloader, stopping: boolean): Readiness {
  const files = reloader.files()
  return {
    ready: ready && !stopping,
    parts: {
      ...(stopping && { gateway: 'stopping' }),
      // A config that was refused is no reason to take a replica away: it runs with the last good one.
      ...(files.state !== 'running' && {
        config: `generation ${reloader.current().number} runs; the files were ${files.state} at ${files.since}${files.state === 'refused' ? `: ${files.faults[0] ?? ''}` : ''}`
      }),
      ...parts
    }
  }
}

function once<A extends unknown[], T>(
  work: (...given: A) => Promise<T>
): (...given: A) => Promise<T> {
  let running: Promise<T> | undefined
  return (...given) => (running ??= work(...given))
}
