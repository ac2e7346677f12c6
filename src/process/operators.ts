import type { Server } from 'node:http'
import { resolve } from 'node:path'
import { LRUCache } from 'lru-cache'
import { createFlows } from '../app/sign-in/flows.ts'
import type { Config } from '../config/schema/config.ts'
import { splitHostPort } from '../config/schema/host-port.ts'
import { createAccess } from '../ops/access.ts'
import { addKeyRoutes } from '../ops/keys.ts'
import { addLimitRoutes } from '../ops/limits.ts'
import type { Desk } from '../ops/routes.ts'
import { addLockoutRoutes } from '../ops/lockouts.ts'
import { addMaintenanceRoutes } from '../ops/maintenance.ts'
import { addPages } from '../ops/page/pages.ts'
import { createOpsListener, createOpsServer } from '../ops/server.ts'
import { createOperatorSessions } from '../ops/session.ts'
import { lock } from '../session/store.ts'
import { addOperatorSignIn } from '../ops/sign-in.ts'
import { listenLocally, socketFolders } from '../ops/socket.ts'
import { addStateRoutes } from '../ops/state.ts'
import { addUserRoutes } from '../ops/users.ts'
import type { Fleet } from '../services/fleet.ts'
import type { GatewayState } from '../services/gateway-state.ts'
import type { Present } from '../services/present.ts'
import { listen as listenOn, type PublicServer, urlOf } from './server.ts'
import type { Reloader } from './reload.ts'

export type Operators = ReturnType<typeof createOperators>

interface Operated {
  readonly server: PublicServer
  readonly reloader: Reloader
  readonly present: Present
  readonly fleet: Fleet
  readonly state: () => GatewayState
}

/** The page of the config asks again every few seconds, and to validate the files takes a while. */
const planFreshMs = 10_000

export function createOperators({ server, reloader, present, fleet, state }: Operated) {
  const { generations, services } = server
  const { gateway } = generations.current.config
  const { ops } = gateway
  const { log } = services
  const sessions = createOperatorSessions(gateway, services)
  const desk: Desk = {
    ...services,
    config: () => generations.current.config,
    signOut: ended => generations.current.signOut(ended),
    state,
    present,
    replicas: fleet.list,
    plan: () => reloader.plan(),
    reload: (yes, operator) => reloader.reload('operator', { yes, operator })
  }
  const app = createOpsServer(desk, createAccess({ ops, ...sessions, log }))
  const listener = createOpsListener(app, ops)
  const address = splitHostPort(ops.listen)
  const signIn = addOperatorSignIn(app, {
    sessions,
    flows: createFlows({
      secrets: services.secrets,
      sourceFaults: services.sourceFaults,
      // Operators go on while Redis is away: a provider takes a code once.
      takeOnce: (...of) => lock(services.sessions.store, ...of).catch(() => true),
      secure: sessions.isSecure,
      of: 'console_ops'
    }),
    vouching: () => generations.current.vouching,
    ops,
    log,
    urlOf: path => {
      const isAny = address.host === '0.0.0.0' || address.host === '::'
      return urlOf(isAny ? '127.0.0.1' : address.host, listener.server) + path
    }
  })
  const plans = new LRUCache<number, ReturnType<Desk['plan']>>({
    max: 1,
    ttl: planFreshMs,
    memoMethod: desk.plan
  })
  addUserRoutes(app, desk)
  addKeyRoutes(app, desk)
  addLimitRoutes(app, desk)
  addLockoutRoutes(app, desk)
  addMaintenanceRoutes(app, desk)
  addStateRoutes(app, desk)
  addPages(app, signIn, { ...desk, plan: () => plans.memo(generations.current.number) })
  return {
    listen: async (fd: number | undefined): Promise<string> => {
      await app.ready()
      const url = await listenOn(listener.server, address, fd)
      if (ops.socket !== false) await openSocket(listener.local, ops.socket, server)
      return url
    },
    makeLink: signIn.makeLink,
    /** For new connections. @throws when it cannot; then the former stays */
    takeCertificate: ({ gateway: { ops: next } }: Config): void => {
      if (next.tls !== undefined) listener.setCertificate(next.tls)
    },
    close: async (): Promise<void> => {
      await listener.close()
      await app.close()
    }
  }
}

/** Without the socket only local commands fail, so the gateway starts all the same. */
async function openSocket(
  local: Server,
  configured: string | undefined,
  { generations, services }: PublicServer
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
