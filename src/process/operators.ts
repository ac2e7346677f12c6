/** The operators' listener of the running gateway, and its routes. */
import { randomBytes } from 'node:crypto'
import type { Now } from '../ops/state-schemas.ts'
import type { Server } from 'node:http'
import { addBlockedUsers } from '../ops/blocked-users.ts'
import { addMaintenanceRoutes } from '../ops/maintenance.ts'
import { addOperatorSignIn } from '../ops/sign-in.ts'
import { addOpsLimits } from '../ops/limits.ts'
import { addOpsLockouts } from '../ops/lockouts.ts'
import { addOpsSessions, createClosing } from '../ops/users.ts'
import { addPages } from '../ops/page/pages.ts'
import { addRequestRoutes } from '../ops/requests.ts'
import { addStateRoutes } from '../ops/state.ts'
import { createAccess, isSameSecret } from '../ops/access.ts'
import { createActLedger } from '../ops/act-ledger.ts'
import { createAdminServer } from '../ops/server.ts'
import { createOperatorSessions } from '../ops/session.ts'
import { createOpsListener } from '../ops/listener.ts'
import { listenLocally, socketFolders } from '../ops/socket.ts'
import { openApi } from '../api-docs/openapi.ts'
import { resolve } from 'node:path'
import { statusOf } from '../ops/health.ts'
import { sourceName } from '../config/schema/gateway.ts'
import { splitHostPort } from '../config/schema/host-port.ts'
import type { Config } from '../config/schema/config.ts'
import type { RequestQuery } from '../observability/failures.ts'
import type { GatewayState } from '../observability/gateway-state.ts'
import type { Fleet } from '../services/fleet.ts'
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

/** Builds the operators' listener, and the socket of local commands. */
export function createOperators(operated: Operated) {
  const { server, present, state } = operated
  const { generations, services } = server
  const { config } = generations.current
  const { listen, socket, trustedProxies } = config.gateway.ops
  const opened = openAccess(operated)
  const app = createApp(operated, opened)
  const listener = createOpsListener(app, config.opsTls, trustedProxies)
  const now = nowReader(operated)
  const desk = addServices(app, operated)
  const address = splitHostPort(listen)
  const urlOfPath = (path: string) => {
    const isAny = address.host === '0.0.0.0' || address.host === '::'
    return urlOf(isAny ? '127.0.0.1' : address.host, listener.server) + path
  }
  const signIn = addOperatorSignIn(app, { ...opened, log: services.log }, urlOfPath)
  addPages(app, signIn, {
    state,
    now,
    past: present.past,
    ...desk,
    config: addConfig(app, now, operated),
    maintenance: addMaintenance(app, operated)
  })
  return {
    /**
     * @param fd of a socket that listens already
     * @returns its address
     * @throws when it cannot listen
     */
    listen: async (fd: number | undefined): Promise<string> => {
      await app.ready()
      const url = await listenOn(listener.server, address, fd)
      if (socket !== false) await openSocket(listener.local, socket, operated)
      return url
    },
    /** A link that opens the page once within this time. */
    makeLink: signIn.makeLink,
    /** For new connections. @throws when it cannot; then the former stays */
    takeCertificate: ({ opsTls }: Config): void => {
      if (opsTls !== undefined) listener.setCertificate(opsTls)
    },
    close: async (): Promise<void> => {
      await listener.close()
      await app.close()
    }
  }
}

type AdminServer = ReturnType<typeof createAdminServer>

/** Who may: by `ops.secret`, or one that nobody knows, and by the sessions of operators. */
function openAccess({ server, fleet }: Operated) {
  const { generations, services } = server
  const { gateway } = generations.current.config
  const { secret: configured, role } = gateway.ops
  const secret = configured ?? randomBytes(32).toString('base64url')
  const { exchange } = fleet
  return {
    secret,
    isSecret: configured === undefined ? undefined : isSameSecret(secret),
    hasRole: role !== undefined,
    sessions: createOperatorSessions({ gateway, secret, services, exchange }),
    vouching: () => generations.current.vouching
  }
}

function createApp({ server, state }: Operated, opened: ReturnType<typeof openAccess>) {
  const { services, generations } = server
  const { log, ledger } = services
  const { ops } = generations.current.config.gateway
  const { secret, sessions } = opened
  return createAdminServer({
    state,
    metrics: services.metrics,
    openApi: () => openApi(generations.current.config),
    access: createAccess({ secret, hosts: ops.hosts, ...sessions, log }),
    version,
    log,
    ops,
    ledger: ledger === undefined ? undefined : createActLedger({ ledger, log })
  })
}

/** Sessions, limits, lockouts, requests. */
function addServices(app: AdminServer, { server }: Operated) {
  const { services, generations } = server
  const { failures } = services
  const limits = () => generations.current.config.limits
  const known = {
    sources: () => generations.current.config.gateway.login.sources.map(sourceName),
    idsOf: (name: string) => idsOf(generations.current.config.users, name)
  }
  const close = createClosing(services.sessions, ended => generations.current.signOut(ended))
  const requests = (query: RequestQuery) => failures.find(query)
  addRequestRoutes(app, { find: requests })
  return {
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

/** Without the socket only local commands fail, so the gateway starts all the same. */
async function openSocket(
  local: Server,
  configured: string | undefined,
  { server: { generations, services } }: Operated
): Promise<void> {
  const { log, replica } = services
  const { folder: config } = generations.current.config
  const own = configured === undefined ? undefined : resolve(config, configured)
  const folders = socketFolders(own, process.env)
  try {
    const file = await listenLocally(local, folders, { config, replica })
    log.info({ file }, 'commands on this machine ask this process by its socket')
  } catch (err) {
    log.warn(
      { err, folders },
      'no folder can be used for the socket of local commands: `console-gateway status` and the ' +
        'other commands that ask this gateway need --url. Set ops.socket to a folder of this user, ' +
        'or to false'
    )
  }
}
