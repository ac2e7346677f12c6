/**
 * The operators' listener of the running gateway, and its routes.
 */
import { randomBytes } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { createAccess, isStillOperator } from '../admin/access.ts'
import { addConfigData } from '../admin/config-data.ts'
import { addNow } from '../admin/now.ts'
import { createActLedger } from '../admin/act-ledger.ts'
import { addConfigRoutes } from '../admin/config.ts'
import { addRequestRoutes } from '../admin/requests.ts'
import { createGuard } from '../admin/guard.ts'
import { statusOf } from '../admin/health.ts'
import { createHostCheck } from '../admin/hosts.ts'
import { operatorCookie } from '../admin/operator-cookie.ts'
import { addPageFiles } from '../admin/page-files.ts'
import { type SecretFile, writeSecretFile } from '../admin/secret-file.ts'
import { addMaintenanceRoutes } from '../admin/maintenance.ts'
import { createAdminServer } from '../admin/server.ts'
import { openApi } from '../api-docs/openapi.ts'
import { comparePlan } from '../config/load/plan.ts'
import { splitHostPort } from '../config/schema/host-port.ts'
import { describeFault } from '../config/schema/faults.ts'
import type { Config } from '../config/schema/config.ts'
import type { Log } from '../services/services.ts'
import type { Operated } from './operated.ts'
import { ConfigView } from './ops/config-view.ts'
import { nowReader } from './ops/now.ts'
import { listen as listenOn, urlOf } from './server/listeners.ts'
import { version } from './status.ts'

interface Options extends Operated {
  /** Closes what was opened, when a later step fails. */
  readonly opened: Array<() => unknown>
}

export interface Operators {
  /**
   * @param fd of a socket that listens already
   * @returns its address
   * @throws when it cannot listen
   */
  readonly listen: (fd: number | undefined) => Promise<string>
  /** For new connections. @throws when it cannot; then the former stays */
  readonly takeCertificate: (config: Config) => void
  readonly close: () => Promise<void>
}

/** Builds the operators' listener. A secret that config does not set is written to a file. */
export async function openOperators({ opened, ...operated }: Options): Promise<Operators> {
  const { config, publicServer, reloader, state, ledger, log } = operated
  const { ops } = config.gateway
  const { listen, hosts, openMetrics, secret: configured, trustedProxies } = ops
  const secret = configured ?? randomBytes(32).toString('base64url')
  const app = createAdminServer({
    state,
    metrics: publicServer.metrics,
    openApi: () => openApi(reloader.current().config),
    access: createAccess({
      guard: createGuard({ secret, openMetrics }),
      cookie: operatorCookie(ops).name,
      hosts,
      findOperator: publicServer.findOperator,
      log
    }),
    checkHost: createHostCheck({ hosts, log }),
    version,
    log,
    tls: config.opsTls,
    trustedProxies,
    ledger: ledger === undefined ? undefined : createActLedger({ ledger, log })
  })
  publicServer.addAdminRoutes(app)
  addConfig(app, operated)
  addData(app, operated)
  addMaintenance(app, operated)
  addRequestRoutes(app, { find: publicServer.findRequests })
  addPageFiles(app)
  opened.push(() => app.close())
  let secretFile: SecretFile | undefined
  return {
    listen: async fd => {
      const address = splitHostPort(listen)
      if (fd === undefined) await app.listen(address)
      else {
        await app.ready()
        await listenOn(app.server, address, fd)
      }
      const url = urlOf(address.host, app.server)
      if (configured === undefined) secretFile = leaveSecret(url, secret, log)
      opened.push(() => secretFile?.remove())
      return url
    },
    takeCertificate: ({ opsTls }) => {
      if (opsTls !== undefined) app.setCertificate(opsTls)
    },
    close: async () => {
      await app.close()
      secretFile?.remove()
    }
  }
}

/** Status, plan and reload. */
function addConfig(
  app: ReturnType<typeof createAdminServer>,
  { publicServer, reloader, state, validate, fleet }: Operated
): void {
  const planned = async (balancerMs: number) => {
    const { result } = await validate()
    const { config: running } = reloader.current()
    if ('config' in result) return comparePlan(running, result.config, balancerMs)
    const faults = result.faults.filter(({ severity }) => severity === 'fault')
    return { faults: faults.map(describeFault) }
  }
  /** In numbers. */
  const effectOf = async (next: Config) => {
    const { config: running } = reloader.current()
    const { changes } = comparePlan(running, next, 0)
    const { ending } = await publicServer.countEndings(running, next)
    return {
      changes: changes.length,
      restartNeeded: changes.filter(({ restart }) => restart).length,
      sessions: ending
    }
  }
  const reloadEffect = async () => {
    const { result } = await validate(reloader.current().config.gateway)
    if ('config' in result) return await effectOf(result.config)
    return { faults: result.faults.filter(({ severity }) => severity === 'fault').length }
  }
  addConfigRoutes(app, {
    status: () => statusOf(state()),
    reload: confirmed => reloader.reload('operator', confirmed),
    plan: planned,
    reloadEffect,
    replicas: () => fleet.list()
  })
}

/** The data of the operators' page. */
function addData(app: ReturnType<typeof createAdminServer>, operated: Operated): void {
  const { findOperator } = operated.publicServer
  const isAllowed = (request: FastifyRequest) => isStillOperator(request, findOperator)
  addNow(app, { read: nowReader(operated), isAllowed })
  addConfigData(app, new ConfigView(operated))
}

function addMaintenance(
  app: ReturnType<typeof createAdminServer>,
  { publicServer, reloader, fleet, log }: Operated
): void {
  addMaintenanceRoutes(app, {
    record: publicServer.maintenance,
    config: () => reloader.current().config.routes,
    countReplicas: async () => (await fleet.list()).replicas.length,
    log
  })
}

/** Without the file only local commands fail, so the gateway starts all the same. */
function leaveSecret(opsUrl: string, secret: string, log: Log): SecretFile | undefined {
  try {
    const secretFile = writeSecretFile(opsUrl.replace(/^https?:\/\//, ''), secret)
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
