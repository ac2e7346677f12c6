/** The presets of this installation: one YAML file each, in the folder `presets`. */
import { fileURLToPath } from 'node:url'
import {
  type PresetChoice,
  presetKeys,
  type PresetKind,
  presetKinds,
  presetsOfKind
} from '../schema/presets.ts'
import type { Path } from '../schema/visit.ts'
import { type ConfigDocument, readDocument } from './document.ts'
import type { Layer } from './layers.ts'
import type { Inputs } from './inputs.ts'
import type { Fault } from '../schema/faults.ts'

export interface Preset {
  readonly kind: PresetKind
  readonly name: string
  /** Its first comment: what it is for, and from which sources it was read. */
  readonly summary: string
  readonly document: ConfigDocument
}

interface PresetContext {
  readonly inputs: Inputs
  readonly faults: Fault[]
  /** Reports a fault at a key of `gateway.yaml`. */
  readonly report: (path: Path, message: string) => void
}

/** The folder stands beside `src/` and beside `dist/`. */
const isBuilt = !import.meta.url.endsWith('.ts')
const presetsFolder = new URL(isBuilt ? '../presets/' : '../../../presets/', import.meta.url)

export function presetFile(kind: PresetKind, name: string): string {
  return fileURLToPath(new URL(`${kind}/${name}.yaml`, presetsFolder))
}

/** In the order of merging. An unknown name is left out: its schema reports it. */
export function readPresets(
  choice: PresetChoice,
  { inputs, faults, report }: PresetContext
): Preset[] {
  return presetKinds.flatMap(kind => {
    const key = presetKeys[kind]
    const name = choice[key]
    if (name === undefined || !presetsOfKind(kind).includes(name)) return []
    const document = readDocument(presetFile(kind, name), `${name}.yaml`, {
      inputs,
      faults,
      namedBy: message => report([key], `${message}: install the gateway again`)
    })
    return document === undefined ? [] : [{ kind, name, summary: document.comment, document }]
  })
}

/** The layers of one config file below that of the folder. */
export function presetLayers(
  presets: readonly Preset[],
  file: 'gateway' | 'routes' | 'limits'
): Layer[] {
  return presets.map(({ name, document }) => ({ document, prefix: [file], preset: name }))
}
