/** The running gateway: load → build → listen → watch → swap → drain. */
import { setTimeout as wait } from 'node:timers/promises'
import type { Environment } from '../config/read/inputs.ts'
import type { Config } from '../config/schema/config.ts'
import { describeFault } from '../config/schema/faults.ts'
import { createFleet } from '../services/fleet.ts'
import { type Phase, stateOf, version } from '../services/gateway-state.ts'
import { createPresent } from '../services/present.ts'
import { createLogger } from '../services/services.ts'
import { createSeal } from '../session/seal.ts'
import { createOperators, type Operators } from './operators.ts'
import { type FilesAtStart, Reloader, type Trigger } from './reload.ts'
import { createPublicServer, type PublicServer, takeListenFds } from './server.ts'

export type Gateway = Awaited<ReturnType<typeof startGateway>>

/** @throws when a listener cannot be opened; everything opened before is closed again */
export async function startGateway(
  config: Config,
  log = createLogger(config.gateway.log),
  environment: Environment = process.env,
  atStart: FilesAtStart = {}
) {
  for (const warning of config.warnings) log.warn({ config: warning.path }, describeFault(warning))
  // Closed in reverse: at the end, and when a later step of the start fails.
  await using opening = new AsyncDisposableStack()
  let phase: Phase = 'starting'
  let operators: Operators | undefined
  const server = createPublicServer(config, log)
  const { services, generations } = server
  opening.defer(server.close)
  server.activate(await server.create(1, config))
  opening.defer(() => generations.close())
  const reloader = new Reloader({
    server,
    environment,
    atStart,
    onBuilt: next => operators?.takeCertificate(next)
  })
  opening.defer(() => reloader.close())
  opening.defer(async () => void (await server.stop(0)))
  const present = createPresent(services)
  opening.defer(() => present.close())
  measureConfig(server, reloader)
  const state = () => {
    const running = { ...generations.current, draining: generations.draining() }
    return stateOf(phase, services, running, reloader.state)
  }
  const fleet = createFleet({
    id: services.replica,
    ...services.background,
    seal: createSeal(services.secrets, 'replica'),
    state,
    present,
    maintenance: services.maintenance
  })
  opening.defer(() => fleet.close())
  operators = createOperators({ server, reloader, present, fleet, state })
  opening.defer(operators.close)
  const held = takeListenFds()
  const opsUrl = await operators.listen(held.ops)
  // A maintenance that was begun before the start is in force from the first request on.
  await fleet.begin()
  const url = await server.listen(held)
  phase = 'serving'
  reloader.begin()
  log.info({ url, ops: opsUrl }, `listening on ${url}, for operators on ${opsUrl}`)
  return {
    /** With the real port, also when config says 0. */
    url,
    opsUrl,
    opsLink: operators.makeLink,
    reload: async (by: Trigger) => await reloader.reload(by),
    stop: createStop(server, opening.move(), () => {
      phase = 'stopping'
    })
  }
}

/** Stops: not ready for `drain.notice`, then no new requests, and cut after `drain.grace`. */
function createStop(server: PublicServer, opened: AsyncDisposableStack, onBegin: () => void) {
  const { log } = server.services
  const { drain } = server.generations.current.config.gateway
  let stopping: Promise<void> | undefined

  async function stop(noticeMs: number): Promise<void> {
    onBegin()
    // Kept connections go elsewhere, or wait for the next process, before this one ends.
    if (noticeMs > 0) server.leave()
    log.info(`stopping: not ready; taking requests for ${noticeMs} ms more`)
    await wait(noticeMs)
    if (!(await server.stop(drain.grace))) {
      log.warn(`requests were still running after ${drain.grace} ms: cut`)
    }
    await opened.disposeAsync()
    log.info('stopped')
  }

  return ({ noticeMs = drain.notice }: { readonly noticeMs?: number } = {}) =>
    (stopping ??= stop(noticeMs))
}

function measureConfig({ generations, services }: PublicServer, reloader: Reloader): void {
  const { metrics } = services
  metrics.read('console_gateway_info', () => [[[version, process.version], 1]])
  metrics.read('console_gateway_generation', () => generations.current.number)
  metrics.read('console_gateway_config_refused', () =>
    Number(reloader.state.files.state === 'refused')
  )
}
