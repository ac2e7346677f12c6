import { readFileSync } from 'node:fs'
import { basename, resolve } from 'node:path'
import { isRecord, type JsonRecord } from '../../json/values.ts'
import { type ConfigFile, fileOfKey } from '../schema/config.ts'
import { ConfigError, faultOfFile } from '../schema/faults.ts'
import { asNode } from '../schema/node.ts'
import {
  presetChoice,
  presetFile,
  presetKeys,
  type PresetKind,
  presetKinds
} from '../schema/presets.ts'
import type { Steps } from '../schema/steps.ts'
import { documentSteps, faultAt, type Layer, placeAt, type Tree, treeOf } from './document.ts'
import type { FolderReading } from './inputs.ts'
import { read } from './read.ts'

export function presetText(kind: PresetKind, name: string): string {
  return readFileSync(presetFile(kind, name), 'utf8')
}

/** The files of the folder over its presets. @throws ConfigError when one cannot be read */
export function* folderSteps(
  reading: FolderReading,
  names: readonly string[] = ['gateway.yaml', 'routes.yaml', 'limits.yaml']
): Steps<Tree> {
  const { faults } = reading
  const own: Layer[] = []
  for (const folder of [...reading.bases, reading.folder]) {
    own.push(...(yield* ownFiles(folder, reading, names)))
  }
  if (faults.length > 0) throw new ConfigError(faults)
  const tree = mergedTree(own)
  const presets = yield* readPresets(tree, reading)
  if (faults.length > 0) throw new ConfigError(faults)
  return mergedTree([...presets, ...own])
}

export function mergedTree(layers: readonly Layer[]): Tree {
  const ownName = (name: string) =>
    layers.findLast(({ file, preset }) => preset === undefined && basename(file) === name)?.file
  return {
    value: layers.map(({ value }) => value).reduce(mergeMappings, {}),
    layers,
    fileOf: ([key = '']) => ownName(`${fileOfKey(String(key))}.yaml`) ?? ''
  }
}

/** The later wins, also with its order. `null` removes a key; an empty one changes nothing. */
function mergeMappings(base: JsonRecord, over: JsonRecord): JsonRecord {
  const inherited = new Map(Object.entries(base))
  const members = new Map<string, unknown>()
  for (const [key, value] of Object.entries(over)) {
    const former = inherited.get(key)
    if (inherited.delete(key) && value === null) continue
    const areBoth = isRecord(former) && isRecord(value)
    const either = value === undefined ? former : value
    members.set(key, areBoth ? mergeMappings(former, value) : either)
  }
  return Object.fromEntries([...members, ...inherited])
}

export function sectionsOf(value: JsonRecord): Record<ConfigFile, JsonRecord> {
  const pick = (file: ConfigFile) =>
    Object.fromEntries(Object.entries(value).filter(([key]) => fileOfKey(key) === file))
  return { gateway: pick('gateway'), routes: pick('routes'), limits: pick('limits') }
}

/** The files of one folder. One that another folder has may be missing; else it is in the last. */
function* ownFiles(
  here: string,
  { folder, bases, inputs, faults }: FolderReading,
  names: readonly string[]
): Steps<Layer[]> {
  const isThere = (each: string, name: string) => inputs.isThere(resolve(each, name))
  const layers: Layer[] = []
  // Of a file, too, there is none with the slash.
  if (!names.some(name => isThere(here, name)) && !inputs.isThere(`${here}/`)) {
    faults.push(faultOfFile(here, 'is no folder. `console-gateway init` writes one.'))
    return layers
  }
  for (const name of names) {
    const isElsewhere = here !== folder || bases.some(each => isThere(each, name))
    if (isElsewhere && !isThere(here, name)) continue
    const layer = yield* documentSteps(resolve(here, name), name, { inputs, faults })
    if (layer === undefined) continue
    for (const key of Object.keys(layer.value)) {
      const other = placeAt({ layers }, [key])
      if (other === undefined) continue
      const message = `stands in ${other.file}:${other.line} too: keep one of the two`
      faults.push(faultAt(treeOf(layer), [key], message))
    }
    layers.unshift(layer)
  }
  return layers
}

function* readPresets(own: Tree, reading: FolderReading): Steps<Layer[]> {
  const layers: Layer[] = []
  for (const kind of presetKinds) {
    const key = presetKeys[kind]
    // A wrong key is reported when the whole folder is read.
    const name = read(asNode(presetChoice[key]), own.value[key], { ...reading, report: () => {} })
    if (typeof name !== 'string') continue
    const layer = yield* documentSteps(presetFile(kind, name), `${name}.yaml`, {
      ...reading,
      preset: name,
      namedBy: message =>
        reading.faults.push(faultAt(own, [key], `${message}: install the gateway again`))
    })
    // A preset has a member for each file.
    for (const [part, value] of Object.entries(layer?.value ?? {})) {
      if (layer === undefined || !isRecord(value)) continue
      layers.push({ ...layer, value, placeOf: path => layer.placeOf([part, ...path]) })
    }
  }
  return layers
}
