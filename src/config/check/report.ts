/** The types of a rule of config: what it checks, and its report of faults. */
import type { Named, ServerTls } from '../schema/config.ts'
import type { GatewayConfig } from '../schema/gateway.ts'
import type { LimitsConfig } from '../schema/limits.ts'
import type { RoutesConfig } from '../schema/routes.ts'
import type { UsersConfig } from '../schema/users.ts'
import type { Path } from '../schema/node.ts'

/** @param how `also`: the other place of a clash in the same file, whose line the message then names */
export type Report = (
  path: Path,
  message: string,
  how?: { readonly warning?: boolean; readonly also?: Path }
) => void

export interface CheckedConfig {
  /** Absolute. */
  readonly folder: string
  readonly gateway: GatewayConfig
  readonly routes: RoutesConfig
  readonly limits: LimitsConfig
  /** The names that stand in the files. */
  readonly named: readonly Named[]
  readonly users: Readonly<Record<string, UsersConfig>>
  /** The texts of the PEM files that upstreams name. */
  readonly authorities: Readonly<Record<string, string>>
  /** The text of the file of `redis.ca`. */
  readonly redisCa?: string
  readonly serverTls?: ServerTls
  readonly opsTls?: ServerTls
}
