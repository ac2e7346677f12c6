/** Loads all config files: read, checked against each other and frozen. */
import { isRecord, type JsonRecord } from '../../json/values.ts'
import { checkConfig, checkNamed, checkUsers, namesIn } from '../check/check.ts'
import { checkSchema } from '../check/parts.ts'
import { gatewayChanges } from '../diff.ts'
import {
  type Config,
  configSchema,
  fileOfKey,
  schemaOf,
  type LoadedConfig,
  type Named,
  type CheckedConfig
} from '../schema/config.ts'
import { schemaFile } from '../schema/proxied.ts'
import { ConfigError, type Fault } from '../schema/faults.ts'
import type { GatewayConfig } from '../schema/gateway.ts'
import { branchOf, memberSchema, type Node, ownMember, type Path } from '../schema/node.ts'
import { presetKeys } from '../schema/presets.ts'
import { runSteps, type Steps } from '../schema/steps.ts'
import { usersSchema } from '../schema/users.ts'
import { faultAt, type Tree } from './document.ts'
import { type Folders, readMappings, readTexts, readTree, reporterOf } from './files.ts'
import { type Environment, type Inputs, openFolder } from './inputs.ts'
import { folderSteps, sectionsOf } from './presets.ts'

interface Options {
  /** Its install config is used; that of the files must be valid all the same. */
  readonly running?: Config | undefined
  readonly inputs?: Inputs
}

/** @throws ConfigError with every fault at once. */
export const loadConfig = (...args: Parameters<typeof loadSteps>): LoadedConfig =>
  runSteps(loadSteps(...args))

export function* loadSteps(
  folders: Folders,
  environment: Environment,
  { running, inputs }: Options = {}
): Steps<LoadedConfig> {
  const reading = openFolder(folders, environment, inputs)
  const { faults } = reading
  const tree = yield* folderSteps(reading)
  const named: Named[] = []
  const value = readTree(configSchema, tree, reading, named) as JsonRecord
  yield
  const report = reporterOf(tree, faults)
  const naming = { ...reading, named, report }
  const users = yield* readMappings('users file', usersSchema, checkUsers, naming)
  const contracts = yield* readMappings('contract file', schemaFile, checkSchema, naming)
  const modules = readTexts('module', naming)
  // Only values that fit their schema are checked further.
  if (faults.length > 0) {
    checkNamed(named, namesIn(tree.value), report)
    throw new ConfigError(faults)
  }
  const { folder, bases } = reading
  const sections = sectionsOf(value) as Pick<CheckedConfig, 'gateway' | 'routes' | 'limits'>
  const written = { folder, bases, named, ...sections, users }
  checkConfig(written, report)
  throwFaults(faults)
  yield
  const config = running ? forRunning(written, running) : written
  const restartNeeded = checkForRunning(config, written, tree, faults)
  throwFaults(faults)
  return deepFreeze({
    ...config,
    contracts,
    modules,
    inputs: reading.inputs.fingerprints(),
    documents: reading.inputs.documents(),
    restartNeeded,
    warnings: faults,
    fault: (path: Path, message: string) => faultAt(tree, path, message)
  })
}

/** @throws ConfigError when a fault is more than a warning */
function throwFaults(faults: readonly Fault[]): void {
  if (faults.some(({ severity }) => severity === 'fault')) throw new ConfigError(faults)
}

/** With the install config of the process, and the users files that it names. */
function forRunning(written: CheckedConfig, running: Config): CheckedConfig {
  const isOfGateway = ({ path: [key = ''] }: Named) => fileOfKey(String(key)) === 'gateway'
  const named = running.named.filter(isOfGateway)
  const users = named.flatMap(({ what, name }) =>
    what === 'users file' ? [[name, running.users[name] ?? { users: {} }] as const] : []
  )
  return {
    ...written,
    named: [...named, ...written.named.filter(each => !isOfGateway(each))],
    users: { ...Object.fromEntries(users), ...written.users },
    gateway: withLive(schemaOf.gateway, running.gateway, written.gateway) as GatewayConfig
  }
}

/** Of the files only what needs no restart. */
function withLive(schema: Node, running: unknown, files: unknown): unknown {
  if (schema.restart === false) return files ?? running
  if (!isRecord(running) || !isRecord(files)) return running
  const branch = branchOf(schema, running)
  const members = Object.entries(running).map(([key, value]) => {
    const member = memberSchema(branch, key) ?? {}
    return [key, withLive(member, value, ownMember(files, key))]
  })
  return Object.fromEntries(members) as unknown
}

function checkForRunning(
  config: CheckedConfig,
  written: CheckedConfig,
  tree: Tree,
  faults: Fault[]
): string[] {
  const restartNeeded = gatewayChanges(config.gateway, written.gateway)
    .filter(({ restart }) => restart)
    .map(({ path }) => path)
  for (const key of Object.values(presetKeys).filter(each => restartNeeded.includes(each))) {
    faults.push(faultAt(tree, [key], 'another preset needs a restart of the process'))
  }
  if (restartNeeded.length > 0) {
    const note = ' (for the running process; the change of gateway.yaml needs a restart)'
    checkConfig(config, reporterOf(tree, faults, note))
  }
  return restartNeeded
}

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    for (const member of Object.values(value)) deepFreeze(member)
  }
  return value
}
