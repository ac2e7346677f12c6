/** Loads all config files: read, checked against each other and frozen. */
import { resolve } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { Static, TSchema } from 'typebox'
import { checkConfig } from '../check/check.ts'
import { contractSteps } from '../check/contracts.ts'
import { checkUsers } from '../check/users.ts'
import type { CheckedConfig, Report } from '../check/report.ts'
import type { Config, ConfigFile, LoadedConfig, ServerTls } from '../schema/config.ts'
import { schemaFile } from '../schema/contracts.ts'
import { ConfigError, type Fault } from '../schema/faults.ts'
import { gatewaySchema, type GatewayConfig } from '../schema/gateway.ts'
import { limitsSchema, type LimitsConfig } from '../schema/limits.ts'
import { routesSchema, type RoutesConfig } from '../schema/routes.ts'
import { usersSchema, type UsersConfig } from '../schema/users.ts'
import { type PresetChoice, presetKeys } from '../schema/presets.ts'
import { isObject, type Path } from '../schema/visit.ts'
import { installDifferences } from './differences.ts'
import { documentSteps } from './document.ts'
import { withEnvFile } from './env-file.ts'
import { createInputs, type Inputs } from './inputs.ts'
import { type Layers, ownLayer } from './layers.ts'
import { pemFilesOf, readModules, unreadable, usersFiles } from './named-files.ts'
import { layerSteps } from './presets.ts'
import { completeSteps, type LoadedFile } from './read-file.ts'
import type { Environment } from './references.ts'
import { deepFreeze } from './written.ts'
import { runSteps, type Steps } from '../schema/steps.ts'

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
export const loadConfig = (...args: Parameters<typeof loadSteps>): LoadedConfig =>
  runSteps(loadSteps(...args))

export function* loadSteps(
  folder: string,
  environment: Environment,
  options: Options = {}
): Steps<LoadedConfig> {
  const inputs = options.inputs ?? createInputs()
  const config = yield* load(folder, environment, { ...options, inputs })
  const { running } = options
  if (running === undefined || !changesPreset(config.restartNeeded)) return config
  // Until the restart, routes and limits are those of the presets that the process started with.
  return yield* load(folder, environment, { ...options, inputs, presets: running })
}

function changesPreset(restartNeeded: readonly string[]): boolean {
  return Object.values(presetKeys).some(key => restartNeeded.includes(key))
}

interface LoadOptions extends Options {
  readonly inputs: Inputs
  /** For `routes.yaml` and `limits.yaml`, instead of those that `gateway.yaml` names. */
  readonly presets?: PresetChoice
}

function* load(
  folder: string,
  environment: Environment,
  { running, limitsFile = 'limits.yaml', inputs, presets }: LoadOptions
): Steps<LoadedConfig> {
  const loader = new Loader(resolve(folder), withEnvFile(folder, environment, inputs), inputs)
  const files = yield* loader.readFiles(limitsFile, presets)
  const config = {
    folder: resolve(folder),
    gateway: files.gateway.value,
    routes: files.routes.value,
    limits: files.limits.value,
    users: yield* loader.readUsers(files.gateway, running),
    contracts: yield* loader.readContracts(files.routes),
    authorities: loader.readAuthorities(files.routes),
    modules: loader.readModules(files.routes),
    written: {
      gateway: files.gateway.written,
      routes: files.routes.written,
      limits: files.limits.written
    },
    ...loader.readListenersTls(files.gateway),
    ...loader.readRedisCa(files.gateway)
  }
  yield
  const restartNeeded =
    presets === undefined || running === undefined
      ? loader.check(config, files, running)
      : loader.checkForRunning(config, files, running)
  yield
  const warnings = loader.warnings()
  return deepFreeze({
    ...config,
    inputs: inputs.fingerprints(),
    documents: inputs.documents(),
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

  #complete<T extends TSchema>(schema: T, layers: Layers): Steps<LoadedFile<Static<T>>> {
    return completeSteps(schema, layers, {
      folder: this.#folder,
      environment: this.#environment,
      inputs: this.#inputs,
      faults: this.#faults
    })
  }

  /** @param namedBy gets the fault of a missing file at the line that names it */
  *#read<T extends TSchema>(name: string, schema: T, namedBy?: (message: string) => void) {
    const document = yield* documentSteps(resolve(this.#folder, name), name, {
      inputs: this.#inputs,
      faults: this.#faults,
      isJsonSchema: (schema as TSchema) === schemaFile,
      ...(namedBy && { namedBy })
    })
    return document && (yield* this.#complete(schema, { file: ownLayer(document), presets: [] }))
  }

  /** Reports faults at paths of one file. */
  #reportIn(file: LoadedFile<unknown>) {
    return (path: Path, message: string, severity?: Fault['severity']): void => {
      this.#faults.push(file.fault(path, message, severity))
    }
  }

  /**
   * @param running for `routes.yaml` and `limits.yaml`, instead of the presets in `gateway.yaml`
   * @throws ConfigError when one of the three files, or a preset, cannot be read
   */
  *readFiles(limitsFile: string, running?: PresetChoice): Steps<Files> {
    const layers = yield* layerSteps(this.#folder, {
      environment: this.#environment,
      inputs: this.#inputs,
      faults: this.#faults,
      limitsFile,
      ...(running && { running })
    })
    return {
      gateway: yield* this.#complete(gatewaySchema, layers.gateway),
      routes: yield* this.#complete(routesSchema, layers.routes),
      limits: yield* this.#complete(limitsSchema, layers.limits)
    }
  }

  *readUsers(
    gateway: Files['gateway'],
    running?: GatewayConfig
  ): Steps<Record<string, UsersConfig>> {
    const report = this.#reportIn(gateway)
    const users: Record<string, UsersConfig> = {}
    for (const { file, place, note } of usersFiles(gateway.value, running)) {
      if (Object.hasOwn(users, file)) continue
      const loaded = yield* this.#read(file, usersSchema, message => report(place, message + note))
      if (loaded === undefined) continue
      users[file] = loaded.value
      checkUsers(loaded.value, this.#reportIn(loaded))
    }
    return users
  }

  *readContracts(routes: Files['routes']): Steps<Config['contracts']> {
    const read = function* (this: Loader, name: string) {
      const file = yield* this.#read(name, schemaFile)
      return file && { value: file.value, report: this.#reportIn(file) }
    }
    return yield* contractSteps(routes.value, {
      read: read.bind(this),
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
        const text = this.#readPem(file, reason => report(['upstreams', name, ...keys], reason))
        if (text !== undefined) authorities[file] = text
      }
    }
    return authorities
  }

  readModules(routes: Files['routes']): Record<string, string> {
    const read = (file: string) => this.#inputs.readDocument(resolve(this.#folder, file))
    return readModules(routes.value, read, this.#reportIn(routes))
  }

  /** The pairs of `server.tls` and `ops.tls`. Their keys were read as secrets already. */
  readListenersTls(gateway: Files['gateway']): Pick<Config, 'serverTls' | 'opsTls'> {
    const serverTls = this.#readPair(gateway, 'server')
    const opsTls = this.#readPair(gateway, 'ops')
    return { ...(serverTls && { serverTls }), ...(opsTls && { opsTls }) }
  }

  #readPair(gateway: Files['gateway'], listener: 'server' | 'ops'): ServerTls | undefined {
    const { certificate, key }: Partial<ServerTls> = gateway.value[listener]?.tls ?? {}
    // The schema's faults have been reported already.
    if (typeof certificate !== 'string' || typeof key !== 'string') return undefined
    const place = [listener, 'tls', 'certificate']
    const text = this.#readPem(certificate, reason => this.#reportIn(gateway)(place, reason))
    return text === undefined ? undefined : { certificate: text, key }
  }

  readRedisCa(gateway: Files['gateway']): Pick<Config, 'redisCa'> {
    const ca: unknown = gateway.value.redis?.ca
    // The schema's faults have been reported already.
    if (typeof ca !== 'string') return {}
    const report = (reason: string) => this.#reportIn(gateway)(['redis', 'ca'], reason)
    const redisCa = this.#readPem(ca, report)
    return redisCa === undefined ? {} : { redisCa }
  }

  /** @returns the text of the file, or undefined if it cannot be read */
  #readPem(file: string, report: (message: string) => void): string | undefined {
    try {
      // Text around certificates is no part of them, in whatever encoding.
      return this.#inputs.readBytes(resolve(this.#folder, file)).toString('utf8')
    } catch (error) {
      report(unreadable(error))
      return undefined
    }
  }

  /**
   * Checks the files against each other, and with the running process's install config too.
   * @returns keys of `gateway.yaml` that differ from it
   */
  check(config: CheckedConfig, files: Files, running?: GatewayConfig): string[] {
    const schemaFaults = [...this.#faults]
    const isUnfit = schemaFaults.length > 0
    checkConfig(
      config,
      this.#reportOf(files, schemaFaults, () => ''),
      isUnfit
    )
    if (running === undefined || isUnfit) return []
    const restartNeeded = installDifferences(running, config.gateway)
    if (restartNeeded.length > 0 && !changesPreset(restartNeeded)) {
      const note = ' (for the running process; the change of this file needs a restart)'
      const report = this.#reportOf(files, [], file => (file === 'gateway' ? note : ''))
      checkConfig({ ...config, gateway: running }, report, false)
    }
    return restartNeeded
  }

  /** Checks files that were merged with the running process's presets. */
  checkForRunning(config: CheckedConfig, files: Files, running: GatewayConfig): string[] {
    const schemaFaults = [...this.#faults]
    const note = ' (for the running process, which has other presets until it is restarted)'
    const report = this.#reportOf(files, schemaFaults, () => note)
    checkConfig({ ...config, gateway: running }, report, schemaFaults.length > 0)
    return installDifferences(running, config.gateway)
  }

  #reportOf(
    files: Files,
    schemaFaults: readonly Fault[],
    noteOf: (file: ConfigFile) => string
  ): Report {
    return (file, path, message, how = 'fault') => {
      const { severity = 'fault', also } = typeof how === 'string' ? { severity: how } : how
      const line = also === undefined ? undefined : files[file].lineOf(also)
      const otherPlace = line === undefined ? '' : ` (line ${line})`
      const text = message + otherPlace + (severity === 'fault' ? noteOf(file) : '')
      const fault = files[file].fault(path, text, severity)
      // A warning is for the author of the key: operators cannot mend a preset.
      if (severity === 'warning' && files[file].placeOf(path)?.preset !== undefined) return
      // Not reported again: a fault at or below a value that does not match its schema.
      const follows = schemaFaults.some(
        other =>
          files[file].files.includes(other.file) && `${fault.path}.`.startsWith(`${other.path}.`)
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
