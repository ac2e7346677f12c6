/** The types of an explanation's decisions: steps, results and places in config. */
import { endpointNames } from '../../config/schema/own-endpoints.ts'
import type { ConfigFile, LoadedConfig } from '../../config/schema/config.ts'
import type { MaintenanceConfig } from '../../config/schema/maintenance.ts'
import type { Path } from '../../config/schema/visit.ts'
import type { Credential, Identity } from '../../session/record.ts'
import type { Traced } from '../traced-app.ts'

/** A place in a config file. */
export interface Location {
  readonly file: string
  readonly line: number
  readonly path: string
}

export interface Decision {
  readonly step:
    | 'request'
    | 'route'
    | 'alias'
    | 'session'
    | 'origin'
    | 'limits'
    | 'access'
    | 'maintenance'
    | 'answer'
    | 'upstream'
    | 'addresses'
    | 'timeouts'
    | 'sizes'
    | 'fields'
    | 'touch'
    | 'websocket'
    | 'parts'
    | 'shape'
    | 'contract'
    | 'errors'
  /** `skipped`: an earlier step refused. `info`: nothing is decided. */
  readonly result: 'passes' | 'refuses' | 'info' | 'skipped'
  readonly text: string
  readonly at?: Location
  readonly lines?: ReadonlyArray<{
    readonly text: string
    readonly at?: Location
    readonly facts?: object
  }>
}

/** Finds the place of a path in config; of a missing key, the place of the nearest key above. */
export type Locate = (file: ConfigFile, path: Path) => Location

export interface Explained {
  readonly method: string
  readonly target: string
  readonly from: string
  /** The client's own, in lower case; beside them, those of a page of the console are assumed. */
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  readonly who?: {
    /** The credential source that vouches. */
    readonly source: string
    readonly identity: Identity
    readonly credential?: Credential
    /** The user, the source and the roles, for people. */
    readonly description: string
  }
}

/** As a running gateway shows it. */
export type ShownMaintenance = MaintenanceConfig & { readonly author: string }

/** A traced request and what its decisions are made from. */
export interface Context {
  readonly config: LoadedConfig
  readonly request: Explained
  readonly traced: Traced
  readonly refusedBy: Decision['step'] | undefined
  /** The maintenance that operators of the running gateway began. */
  readonly maintenance: readonly ShownMaintenance[]
  readonly locate: Locate
}

/** The names of the gateway's own endpoints. */
export const endpoints: ReadonlySet<string> = new Set(endpointNames)

export const pathOfRoute = (route: string): Path =>
  endpoints.has(route) ? ['endpoints', route] : ['routes', route]
