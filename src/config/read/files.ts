/** The files that config names: users files, certificates, own code, contracts. */
import { resolve } from 'node:path'
import type { TSchema, Static } from 'typebox'
import type { Named } from '../schema/config.ts'
import { ConfigError } from '../schema/faults.ts'
import { type GatewayConfig, gatewaySchema } from '../schema/gateway.ts'
import { asNode, type Node, type Path } from '../schema/node.ts'
import { fileIn } from '../schema/resolved.ts'
import { runSteps, type Steps } from '../schema/steps.ts'
import { documentSteps, faultAt, readDocument, type Tree, treeOf } from './document.ts'
import { createInputs, type Inputs, withEnvFile } from './inputs.ts'
import { type FolderReading, folderSteps } from './presets.ts'
import { read } from './read.ts'
import type { Environment } from './references.ts'

/** A config folder, or several of which a later one wins. */
export type Folders = string | readonly string[]

/** @throws ConfigError for a `.env` that cannot be read */
export function openFolder(
  folders: Folders,
  environment: Environment,
  inputs: Inputs = createInputs()
): FolderReading {
  const all = [folders].flat().map(folder => resolve(folder))
  const withFile = (known: Environment, folder: string) => withEnvFile(folder, known, inputs)
  return {
    folder: all.at(-1) ?? '',
    bases: all.slice(0, -1),
    environment: all.reduceRight(withFile, environment),
    inputs,
    faults: []
  }
}

/** @param named gets the names that stand in the tree */
export function readTree(
  schema: Node,
  tree: Tree,
  reading: FolderReading,
  named: Named[] = []
): unknown {
  const { environment, inputs, faults } = reading
  return read(schema, tree.value, {
    environment,
    fileOf: name => fileIn(reading, name),
    readText: inputs.read,
    report: (path, message) => faults.push(faultAt(tree, path, message)),
    named
  })
}

export interface LoadedFile<T> {
  readonly tree: Tree
  readonly value: T
}

type ReportName = (path: Path, message: string) => void

/** Each file once, by its name. One with faults is left out. */
export function* readMappings<T extends TSchema>(
  named: readonly Named[],
  schema: T,
  reading: FolderReading,
  report: ReportName
): Steps<Record<string, LoadedFile<Static<T>>>> {
  const { inputs, faults } = reading
  const files: Record<string, LoadedFile<Static<T>>> = {}
  for (const { what, name, path } of named) {
    if (Object.hasOwn(files, name)) continue
    const before = faults.length
    const layer = yield* documentSteps(fileIn(reading, name), name, {
      inputs,
      faults,
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

export function readTexts(
  named: readonly Named[],
  readText: (name: string) => string,
  report: ReportName
): Record<string, string> {
  const texts: Record<string, string> = {}
  for (const { name, path } of named) {
    try {
      texts[name] ??= readText(name)
    } catch (error) {
      const reason = (error as NodeJS.ErrnoException).code ?? (error as Error).message
      report(path, `the file cannot be read (${reason})`)
    }
  }
  return texts
}

/** Faults that hide which users files there are. */
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
export function readOpsSocket(
  folders: Folders,
  environment: Environment
): string | false | undefined {
  const all = [folders].flat()
  const written = all.map(folder => opsSocketIn(folder, environment))
  const socket = written.findLast(each => each !== undefined)
  return typeof socket === 'string' ? resolve(all.at(-1) ?? '', socket) : socket
}

function opsSocketIn(folder: string, environment: Environment): string | false | undefined {
  const reading = openFolder(folder, environment)
  const layer = readDocument(resolve(folder, 'gateway.yaml'), 'gateway.yaml', reading)
  // Presets do not set `ops`.
  const gateway = layer && readTree(asNode(gatewaySchema), treeOf(layer), reading)
  const socket: unknown = ((gateway ?? {}) as Partial<GatewayConfig>).ops?.socket
  return typeof socket === 'string' || socket === false ? socket : undefined
}
