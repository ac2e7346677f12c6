/** Loads all config files: read, checked against each other and frozen. */
import { schemaProblem } from '../../contract/schema.ts'
import { isRecord, type JsonRecord } from '../../json/values.ts'
import { checkConfig, checkNamed, checkUsers, namesIn } from '../check/check.ts'
import { configHash, gatewayChanges } from '../diff.ts'
import {
  type Config,
  configSchema,
  fileOfKey,
  schemaOf,
  type LoadedConfig,
  type Named,
  type CheckedConfig,
  type Report
} from '../schema/config.ts'
import { schemaFile } from '../schema/proxied.ts'
import { ConfigError, type Fault } from '../schema/faults.ts'
import type { GatewayConfig } from '../schema/gateway.ts'
import { branchOf, memberSchema, type Node, ownMember, type Path } from '../schema/node.ts'
import { presetKeys } from '../schema/presets.ts'
import { runSteps, type Steps } from '../schema/steps.ts'
import { usersSchema } from '../schema/users.ts'
import { faultAt, placeAt, type Tree } from './document.ts'
import { type Folders, readMappings, readTexts, readTree } from './files.ts'
import { type FolderReading, type Inputs, openFolder } from './inputs.ts'
import { folderSteps, sectionsOf } from './presets.ts'
import type { Environment } from './references.ts'

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
  const { users, schemas, modules } = yield* readNamedFiles(named, reading, report)
  // Only values that fit their schema are checked further.
  if (faults.length > 0) {
    checkNamed(named, namesIn(tree.value), report)
    throw new ConfigError(faults)
  }
  const { folder, bases } = reading
  const sections = sectionsOf(value) as Pick<CheckedConfig, 'gateway' | 'routes' | 'limits'>
  const config = { folder, bases, named, ...sections, users: valuesOf(users) }
  for (const { value: schema, tree: of } of Object.values(schemas)) {
    const problem = schemaProblem(schema)
    if (problem !== undefined) reporterOf(of, faults)(problem.path, problem.message)
    yield
  }
  for (const file of Object.values(users)) checkUsers(file.value, reporterOf(file.tree, faults))
  checkConfig(config, report)
  throwFaults(faults)
  yield
  const gateway = running
    ? (withLive(schemaOf.gateway, running.gateway, config.gateway) as GatewayConfig)
    : config.gateway
  const restartNeeded = running ? checkForRunning(config, gateway, tree, faults) : []
  throwFaults(faults)
  yield
  const allUsers = { ...runningUsers(running), ...config.users }
  const contracts = valuesOf(schemas)
  const loaded = { ...config, gateway, users: allUsers, contracts, modules }
  const hash = configHash(loaded)
  yield
  return deepFreeze({
    ...loaded,
    hash,
    inputs: reading.inputs.fingerprints(),
    documents: reading.inputs.documents(),
    restartNeeded,
    warnings: faults,
    fault: (path: Path, message: string) => faultAt(tree, path, message)
  })
}

function valuesOf<T>(files: Readonly<Record<string, { readonly value: T }>>) {
  const values = Object.entries(files).map(([name, { value }]) => [name, value] as const)
  return Object.fromEntries(values)
}

/** @throws ConfigError when a fault is more than a warning */
function throwFaults(faults: readonly Fault[]): void {
  if (faults.some(({ severity }) => severity === 'fault')) throw new ConfigError(faults)
}

function* readNamedFiles(named: readonly Named[], reading: FolderReading, report: Report) {
  const of = (kind: Named['what']) => named.filter(({ what }) => what === kind)
  const users = yield* readMappings(of('users file'), usersSchema, reading, report)
  const schemas = yield* readMappings(of('contract file'), schemaFile, reading, report)
  return { users, schemas, modules: readTexts(of('module'), reading, report) }
}

/** Of the running process, whatever the files name now. */
function runningUsers(running: Config | undefined): Config['users'] {
  const sources = Object.values(running?.gateway.login.sources ?? {})
  const files = sources.flatMap(source => (source.kind === 'users-file' ? [source.file] : []))
  const usersOf = (file: string) => [file, running?.users[file] ?? { users: {} }] as const
  return Object.fromEntries(files.map(usersOf))
}

/** The install config of the process, with what needs no restart. */
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

function reporterOf(tree: Tree, faults: Fault[], note = '', place: Path = []): Report {
  const report = (path: Path, message: string, also?: Path) => {
    const other = also && placeAt(tree, [...place, ...also])
    const isOwn = other !== undefined && other.preset === undefined
    const otherPlace = isOwn ? ` (line ${other.line})` : ''
    faults.push(faultAt(tree, [...place, ...path], message + otherPlace + note))
  }
  return Object.assign(report, {
    warn: (path: Path, message: string) => {
      const where = [...place, ...path]
      // A warning is for the author of the key, or of the route that lacks it: operators cannot
      // mend a preset.
      const written = placeAt(tree, where) ?? placeAt(tree, where.slice(0, 2))
      if (note !== '' || written?.preset !== undefined) return
      faults.push(faultAt(tree, where, message, 'warning'))
    },
    at: (...below: Path) => reporterOf(tree, faults, note, [...place, ...below])
  })
}

function checkForRunning(
  config: CheckedConfig,
  running: GatewayConfig,
  tree: Tree,
  faults: Fault[]
): string[] {
  const restartNeeded = gatewayChanges(running, config.gateway)
    .filter(({ restart }) => restart)
    .map(({ path }) => path)
  for (const key of Object.values(presetKeys).filter(each => restartNeeded.includes(each))) {
    faults.push(faultAt(tree, [key], 'another preset needs a restart of the process'))
  }
  if (restartNeeded.length > 0) {
    const note = ' (for the running process; the change of gateway.yaml needs a restart)'
    const named = [
      ...config.named.filter(({ path: [key = ''] }) => fileOfKey(String(key)) !== 'gateway'),
      ...upstreamsOfSources(running)
    ]
    checkConfig({ ...config, named, gateway: running }, reporterOf(tree, faults, note))
  }
  return restartNeeded
}

function upstreamsOfSources({ login }: GatewayConfig): Named[] {
  return Object.entries(login.sources).flatMap(([name, source]): Named[] => {
    if (source.kind !== 'upstream-login') return []
    const path = ['login', 'sources', name, 'upstream']
    return [{ what: 'upstream', name: source.upstream, path }]
  })
}

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    for (const member of Object.values(value)) deepFreeze(member)
  }
  return value
}
