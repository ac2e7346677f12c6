/** What a config folder and its presets say together, before references and defaults. */
import { basename, dirname } from 'node:path'
import type { ConfigFile } from '../schema/config.ts'
import type { Fault } from '../schema/faults.ts'
import type { Path } from '../schema/visit.ts'
import { createInputs } from './inputs.ts'
import { mergeLayers, type Place } from './layers.ts'
import { layerSteps } from './presets.ts'
import { runSteps } from '../schema/steps.ts'
import type { Environment } from './references.ts'
import { hideSecrets, schemaOf } from './written.ts'

interface MergedConfig {
  /** Secrets are the references that stand in the files. */
  readonly value: Record<string, unknown>
  /** Such as `routes.yaml:12` and `console/vben.yaml:7`. */
  readonly originOf: (path: Path) => string | undefined
}

/** @throws ConfigError when a file or a preset cannot be read */
export function mergedConfig(
  folder: string,
  environment: Environment
): Readonly<Record<ConfigFile, MergedConfig>> {
  const faults: Fault[] = []
  const layers = runSteps(layerSteps(folder, { environment, inputs: createInputs(), faults }))
  const merge = (file: ConfigFile): MergedConfig => {
    const { value, placeOf } = mergeLayers(schemaOf[file], layers[file])
    hideSecrets(schemaOf[file], value)
    return { value, originOf: path => originAt(placeOf(path)) }
  }
  return { gateway: merge('gateway'), routes: merge('routes'), limits: merge('limits') }
}

function originAt(place: Place | undefined): string | undefined {
  if (place === undefined) return undefined
  const { file, preset, line } = place
  const folder = preset === undefined ? '' : `${basename(dirname(file))}/`
  return `${folder}${basename(file)}:${line}`
}
