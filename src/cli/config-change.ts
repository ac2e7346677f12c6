/** The faults that a config would have if some of its files had other texts. */
import type { Folders } from '../config/read/files.ts'
import { createInputs } from '../config/read/inputs.ts'
import { loadConfig } from '../config/read/load.ts'
import type { Environment } from '../config/read/references.ts'
import { ConfigError, type Fault } from '../config/schema/faults.ts'

/** Texts by absolute path. */
export type Texts = ReadonlyMap<string, string>

export function faultsWith(folders: Folders, texts: Texts, env: Environment): Fault[] {
  try {
    loadConfig(folders, env, { inputs: createInputs(texts) })
    return []
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.faults.filter(({ severity }) => severity === 'fault')
  }
}
