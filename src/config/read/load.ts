/** Loads all config files: read, checked against each other and frozen. */
import type { JsonRecord } from '../../json/values.ts'
import { checkConfig } from '../check/check.ts'
import { contractSteps } from '../check/contracts.ts'
import { checkNamed, namesIn } from '../check/references.ts'
import type { CheckedConfig, Report } from '../check/report.ts'
import { checkUsers } from '../check/users.ts'
import { installChanges } from '../diff.ts'
import {
  configSchema,
  fileOfKey,
  type LoadedConfig,
  type Named,
  type ServerTls
} from '../schema/config.ts'
import { schemaFile } from '../schema/proxied.ts'
import { ConfigError, type Fault } from '../schema/faults.ts'
import type { GatewayConfig } from '../schema/gateway.ts'
import type { Path } from '../schema/node.ts'
import { fileIn } from '../schema/resolved.ts'
import { presetKeys } from '../schema/presets.ts'
import { runSteps, type Steps } from '../schema/steps.ts'
import { usersSchema } from '../schema/users.ts'
import { faultAt, placeAt, type Tree } from './document.ts'
import { type Folders, openFolder, readMappings, readTexts, readTree } from './files.ts'
import type { Inputs } from './inputs.ts'
import { type FolderReading, folderSteps, sectionsOf } from './presets.ts'
import type { Environment } from './references.ts'

interface Options {
  /**
   * The install config of the running process: used instead of the file's, which must be valid
   * all the same.
   */
  readonly running?: GatewayConfig
  /** Records every file that is read. */
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
  const files = yield* readNamedFiles(named, { ...reading, report }, running)
  // Only values that fit their schema are checked further.
  if (faults.length > 0) {
    checkNamed(named, namesIn(tree.value), report)
    throw new ConfigError(faults)
  }
  const sections = sectionsOf(value) as Sections
  const { folder, bases } = reading
  const config = { folder, bases, named, ...sections, ...contentOf(sections, files) }
  const contracts = yield* contractSteps(config.routes, files.contracts, file =>
    reporterOf(file.tree, faults)
  )
  for (const { value: users, tree: file } of Object.values(files.users)) {
    checkUsers(users, reporterOf(file, faults))
  }
  checkConfig(config, report)
  throwFaults(faults)
  yield
  const restartNeeded = running === undefined ? [] : checkForRunning(config, running, tree, faults)
  throwFaults(faults)
  return deepFreeze({
    ...config,
    contracts,
    modules: files.modules,
    inputs: reading.inputs.fingerprints(),
    documents: reading.inputs.documents(),
    gateway: running ?? config.gateway,
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

interface FilesReading extends FolderReading {
  readonly report: Report
}

function* readNamedFiles(
  named: readonly Named[],
  reading: FilesReading,
  running: GatewayConfig | undefined
) {
  const { inputs, report } = reading
  const all = [...named, ...othersOf(running, named)]
  const of = (kind: Named['what']) => all.filter(({ what }) => what === kind)
  const users = yield* readMappings(of('users file'), usersSchema, reading)
  const contracts = yield* readMappings(of('contract file'), schemaFile, reading)
  // Text around certificates is no part of them, in whatever encoding.
  const readPem = (name: string) => inputs.readBytes(fileIn(reading, name)).toString('utf8')
  const readModule = (name: string) => inputs.readDocument(fileIn(reading, name))
  return {
    users,
    contracts,
    pemTexts: readTexts(of('PEM file'), readPem, report),
    modules: readTexts(of('module'), readModule, report),
    ofClients: new Set(
      of('PEM file').flatMap(({ name, path }) =>
        path[0] === 'upstreams' || path[0] === 'login' ? [name] : []
      )
    )
  }
}

/** The files that the sources of the running process need, and perhaps nothing else. */
function othersOf(running: GatewayConfig | undefined, named: readonly Named[]): Named[] {
  const path = ['login', 'sources']
  const note = ': the running process needs it until it is restarted'
  return Object.values(running?.login.sources ?? {}).flatMap((source): Named[] => {
    if (source.kind === 'users-file') {
      const isNamed = named.some(({ name }) => name === source.file)
      return isNamed ? [] : [{ what: 'users file', name: source.file, path, note }]
    }
    if (source.kind !== 'ldap' || source.ca === undefined) return []
    return [{ what: 'PEM file', name: source.ca, path, note }]
  })
}

type NamedFiles = ReturnType<typeof readNamedFiles> extends Steps<infer T> ? T : never

/** What config has of the files that it names. */
function contentOf({ gateway }: Sections, { users, pemTexts, ofClients }: NamedFiles) {
  const { server, ops, redis } = gateway
  const pairOf = (pair: ServerTls | undefined): ServerTls | undefined =>
    pair && { certificate: pemTexts[pair.certificate] ?? '', key: pair.key }
  const [serverTls, opsTls] = [pairOf(server.tls), pairOf(ops.tls)]
  const redisCa = redis?.ca === undefined ? undefined : pemTexts[redis.ca]
  return {
    users: Object.fromEntries(Object.entries(users).map(([name, file]) => [name, file.value])),
    authorities: Object.fromEntries(
      Object.entries(pemTexts).filter(([name]) => ofClients.has(name))
    ),
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

/**
 * Checks the files with the running process's install config, too.
 * @returns keys of `gateway.yaml` that differ from it
 */
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
