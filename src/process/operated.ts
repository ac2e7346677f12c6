import type { Config } from '../config/schema/config.ts'
import type { Ledger } from '../observability/audit/ledger.ts'
import type { GatewayState } from '../observability/gateway-state.ts'
import type { Fleet } from '../services/fleet.ts'
import type { Log } from '../services/services.ts'
import type { Reloader } from './reload/reload.ts'
import type { Validate } from './reload/validator.ts'
import type { PublicServer } from './server/public-server.ts'

/** The parts of the gateway that operators see and act on. */
export interface Operated {
  readonly config: Config
  readonly publicServer: PublicServer
  readonly reloader: Reloader
  readonly state: () => GatewayState
  readonly validate: Validate
  readonly fleet: Fleet
  /** Undefined where config has no audit ledger. */
  readonly ledger: Ledger | undefined
  readonly log: Log
}
