/** The faults that a config would have if some of its files had other texts. */
import { resolve } from 'node:path'
import { createInputs } from '../config/load/inputs.ts'
import { loadConfig } from '../config/load/load.ts'
import type { Environment } from '../config/load/references.ts'
import type { LoadedConfig } from '../config/schema/config.ts'
import { ConfigError, type Fault } from '../config/schema/faults.ts'

/** Texts by absolute path. */
export type Texts = ReadonlyMap<string, string>

/** @throws ConfigError as `loadConfig` */
function loadWith(folder: string, texts: Texts, env: Environment): LoadedConfig {
  const inputs = createInputs()
  const read = (name: string) => texts.get(resolve(name)) ?? inputs.read(name)
  return loadConfig(folder, env, { inputs: { ...inputs, read } })
}

export function faultsWith(folder: string, texts: Texts, env: Environment): Fault[] {
  try {
    loadWith(folder, texts, env)
    return []
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.faults.filter(({ severity }) => severity === 'fault')
  }
}
