/** Loads all config files: read, checked against each other and frozen. */
import type { JsonRecord } from '../../json/values.ts'
import { checkConfig, checkNamed, checkUsers, namesIn } from '../check/check.ts'
import { contractSteps } from '../check/parts.ts'
import { installChanges } from '../diff.ts'
import {
  type Config,
  configSchema,
  fileOfKey,
  type LoadedConfig,
  type Named,
  type ServerTls,
  type CheckedConfig,
  type Report
} from '../schema/config.ts'
import { schemaFile } from '../schema/proxied.ts'
import { ConfigError, type Fault } from '../schema/faults.ts'
import type { GatewayConfig, SourceConfig } from '../schema/gateway.ts'
import type { Path } from '../schema/node.ts'
import { fileIn } from '../schema/resolved.ts'
import { presetKeys } from '../schema/presets.ts'
import { runSteps, type Steps } from '../schema/steps.ts'
import { usersSchema } from '../schema/users.ts'
import { faultAt, placeAt, type Tree } from './document.ts'
import { type Folders, readMappings, readTexts, readTree } from './files.ts'
import { type FolderReading, type Inputs, openFolder } from './inputs.ts'
import { folderSteps, sectionsOf } from './presets.ts'
import type { Environment } from './references.ts'

interface Options {
  /** Its install config is used instead of the files', which must be valid all the same. */
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
  const { users, schemas, pemTexts, modules } = yield* readNamedFiles(named, reading, report)
  // Only values that fit their schema are checked further.
  if (faults.length > 0) {
    checkNamed(named, namesIn(tree.value), report)
    throw new ConfigError(faults)
  }
  const { folder, bases } = reading
  const sections = sectionsOf(value) as Sections
  const contents = contentOf(sections.gateway, named, pemTexts)
  const valueOf = ([name, file]: [string, (typeof users)[string]]) => [name, file.value] as const
  const ofUsers = Object.fromEntries(Object.entries(users).map(valueOf))
  const config = { folder, bases, named, ...sections, ...contents, users: ofUsers }
  const contracts = yield* contractSteps(config.routes, schemas, file =>
    reporterOf(file.tree, faults)
  )
  for (const file of Object.values(users)) checkUsers(file.value, reporterOf(file.tree, faults))
  checkConfig(config, report)
  throwFaults(faults)
  yield
  const restartNeeded = running ? checkForRunning(config, running.gateway, tree, faults) : []
  throwFaults(faults)
  const kept = filesOfSources(running)
  return deepFreeze({
    ...config,
    users: { ...kept.users, ...config.users },
    authorities: { ...kept.authorities, ...config.authorities },
    contracts,
    modules,
    inputs: reading.inputs.fingerprints(),
    documents: reading.inputs.documents(),
    gateway: running?.gateway ?? config.gateway,
    restartNeeded,
    warnings: faults,
    fault: (path: Path, message: string) => faultAt(tree, path, message)
  })
}

/** @throws ConfigError when a fault is more than a warning */
function throwFaults(faults: readonly Fault[]): void {
  if (faults.some(({ severity }) => severity === 'fault')) throw new ConfigError(faults)
}

type Sections = Pick<CheckedConfig, 'gateway' | 'routes' | 'limits'>

function* readNamedFiles(named: readonly Named[], reading: FolderReading, report: Report) {
  const { inputs } = reading
  const of = (kind: Named['what']) => named.filter(({ what }) => what === kind)
  const users = yield* readMappings(of('users file'), usersSchema, reading, report)
  const schemas = yield* readMappings(of('contract file'), schemaFile, reading, report)
  // Text around certificates is no part of them, in whatever encoding.
  const readPem = (name: string) => inputs.readBytes(fileIn(reading, name)).toString('utf8')
  const readModule = (name: string) => inputs.readDocument(fileIn(reading, name))
  return {
    users,
    schemas,
    pemTexts: readTexts(of('PEM file'), readPem, report),
    modules: readTexts(of('module'), readModule, report)
  }
}

/** What the sources of the running process need, whatever the files name now. */
function filesOfSources(running: Config | undefined) {
  const sources = Object.values(running?.gateway.login.sources ?? {})
  const nameOf = (source: SourceConfig) => {
    if (source.kind === 'users-file') return source.file
    return source.kind === 'ldap' ? source.ca : undefined
  }
  const names = new Set(sources.map(nameOf))
  const pick = <T>(all: Readonly<Record<string, T>> = {}) =>
    Object.fromEntries(Object.entries(all).filter(([name]) => names.has(name)))
  return { users: pick(running?.users), authorities: pick(running?.authorities) }
}

/** What config has of the PEM files that it names. */
function contentOf(
  { server, ops, redis }: GatewayConfig,
  named: readonly Named[],
  pemTexts: Readonly<Record<string, string>>
) {
  const pairOf = (pair: ServerTls | undefined): ServerTls | undefined =>
    pair && { certificate: pemTexts[pair.certificate] ?? '', key: pair.key }
  const [serverTls, opsTls] = [pairOf(server.tls), pairOf(ops.tls)]
  const redisCa = redis?.ca === undefined ? undefined : pemTexts[redis.ca]
  const ofClients = named.filter(
    ({ what, path: [section] }) =>
      what === 'PEM file' && (section === 'upstreams' || section === 'login')
  )
  return {
    authorities: Object.fromEntries(ofClients.map(({ name }) => [name, pemTexts[name] ?? ''])),
    ...(serverTls && { serverTls }),
    ...(opsTls && { opsTls }),
    ...(redisCa !== undefined && { redisCa })
  }
}

/** @param note after each message; warnings were reported without it */
function reporterOf(tree: Tree, faults: Fault[], note = ''): Report {
  return (path, message, { warning = false, also } = {}) => {
    // A warning is for the author of the key: operators cannot mend a preset.
    if (warning && (note !== '' || placeAt(tree, path)?.preset !== undefined)) return
    const other = also === undefined ? undefined : placeAt(tree, also)
    const isOwn = other !== undefined && other.preset === undefined
    const otherPlace = isOwn ? ` (line ${other.line})` : ''
    const severity = warning ? 'warning' : 'fault'
    faults.push(faultAt(tree, path, message + otherPlace + note, severity))
  }
}

/** @returns keys of `gateway.yaml` that differ from the install config of the process */
function checkForRunning(
  config: CheckedConfig,
  running: GatewayConfig,
  tree: Tree,
  faults: Fault[]
): string[] {
  const restartNeeded = installChanges(running, config.gateway).map(({ path }) => path)
  for (const key of Object.values(presetKeys).filter(each => restartNeeded.includes(each))) {
    // Routes and limits are merged with the preset of the running process no more.
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
