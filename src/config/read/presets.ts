/** The presets of this installation, and the files of a config folder that builds on them. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { isRecord, type JsonRecord } from '../../json/values.ts'
import { type ConfigFile, fileOfKey, schemaOf } from '../schema/config.ts'
import { ConfigError, type Fault } from '../schema/faults.ts'
import { asNode } from '../schema/node.ts'
import {
  type PresetChoice,
  presetChoiceSchema,
  presetFile,
  presetKeys,
  type PresetKind,
  presetKinds,
  presetsOfKind
} from '../schema/presets.ts'
import type { Steps } from '../schema/steps.ts'
import { documentSteps, faultAt, placeAt, type Tree } from './document.ts'
import type { Inputs } from './inputs.ts'
import { mergeMappings } from './merge.ts'
import { read } from './read.ts'
import type { Environment } from './references.ts'

export function presetText(kind: PresetKind, name: string): string {
  return readFileSync(presetFile(kind, name), 'utf8')
}

/** What reads the files of a config folder. */
export interface FolderReading {
  /** Absolute. */
  readonly folder: string
  /** Those whose files it overrides, absolute. */
  readonly bases: readonly string[]
  readonly environment: Environment
  readonly inputs: Inputs
  readonly faults: Fault[]
}

/**
 * The files of the folder over its presets, as one tree.
 * @throws ConfigError when one of them cannot be read
 */
export function* folderSteps(
  reading: FolderReading,
  names: readonly string[] = ['gateway.yaml', 'routes.yaml', 'limits.yaml']
): Steps<Tree> {
  const { faults } = reading
  const fileNames: Record<string, string> = {}
  const layers: JsonRecord[] = []
  for (const folder of [...reading.bases, reading.folder]) {
    layers.push(yield* ownFiles(folder, { ...reading, names, fileNames }))
  }
  if (faults.length > 0) throw new ConfigError(faults)
  const own: Tree = {
    value: layers.reduce(mergeMappings, {}),
    fileOf: ([key = '']) => fileNames[`${fileOfKey(String(key))}.yaml`] ?? ''
  }
  const presets = yield* readPresets(own, reading)
  if (faults.length > 0) throw new ConfigError(faults)
  return { ...own, value: [...presets, ...layers].reduce(mergeMappings, {}) }
}

/** The keys of each file. */
export function sectionsOf(value: JsonRecord): Record<ConfigFile, JsonRecord> {
  const keysOf = (file: ConfigFile) =>
    Object.keys(value).filter(key => Object.hasOwn(schemaOf[file].properties ?? {}, key))
  const pick = (file: ConfigFile) => Object.fromEntries(keysOf(file).map(key => [key, value[key]]))
  return { gateway: pick('gateway'), routes: pick('routes'), limits: pick('limits') }
}

interface OwnFiles extends FolderReading {
  readonly names: readonly string[]
  /** Gets, by the name of a file, the last that was read. */
  readonly fileNames: Record<string, string>
}

/** The files of one folder. One that another folder has may be missing; else it is in the last. */
function* ownFiles(
  here: string,
  { folder, bases, inputs, faults, names, fileNames }: OwnFiles
): Steps<JsonRecord> {
  const isThere = (each: string, name: string) => inputs.isThere(resolve(each, name))
  let value: JsonRecord = {}
  for (const name of names) {
    const isElsewhere = here !== folder || bases.some(each => isThere(each, name))
    if (isElsewhere && !isThere(here, name)) continue
    const tree = yield* documentSteps(resolve(here, name), name, { inputs, faults })
    if (tree === undefined) continue
    for (const key of Object.keys(tree.value).filter(each => Object.hasOwn(value, each))) {
      const { file = '', line = 0 } = placeAt({ value }, [key]) ?? {}
      faults.push(faultAt(tree, [key], `stands in ${file}:${line} too: keep one of the two`))
    }
    fileNames[name] = tree.fileOf([])
    value = mergeMappings(value, tree.value)
  }
  return value
}

/** In the order of merging. An unknown name is left out: its schema reports it. */
function* readPresets(
  own: Tree,
  { inputs, faults, environment }: FolderReading
): Steps<JsonRecord[]> {
  const trees: JsonRecord[] = []
  const choice = choiceOf(own, environment)
  for (const kind of presetKinds) {
    const key = presetKeys[kind]
    const name = choice[key]
    if (name === undefined || !presetsOfKind(kind).includes(name)) continue
    const tree = yield* documentSteps(presetFile(kind, name), `${name}.yaml`, {
      inputs,
      faults,
      preset: name,
      namedBy: message => faults.push(faultAt(own, [key], `${message}: install the gateway again`))
    })
    // A preset has a member for each file.
    trees.push(...Object.values(tree?.value ?? {}).filter(isRecord))
  }
  return trees
}

/** Which presets the folder names; faults of the two keys are reported when it is read. */
function choiceOf({ value }: Tree, environment: Environment): PresetChoice {
  const { extends: extended, backend } = value
  const written = { extends: extended, backend }
  const choice = read(asNode(presetChoiceSchema), written, {
    environment,
    fileOf: path => path,
    readText: () => '',
    report: () => {}
  })
  return choice as PresetChoice
}
