/** A config as the gateway runs it: all files together, validated and with their defaults. */
import type { JsonSchema } from '../../json-schema/closed-schema.ts'
import type { Fault } from './faults.ts'
import type { GatewayConfig } from './gateway.ts'
import type { LimitsConfig } from './limits.ts'
import type { RoutesConfig } from './routes.ts'
import type { UsersConfig } from './users.ts'
import type { Path } from './visit.ts'

export interface Config {
  /** Absolute; what relative paths in config are seen from. */
  readonly folder: string
  readonly gateway: GatewayConfig
  readonly routes: RoutesConfig
  readonly limits: LimitsConfig
  /** The users files that login sources name, by that name. */
  readonly users: Readonly<Record<string, UsersConfig>>
  /** What routes promise the console, by the route's name. */
  readonly contracts: Readonly<Record<string, JsonSchema>>
  /** Every file that was read, absolute, with a digest of what it held. */
  readonly inputs: Readonly<Record<string, string>>
  /** The certificate authorities that upstreams name, by that name: what the PEM files hold. */
  readonly authorities: Readonly<Record<string, string>>
  /** Keys of `gateway.yaml` that have another value in the file than in the running process. */
  readonly restartNeeded: readonly string[]
  readonly warnings: readonly Fault[]
}

export interface LoadedConfig extends Config {
  /** A fault that shows only when the config is tried, with the file and line of what it is about. */
  readonly fault: (file: ConfigFile, path: Path, message: string) => Fault
}

export type ConfigFile = 'gateway' | 'routes' | 'limits'
