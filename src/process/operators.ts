/** The operators' listener of the running gateway, and its routes. */
import { randomBytes } from 'node:crypto'
import { createAccess } from '../admin/access.ts'
import { createGuard } from '../admin/guard.ts'
import { statusOf } from '../admin/health.ts'
import { createHostCheck } from '../admin/hosts.ts'
import { operatorCookie } from '../admin/operator-cookie.ts'
import type { FoundOperator } from '../admin/operator.ts'
import { type SecretFile, writeSecretFile } from '../admin/secret-file.ts'
import { createAdminServer } from '../admin/server.ts'
import { addOperatorSignIn } from '../admin/sign-in.ts'
import { openApi } from '../api-docs/openapi.ts'
import { createActLedger } from '../ops/act-ledger.ts'
import { addBlockedUsers } from '../ops/blocked-users.ts'
import { addOpsLimits } from '../ops/limits.ts'
import { addOpsLockouts } from '../ops/lockouts.ts'
import { addMaintenanceRoutes } from '../ops/maintenance.ts'
import { addPages } from '../ops/page/pages.ts'
import { addRequestRoutes } from '../ops/requests.ts'
import type { Now } from '../ops/state-schemas.ts'
import { addStateRoutes } from '../ops/state.ts'
import { addOpsSessions, createClosing } from '../ops/users.ts'
import { sourceName } from '../config/schema/gateway.ts'
import { splitHostPort } from '../config/schema/host-port.ts'
import type { Config } from '../config/schema/config.ts'
import { GatewayError } from '../errors/errors.ts'
import type { RequestQuery } from '../observability/failures.ts'
import type { GatewayState } from '../observability/gateway-state.ts'
import type { Fleet } from '../services/fleet.ts'
import type { Log, Services } from '../services/services.ts'
import { StoreUnavailable } from '../session/store.ts'
import { createConfigView } from './config-view.ts'
import type { Present, ReplicaState } from './now.ts'
import type { Reloader } from './reload.ts'
import { listen as listenOn, type PublicServer, urlOf } from './server.ts'
import { version } from './state.ts'

/** The parts of the gateway that operators see and act on. */
interface Operated {
  readonly server: PublicServer
  readonly reloader: Reloader
  readonly present: Present
  readonly fleet: Fleet<ReplicaState>
  readonly state: () => GatewayState
}

/** All who watch share what was read within this time. */
const freshMs = 800
/** The page of the config asks again every few seconds, and to validate the files takes a while. */
const filesFreshMs = 10_000

export type Operators = ReturnType<typeof createOperators>

/** Builds the operators' listener. A secret that config does not set is written to a file. */
export function createOperators(operated: Operated) {
  const { server, present, state } = operated
  const { generations, services } = server
  const { config } = generations.current
  const { log } = services
  const { listen, secret: configured } = config.gateway.ops
  const secret = configured ?? randomBytes(32).toString('base64url')
  const app = createApp(operated, secret)
  const now = nowReader(operated)
  const { signIn, ...desk } = addServices(app, operated)
  addPages(app, signIn, {
    state,
    now,
    past: present.past,
    ...desk,
    config: addConfig(app, now, operated),
    maintenance: addMaintenance(app, operated)
  })
  let secretFile: SecretFile | undefined
  return {
    /**
     * @param fd of a socket that listens already
     * @returns its address
     * @throws when it cannot listen
     */
    listen: async (fd: number | undefined): Promise<string> => {
      const address = splitHostPort(listen)
      if (fd === undefined) await app.listen(address)
      else {
        await app.ready()
        await listenOn(app.server, address, fd)
      }
      const url = urlOf(address.host, app.server)
      if (configured === undefined) secretFile = leaveSecret(url, secret, log)
      return url
    },
    /** For new connections. @throws when it cannot; then the former stays */
    takeCertificate: ({ opsTls }: Config): void => {
      if (opsTls !== undefined) app.setCertificate(opsTls)
    },
    close: async (): Promise<void> => {
      await app.close()
      secretFile?.remove()
    }
  }
}

type AdminServer = ReturnType<typeof createAdminServer>

function createApp({ server, state }: Operated, secret: string): AdminServer {
  const { services, generations } = server
  const { log, ledger } = services
  const { gateway, opsTls } = generations.current.config
  const { hosts, openMetrics, trustedProxies } = gateway.ops
  const findOperator = (secretId: string) => operatorOf(services.operatorSessions, secretId)
  return createAdminServer({
    state,
    metrics: services.metrics,
    openApi: () => openApi(generations.current.config),
    access: createAccess({
      guard: createGuard({ secret, openMetrics }),
      cookie: operatorCookie(gateway.ops).name,
      hosts,
      findOperator,
      log
    }),
    checkHost: createHostCheck({ hosts, log }),
    version,
    log,
    tls: opsTls,
    trustedProxies,
    ledger: ledger === undefined ? undefined : createActLedger({ ledger, log })
  })
}

/** The operator of a session of the operators' page. */
async function operatorOf(
  sessions: Services['operatorSessions'],
  secretId: string
): Promise<FoundOperator> {
  try {
    const found = await sessions?.find(secretId)
    if (found === undefined) return 'none'
    const { identity, source } = found.session
    return { name: identity.username, via: 'session', source, until: found.until }
  } catch (error) {
    if (error instanceof StoreUnavailable) return 'unavailable'
    throw error
  }
}

/** Sign-in of operators, sessions, limits, lockouts, requests. */
function addServices(app: AdminServer, { server }: Operated) {
  const { services, generations } = server
  const { operatorSessions, failures, log } = services
  const { gateway } = generations.current.config
  const limits = () => generations.current.config.limits
  const known = {
    sources: () => generations.current.config.gateway.login.sources.map(sourceName),
    idsOf: (name: string) => idsOf(generations.current.config.users, name)
  }
  const close = createClosing(services.sessions, ended => generations.current.signOut(ended))
  const requests = (query: RequestQuery) => failures.find(query)
  addRequestRoutes(app, { find: requests })
  return {
    signIn: addOperatorSignIn(app, {
      sessions: operatorSessions,
      vouch: async (...signIn) => {
        const vouch = generations.current.vouchForOperator
        if (vouch === undefined) throw new GatewayError('ops.role')
        return await vouch(...signIn)
      },
      cookie: operatorCookie(gateway.ops),
      log
    }),
    sessions: addOpsSessions(app, { ...services, close }),
    limits: addOpsLimits(app, { ...services, limits, known }),
    blocks: addBlockedUsers(app, { ...services, close, sources: known.sources }),
    lockouts: addOpsLockouts(app, { ...services, ipv6Prefix: () => limits().ipv6Prefix }),
    requests
  }
}

function idsOf(files: Config['users'], name: string): string[] {
  return Object.values(files).flatMap(({ users }) => {
    return Object.hasOwn(users, name) && users[name] !== undefined ? [users[name].id ?? name] : []
  })
}

function nowReader({ present, fleet, state }: Operated): () => Promise<Now> {
  return shared(freshMs, async () => {
    const { replicas } = await fleet.list()
    const { generation, hash, files } = state().config
    return {
      at: new Date().toISOString(),
      replica: fleet.id,
      ...present.read(),
      replicas: [...replicas],
      config: { generation, hash, state: files.state }
    }
  })
}

/** All who ask within `ms` share what was read once, unless another generation runs. */
function shared<T>(ms: number, read: () => Promise<T>, generation = () => 0): () => Promise<T> {
  let readAt = -Infinity
  let readOf = 0
  let last: Promise<T>
  return () => {
    if (performance.now() - readAt >= ms || readOf !== generation()) {
      readAt = performance.now()
      readOf = generation()
      last = read()
    }
    return last
  }
}

/** The state and the config. */
function addConfig(app: AdminServer, now: () => Promise<Now>, operated: Operated) {
  const { server, reloader, state, fleet } = operated
  const { generations } = server
  const view = createConfigView(operated)
  addStateRoutes(app, {
    ...view,
    now,
    status: () => statusOf(state()),
    replicas: () => fleet.list(),
    reload: (yes, operator) => reloader.reload('operator', { yes, operator })
  })
  const number = () => generations.current.number
  return { ...view, files: shared(filesFreshMs, view.files, number) }
}

function addMaintenance(app: AdminServer, { server }: Operated) {
  const { generations, services } = server
  return addMaintenanceRoutes(app, {
    record: services.maintenance,
    config: () => generations.current.config.routes,
    log: services.log
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
