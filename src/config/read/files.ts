import { resolve } from 'node:path'
import type { TSchema, Static } from 'typebox'
import type { Named, Report } from '../schema/config.ts'
import { ConfigError, type Fault, reasonOf } from '../schema/faults.ts'
import { type GatewayConfig, gatewaySchema } from '../schema/gateway.ts'
import { asNode, type NamedThing, type Node, type Path } from '../schema/node.ts'
import { fileIn } from '../schema/resolved.ts'
import { runSteps, type Steps } from '../schema/steps.ts'
import { documentSteps, faultAt, placeAt, type Tree, treeOf } from './document.ts'
import { type Environment, type FolderReading, openFolder } from './inputs.ts'
import { folderSteps, mergedTree } from './presets.ts'
import { read } from './read.ts'

/** A config folder, or several of which a later one wins. */
export type Folders = string | readonly string[]

export function readTree(schema: Node, tree: Tree, reading: FolderReading, named: Named[] = []) {
  const report = (path: Path, message: string) => reading.faults.push(faultAt(tree, path, message))
  return read(schema, tree.value, { ...reading, report, named })
}

export function reporterOf(tree: Tree, faults: Fault[], note = '', place: Path = []): Report {
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

interface Naming extends FolderReading {
  readonly named: readonly Named[]
  /** Of the files that name others. */
  readonly report: Report
}

/** Each file once, by its name. @param check of a value that fits the schema */
export function* readMappings<T extends TSchema>(
  what: NamedThing,
  schema: T,
  check: (value: Static<T>, report: Report) => void,
  { named, report, ...reading }: Naming
): Steps<Record<string, Static<T>>> {
  const { faults } = reading
  const values: Record<string, Static<T>> = {}
  for (const { name, path } of named.filter(each => each.what === what)) {
    if (Object.hasOwn(values, name)) continue
    const layer = yield* documentSteps(fileIn(reading, name), name, {
      ...reading,
      isJsonSchema: what === 'contract file',
      namedBy: message => report(path, message)
    })
    if (layer === undefined) continue
    const tree = treeOf(layer)
    const before = faults.length
    const value = readTree(asNode(schema), tree, reading) as Static<T>
    if (faults.length === before) check(value, reporterOf(tree, faults))
    values[name] = value
    yield
  }
  return values
}

export function readTexts(what: NamedThing, { named, report, ...reading }: Naming) {
  const texts: Record<string, string> = {}
  for (const { name, path } of named.filter(each => each.what === what)) {
    try {
      texts[name] ??= reading.inputs.readDocument(fileIn(reading, name))
    } catch (error) {
      report(path, `the file cannot be read (${reasonOf(error)})`)
    }
  }
  return texts
}

const hidesUsersFiles = /^(|extends|backend|login|login\.sources(\.[a-z0-9-]+(\.(file|kind))?)?)$/

/**
 * The rest of config may be faulty: commands must work while an operator mends it.
 * @throws ConfigError when `gateway.yaml` does not say them
 */
export function readUsersFiles(folders: Folders, environment: Environment): string[] {
  const reading = openFolder(folders, environment)
  const tree = runSteps(folderSteps(reading, ['gateway.yaml']))
  const named: Named[] = []
  readTree(asNode(gatewaySchema), tree, reading, named)
  const faults = reading.faults.filter(({ path }) => hidesUsersFiles.test(path))
  if (faults.length > 0) throw new ConfigError(faults)
  return named.filter(({ what }) => what === 'users file').map(({ name }) => name)
}

/** `ops.socket`; undefined for its default. The files may be faulty, for the same reason. */
export function readOpsSocket(folders: Folders, environment: Environment) {
  const reading = openFolder(folders, environment)
  const file = 'gateway.yaml'
  // Presets do not set `ops`.
  const layers = [...reading.bases, reading.folder].flatMap(
    folder => runSteps(documentSteps(resolve(folder, file), file, reading)) ?? []
  )
  const gateway = readTree(asNode(gatewaySchema), mergedTree(layers), reading)
  const { socket } = (gateway as Partial<GatewayConfig>).ops ?? {}
  return typeof socket === 'string' ? resolve(reading.folder, socket) : socket
}
