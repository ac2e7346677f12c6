import { readdirSync } from 'node:fs'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import * as s from './primitives.ts'

/** In the order of merging. */
export const presetKeys = { console: 'extends', backend: 'backend' } as const

export type PresetKind = keyof typeof presetKeys

export const presetKinds = Object.keys(presetKeys) as PresetKind[]

/** The folder stands beside `src/` and beside `dist/`. */
const isBuilt = !import.meta.url.endsWith('.ts')
const presetsFolder = new URL(isBuilt ? '../presets/' : '../../../presets/', import.meta.url)

/** The members of a preset's file are parts of the config files. */
export function presetFile(kind: PresetKind, name: string): string {
  return fileURLToPath(new URL(`${kind}/${name}.yaml`, presetsFolder))
}

export function presetsOfKind(kind: PresetKind): string[] {
  const files = readdirSync(new URL(kind, presetsFolder))
  return files.map(file => basename(file, '.yaml')).toSorted()
}

export const presetChoice = {
  extends: s.may.oneOf(
    'A preset of a console, below the files. `console-gateway presets show NAME` prints it.',
    presetsOfKind('console')
  ),
  backend: s.may.oneOf(
    'The preset of the upstream `backend`, after `extends`.',
    presetsOfKind('backend')
  )
}
