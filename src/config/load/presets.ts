/** The presets of this installation, and the layers of a config folder that builds on them. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ConfigFile } from '../schema/config.ts'
import { ConfigError, type Fault } from '../schema/faults.ts'
import {
  type PresetChoice,
  presetChoiceSchema,
  presetKeys,
  type PresetKind,
  presetKinds,
  presetsOfKind
} from '../schema/presets.ts'
import { asNode } from '../schema/visit.ts'
import { type ConfigDocument, documentSteps, readDocument } from './document.ts'
import type { Inputs } from './inputs.ts'
import { type Layer, type Layers, mergeLayers, ownLayer } from './layers.ts'
import { type Environment, resolveReferences } from './references.ts'
import { runSteps, type Steps } from '../schema/steps.ts'

/** The folder stands beside `src/` and beside `dist/`. */
const isBuilt = !import.meta.url.endsWith('.ts')
const presetsFolder = new URL(isBuilt ? '../presets/' : '../../../presets/', import.meta.url)

export function presetFile(kind: PresetKind, name: string): string {
  return fileURLToPath(new URL(`${kind}/${name}.yaml`, presetsFolder))
}

export function presetText(kind: PresetKind, name: string): string {
  return readFileSync(presetFile(kind, name), 'utf8')
}

interface PresetContext {
  readonly inputs: Inputs
  readonly faults: Fault[]
  /** Reports a fault at a key of `gateway.yaml`. */
  readonly report: (key: string, message: string) => void
}

/** In the order of merging. An unknown name is left out: its schema reports it. */
export function* readPresets(
  choice: PresetChoice,
  { inputs, faults, report }: PresetContext
): Steps<ConfigDocument[]> {
  const documents: ConfigDocument[] = []
  for (const kind of presetKinds) {
    const key = presetKeys[kind]
    const name = choice[key]
    if (name === undefined || !presetsOfKind(kind).includes(name)) continue
    const document = yield* documentSteps(presetFile(kind, name), `${name}.yaml`, {
      // A preset belongs to the version that is installed.
      inputs: { ...inputs, readDocument: inputs.read },
      faults,
      namedBy: message => report(key, `${message}: install the gateway again`)
    })
    if (document !== undefined) documents.push({ ...document, preset: name })
  }
  return documents
}

/**
 * `gateway.yaml` and its presets, without the other files.
 * @returns undefined when it cannot be read
 */
export function readGatewayLayers(
  folder: string,
  { environment, inputs, faults }: Omit<LayersOptions, 'limitsFile' | 'running'>
): Layers | undefined {
  const document = readDocument(resolve(folder, 'gateway.yaml'), 'gateway.yaml', { inputs, faults })
  if (document === undefined) return undefined
  const file = ownLayer(document)
  const { fault } = mergeLayers({}, { file, presets: [] })
  const report = (key: string, message: string) => {
    faults.push(fault([key], message))
  }
  const choice = choiceOf(document, { environment, folder, read: inputs.read })
  return {
    file,
    presets: layersOf(runSteps(readPresets(choice, { inputs, faults, report })), 'gateway')
  }
}

interface LayersOptions {
  readonly environment: Environment
  readonly inputs: Inputs
  readonly faults: Fault[]
  readonly limitsFile?: string
  /** The presets for `routes.yaml` and `limits.yaml`, instead of those in `gateway.yaml`. */
  readonly running?: PresetChoice
}

/** @throws ConfigError when one of the three files, or a preset, cannot be read */
export function* layerSteps(
  folder: string,
  { environment, inputs, faults, limitsFile = 'limits.yaml', running }: LayersOptions
): Steps<Readonly<Record<ConfigFile, Layers>>> {
  const read = (name: string) => documentSteps(resolve(folder, name), name, { inputs, faults })
  const gateway = yield* read('gateway.yaml')
  const routes = yield* read('routes.yaml')
  const limits = yield* read(limitsFile)
  if (gateway === undefined || routes === undefined || limits === undefined) {
    throw new ConfigError(faults)
  }
  const { fault } = mergeLayers({}, { file: ownLayer(gateway), presets: [] })
  const report = (key: string, message: string) => {
    faults.push(fault([key], message))
  }
  const presetsOf = (choice: PresetChoice) => readPresets(choice, { inputs, faults, report })
  const presets = yield* presetsOf(choiceOf(gateway, { environment, folder, read: inputs.read }))
  const others = running === undefined ? presets : yield* presetsOf(running)
  if (faults.length > 0) throw new ConfigError(faults)
  return {
    gateway: { file: ownLayer(gateway), presets: layersOf(presets, 'gateway') },
    routes: { file: ownLayer(routes), presets: layersOf(others, 'routes') },
    limits: { file: ownLayer(limits), presets: layersOf(others, 'limits') }
  }
}

function layersOf(presets: readonly ConfigDocument[], file: ConfigFile): Layer[] {
  return presets.map(document => ({ document, prefix: [file] }))
}

type ReferenceContext = Omit<Parameters<typeof resolveReferences>[2], 'report'>

/** Which presets a file names; faults of the two keys are reported when the file is checked. */
function choiceOf({ value }: ConfigDocument, context: ReferenceContext): PresetChoice {
  const choice = { extends: value['extends'], backend: value['backend'] }
  resolveReferences(asNode(presetChoiceSchema), choice, { ...context, report: () => {} })
  return choice as PresetChoice
}
