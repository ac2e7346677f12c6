/** The faults that a config would have if some of its files had other texts. */
import { createInputs } from '../config/read/inputs.ts'
import { loadConfig } from '../config/read/load.ts'
import type { Environment } from '../config/read/references.ts'
import { ConfigError, type Fault } from '../config/schema/faults.ts'

/** @param texts by absolute path */
export function faultsWith(
  folder: string,
  texts: ReadonlyMap<string, string>,
  env: Environment
): Fault[] {
  try {
    loadConfig(folder, env, { inputs: createInputs(texts) })
    return []
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.faults.filter(({ severity }) => severity === 'fault')
  }
}
