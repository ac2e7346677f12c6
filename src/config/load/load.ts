/** Loads all config files: read, checked against each other and frozen. */
import { resolve } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { Static, TSchema } from 'typebox'
import { checkConfig } from '../check/check.ts'
import { loadContracts } from '../check/contracts.ts'
import { checkUsers } from '../check/users.ts'
import type { CheckedConfig, Report } from '../check/report.ts'
import type { Config, ConfigFile, LoadedConfig } from '../schema/config.ts'
import { schemaFile } from '../schema/contracts.ts'
import { ConfigError, type Fault } from '../schema/faults.ts'
import { gatewaySchema, type GatewayConfig } from '../schema/gateway.ts'
import { limitsSchema, type LimitsConfig } from '../schema/limits.ts'
import { routesSchema, type RoutesConfig, type UpstreamConfig } from '../schema/routes.ts'
import { usersSchema, type UsersConfig } from '../schema/users.ts'
import { isObject, type Path } from '../schema/visit.ts'
import { installDifferences } from './differences.ts'
import { createInputs, type Inputs } from './inputs.ts'
import { type LoadedFile, readFile } from './read-file.ts'
import type { Environment } from './references.ts'

interface Options {
  /**
   * The install config of the running process: used instead of the file's, which must be valid
   * all the same.
   */
  readonly running?: GatewayConfig
  /** Instead of the folder's `limits.yaml`. */
  readonly limitsFile?: string
  /** Records every file that is read. */
  readonly inputs?: Inputs
}

/** @throws ConfigError with every fault at once. */
export function loadConfig(
  folder: string,
  environment: Environment,
  { running, limitsFile = 'limits.yaml', inputs = createInputs() }: Options = {}
): LoadedConfig {
  const loader = new Loader(resolve(folder), environment, inputs)
  const files = loader.readFiles(limitsFile)
  const config = {
    folder: resolve(folder),
    gateway: files.gateway.value,
    routes: files.routes.value,
    limits: files.limits.value,
    users: loader.readUsers(files.gateway, running),
    contracts: loader.readContracts(files.routes),
    authorities: loader.readAuthorities(files.routes)
  }
  const restartNeeded = loader.check(config, files, running)
  const warnings = loader.warnings()
  return deepFreeze({
    ...config,
    inputs: inputs.digests(),
    gateway: running ?? config.gateway,
    restartNeeded,
    warnings,
    fault: (file: ConfigFile, path: Path, message: string) => files[file].fault(path, message)
  })
}

interface Files {
  readonly gateway: LoadedFile<GatewayConfig>
  readonly routes: LoadedFile<RoutesConfig>
  readonly limits: LoadedFile<LimitsConfig>
}

/** Reads and checks the files of one folder; collects the faults of all. */
class Loader {
  readonly #folder: string
  readonly #environment: Environment
  readonly #inputs: Inputs
  readonly #faults: Fault[] = []

  constructor(folder: string, environment: Environment, inputs: Inputs) {
    this.#folder = folder
    this.#environment = environment
    this.#inputs = inputs
  }

  /** @param namedBy gets the fault of a missing file at the line that names it */
  #read<T extends TSchema>(name: string, schema: T, namedBy?: (message: string) => void) {
    return readFile(this.#folder, name, schema, {
      environment: this.#environment,
      inputs: this.#inputs,
      faults: this.#faults,
      ...(namedBy && { namedBy })
    })
  }

  /** Reports faults at paths of one file. */
  #reportIn(file: LoadedFile<unknown>) {
    return (path: Path, message: string): void => {
      this.#faults.push(file.fault(path, message))
    }
  }

  /** @throws ConfigError when one of the three files cannot be read */
  readFiles(limitsFile: string): Files {
    const gateway = this.#read('gateway.yaml', gatewaySchema)
    const routes = this.#read('routes.yaml', routesSchema)
    const limits = this.#read(limitsFile, limitsSchema)
    if (gateway === undefined || routes === undefined || limits === undefined) {
      throw new ConfigError(this.#faults)
    }
    return { gateway, routes, limits }
  }

  readUsers(gateway: Files['gateway'], running?: GatewayConfig): Record<string, UsersConfig> {
    const report = this.#reportIn(gateway)
    const users: Record<string, UsersConfig> = {}
    for (const { file, index } of usersFiles(gateway.value, running)) {
      if (Object.hasOwn(users, file)) continue
      const place = ['login', 'sources', index, 'file']
      const loaded = this.#read(file, usersSchema, message => report(place, message))
      if (loaded === undefined) continue
      users[file] = loaded.value
      checkUsers(loaded.value, this.#reportIn(loaded))
    }
    return users
  }

  readContracts(routes: Files['routes']): Config['contracts'] {
    return loadContracts(routes.value, {
      read: name => {
        const file = this.#read(name, schemaFile)
        return (
          file && { value: file.value as Static<typeof schemaFile>, report: this.#reportIn(file) }
        )
      },
      report: this.#reportIn(routes)
    })
  }

  /** The PEM files of upstreams (authorities and certificates), by file name. */
  readAuthorities(routes: Files['routes']): Record<string, string> {
    const report = this.#reportIn(routes)
    const { upstreams } = routes.value
    const authorities: Record<string, string> = {}
    // The schema's faults have been reported already.
    for (const [name, upstream] of Object.entries(isObject(upstreams) ? upstreams : {})) {
      for (const { keys, file } of pemFilesOf(upstream)) {
        try {
          authorities[file] = this.#inputs.read(resolve(this.#folder, file))
        } catch (error) {
          const reason = (error as NodeJS.ErrnoException).code ?? (error as Error).message
          report(['upstreams', name, ...keys], `the file cannot be read (${reason})`)
        }
      }
    }
    return authorities
  }

  /**
   * Checks the files against each other, and with the running process's install config too.
   * @returns keys of `gateway.yaml` that differ from it
   */
  check(config: CheckedConfig, files: Files, running?: GatewayConfig): string[] {
    const schemaFaults = [...this.#faults]
    const isUnfit = schemaFaults.length > 0
    checkConfig(config, this.#reportOf(files, schemaFaults, ''), isUnfit)
    if (running === undefined || isUnfit) return []
    const restartNeeded = installDifferences(running, config.gateway)
    if (restartNeeded.length > 0) {
      const note = ' (for the running process; the change of this file needs a restart)'
      checkConfig({ ...config, gateway: running }, this.#reportOf(files, [], note), false)
    }
    return restartNeeded
  }

  #reportOf(files: Files, schemaFaults: readonly Fault[], note: string): Report {
    return (file, path, message, how = 'fault') => {
      const { severity = 'fault', also } = typeof how === 'string' ? { severity: how } : how
      const line = also === undefined ? undefined : files[file].lineOf(also)
      const otherPlace = line === undefined ? '' : ` (line ${line})`
      const text = message + otherPlace + (file === 'gateway' ? note : '')
      const fault = files[file].fault(path, text, severity)
      // Not reported again: a fault at or below a value that does not match its schema.
      const follows = schemaFaults.some(
        other => other.file === fault.file && `${fault.path}.`.startsWith(`${other.path}.`)
      )
      const isKnown = this.#faults.some(other => isDeepStrictEqual(other, fault))
      if (!follows && !isKnown) this.#faults.push(fault)
    }
  }

  /** @throws ConfigError when a fault is more than a warning */
  warnings(): Fault[] {
    const warnings = this.#faults.filter(({ severity }) => severity === 'warning')
    if (warnings.length < this.#faults.length) throw new ConfigError(this.#faults)
    return warnings
  }
}

/** The users files of the file's sources and of the running process's, with the source's index. */
function usersFiles(
  gateway: GatewayConfig,
  running?: GatewayConfig
): Array<{ file: string; index: number }> {
  // The schema's faults have been reported already.
  return [gateway, ...(running === undefined ? [] : [running])].flatMap(({ login }) => {
    const sources = Array.isArray(login?.sources) ? login.sources : []
    return sources.flatMap((source, index) => {
      const isFile = source?.kind === 'users-file' && typeof source.file === 'string'
      return isFile ? [{ file: source.file, index }] : []
    })
  })
}

/** The PEM files that an upstream names, and the keys that do. */
function pemFilesOf(upstream: UpstreamConfig | undefined): Array<{ keys: string[]; file: string }> {
  const { ca, tls } = upstream ?? {}
  // The schema's faults have been reported already.
  const named: ReadonlyArray<readonly [keys: string[], file: unknown]> = [
    [['ca'], ca],
    [['tls', 'ca'], tls?.ca],
    [['tls', 'certificate'], tls?.certificate]
  ]
  return named.flatMap(([keys, file]) => (typeof file === 'string' ? [{ keys, file }] : []))
}

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    for (const member of Object.values(value)) deepFreeze(member)
  }
  return value
}
