import type { JsonSchema } from '../../contract/schema.ts'
import type { Fault } from './faults.ts'
import { type GatewayConfig, gatewaySchema } from './gateway.ts'
import { type LimitsConfig, limitsSchema } from './limits.ts'
import { asNode, type NamedThing, type Node, type Path } from './node.ts'
import { type RoutesConfig, routesSchema } from './routes.ts'
import type { UsersConfig } from './users.ts'

export type ConfigFile = 'gateway' | 'routes' | 'limits'

export const schemaOf: Readonly<Record<ConfigFile, Node>> = {
  gateway: asNode(gatewaySchema),
  routes: asNode(routesSchema),
  limits: asNode(limitsSchema)
}

/** No key is in two of the files. */
export const configSchema: Node = {
  type: 'object',
  properties: {
    ...schemaOf.gateway.properties,
    ...schemaOf.routes.properties,
    ...schemaOf.limits.properties
  }
}

export function fileOfKey(key: string): ConfigFile {
  if (Object.hasOwn(schemaOf.routes.properties ?? {}, key)) return 'routes'
  return Object.hasOwn(schemaOf.limits.properties ?? {}, key) ? 'limits' : 'gateway'
}

/** PEM texts. */
export type ServerTls = NonNullable<GatewayConfig['ops']['tls']>

/** A text that is the name of something, as its schema says. */
export interface Named {
  readonly what: NamedThing
  readonly name: string
  readonly path: Path
}

export interface Config {
  readonly folder: string
  /** The folders whose files it overrides, absolute. */
  readonly bases: readonly string[]
  readonly gateway: GatewayConfig
  readonly routes: RoutesConfig
  readonly limits: LimitsConfig
  readonly users: Readonly<Record<string, UsersConfig>>
  readonly named: readonly Named[]
  readonly contracts: Readonly<Record<string, JsonSchema>>
  /** Every file that was read, by absolute path, with its fingerprint then. */
  readonly inputs: Readonly<Record<string, string>>
  /** YAML files but presets, and own code, by absolute path. No secret is in them. */
  readonly documents: Readonly<Record<string, string>>
  /** Own code, by the name in config. */
  readonly modules: Readonly<Record<string, string>>
  /** Keys of `gateway.yaml` that differ from those of the running process. */
  readonly restartNeeded: readonly string[]
  readonly warnings: readonly Fault[]
}

export interface LoadedConfig extends Config {
  /** Of what shows only when the config is tried. */
  readonly fault: (path: Path, message: string) => Fault
}

export interface Report {
  /** @param also the other place of a clash, whose line the message names */
  (path: Path, message: string, also?: Path): void
  readonly warn: (path: Path, message: string) => void
  readonly at: (...place: Path) => Report
}

export type CheckedConfig = Omit<
  Config,
  'contracts' | 'modules' | 'inputs' | 'documents' | 'restartNeeded' | 'warnings'
>

export type Rule = (config: CheckedConfig, report: Report) => void
