import { resolve } from 'node:path'
import type { TSchema, Static } from 'typebox'
import type { Named, Report } from '../schema/config.ts'
import { ConfigError, reasonOf } from '../schema/faults.ts'
import { type GatewayConfig, gatewaySchema } from '../schema/gateway.ts'
import { asNode, type Node, type Path } from '../schema/node.ts'
import { fileIn } from '../schema/resolved.ts'
import { runSteps, type Steps } from '../schema/steps.ts'
import { documentSteps, faultAt, type Tree, treeOf } from './document.ts'
import { type Environment, type FolderReading, openFolder } from './inputs.ts'
import { folderSteps, mergedTree } from './presets.ts'
import { read } from './read.ts'

/** A config folder, or several of which a later one wins. */
export type Folders = string | readonly string[]

export function readTree(schema: Node, tree: Tree, reading: FolderReading, named: Named[] = []) {
  const report = (path: Path, message: string) => reading.faults.push(faultAt(tree, path, message))
  return read(schema, tree.value, { ...reading, report, named })
}

/** Each file once, by its name. One with faults is left out. */
export function* readMappings<T extends TSchema>(
  named: readonly Named[],
  schema: T,
  reading: FolderReading,
  report: Report
): Steps<Record<string, { readonly tree: Tree; readonly value: Static<T> }>> {
  const { faults } = reading
  const files: Record<string, { readonly tree: Tree; readonly value: Static<T> }> = {}
  for (const { what, name, path } of named) {
    if (Object.hasOwn(files, name)) continue
    const before = faults.length
    const layer = yield* documentSteps(fileIn(reading, name), name, {
      ...reading,
      isJsonSchema: what === 'contract file',
      namedBy: message => report(path, message)
    })
    if (layer === undefined) continue
    const tree = treeOf(layer)
    const value = readTree(asNode(schema), tree, reading)
    if (faults.length === before) files[name] = { tree, value: value as Static<T> }
    yield
  }
  return files
}

export function readTexts(named: readonly Named[], reading: FolderReading, report: Report) {
  const texts: Record<string, string> = {}
  for (const { name, path } of named) {
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
