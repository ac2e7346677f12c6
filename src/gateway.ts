/** One listening server and the generations behind it: load → build → listen → watch → swap → drain. */
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { describeFault } from './config/faults.ts'
import type { Config } from './config/load.ts'
import { openApi } from './description/openapi.ts'
import type { Environment } from './config/references.ts'
import { isAsRead, watchFiles } from './config/watch.ts'
import { createOps, type Readiness } from './endpoints/ops.ts'
import { addOpsConfig } from './endpoints/ops-config.ts'
import { addOpsSessions } from './endpoints/ops-sessions.ts'
import { examine } from './examination.ts'
import { createGeneration } from './generation.ts'
import { createOuterServer } from './outer-server.ts'
import { createReloader, type Outcome, type Reloader, type Trigger } from './reload.ts'
import { createLogger, createServices, type Services } from './services.ts'
import { createStatus, measureConfig } from './status.ts'

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
export async function startGateway (config: Config, log = createLogger(config.gateway.log), environment: Environment = process.env): Promise<Gateway> {
  const { gateway: { server: settings, ops: opsSettings, drain } } = config
  for (const warning of config.warnings) log.warn({ config: warning.path }, describeFault(warning))
  const services = createServices(config, log)
  const state = { stopping: false }
  const opened: Array<() => unknown> = [() => services.close()]
  try {
    const first = await createGeneration(1, config, services)
    const measured = measureConfig(services.metrics)
    const reloader = createReloader({
      first,
      examine: running => examine({ folder: config.folder, environment: { ...environment }, running }),
      create: (number, next) => createGeneration(number, next, services),
      onFiles: files => watch?.follow(files),
      onOutcome: measured.onOutcome,
      log
    })
    opened.push(() => reloader.close())
    measured.follow(reloader)
    const server = createOuterServer(config.gateway, (request, response) => reloader.current().handle(request, response), services)
    opened.push(() => closeServer(server))
    const ready = () => readiness(services, reloader, state.stopping, opsSettings.strictRedis)
    const ops = createOps({ readiness: ready, metrics: services.metrics, openApi: () => openApi(reloader.current().config) })
    addOpsSessions(ops, { sessions: services.sessions, log })
    addOpsConfig(ops, { status: createStatus(reloader, ready), reload: () => reloader.reload('operator'), rollback: reloader.rollback })
    opened.push(() => ops.close())
    const opsAddress = splitAddress(opsSettings.listen)
    await ops.listen(opsAddress)
    const opsUrl = urlOf(opsAddress.host, ops.server)
    const url = await listen(server, splitAddress(settings.listen))
    const watch = watchConfig(config, reloader)
    opened.push(() => watch?.close())
    log.info({ url, ops: opsUrl }, `listening on ${url}, for operators on ${opsUrl}`)
    const stop = once(async ({ noticeMs = drain.notice }: { readonly noticeMs?: number } = {}) => {
      state.stopping = true
      watch?.close()
      log.info(`stopping: not ready; taking requests for ${noticeMs} ms more`)
      await wait(noticeMs)
      const closed = closeServer(server)
      const inTime = await Promise.race([closed.then(() => true), wait(drain.grace, false, { ref: false })])
      if (!inTime) log.warn(`requests were still running after ${drain.grace} ms: cut`)
      server.closeAllConnections()
      await closed
      await reloader.close()
      await ops.close()
      await services.close()
      log.info('stopped')
    })
    return { url, opsUrl, reload: reloader.reload, stop }
  } catch (error) {
    for (const close of opened.toReversed()) await Promise.try(close).catch(() => {})
    throw error
  }
}

function watchConfig ({ gateway: { reload }, inputs }: Config, reloader: Reloader): ReturnType<typeof watchFiles> | undefined {
  if (!reload.watch) return undefined
  const onChange = () => void reloader.reload('files changed')
  const watch = watchFiles({ files: Object.keys(inputs), settleMs: reload.settle, pollMs: reload.poll, onChange })
  // They may have changed since they were read.
  if (!isAsRead(inputs)) onChange()
  return watch
}

function readiness (services: Services, reloader: Reloader, stopping: boolean, strictRedis: boolean): Readiness {
  const redis = services.redis()
  const files = reloader.files()
  // A config that was refused is no reason to take a replica away: it runs with the last good one.
  const common = { ...(stopping && { gateway: 'stopping' }), ...(files.state !== 'running' && { config: `generation ${reloader.current().number} runs; the files were ${files.state} at ${files.since}${files.state === 'refused' ? `: ${files.faults[0] ?? ''}` : ''}` }) }
  if (redis.kind === 'embedded') return { ready: !stopping, parts: { ...common, sessions: 'in this process' } }
  const waits = strictRedis ? !redis.up : !redis.everUp
  return { ready: !stopping && !waits, parts: { ...common, redis: redis.up ? 'up' : redis.everUp ? 'away: what needs a session answers 503' : 'not reached yet' } }
}

function splitAddress (address: string): { host: string, port: number } {
  const colon = address.lastIndexOf(':')
  return { host: address.slice(0, colon).replace(/^\[|\]$/g, ''), port: Number(address.slice(colon + 1)) }
}

async function listen (server: Server, { host, port }: { host: string, port: number }): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.removeListener('error', reject)
      resolve()
    })
  })
  return urlOf(host, server)
}

/** With the real port, also where config says 0. */
function urlOf (host: string, server: { address: Server['address'] }): string {
  const { port } = server.address() as AddressInfo
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}

async function closeServer (server: Server): Promise<void> {
  await new Promise<void>(resolve => {
    if (!server.listening) return resolve()
    server.close(() => resolve())
    server.closeIdleConnections()
  })
}

function once<A extends unknown[], T> (work: (...given: A) => Promise<T>): (...given: A) => Promise<T> {
  let running: Promise<T> | undefined
  return (...given) => running ??= work(...given)
}
