/** Reads and tries a config folder, as a reload does: requests are answered in between. */
import { setImmediate as requestsInBetween } from 'node:timers/promises'
import { configHash } from '../config/diff.ts'
import type { Folders } from '../config/read/files.ts'
import { createInputs } from '../config/read/inputs.ts'
import { loadSteps } from '../config/read/load.ts'
import type { Environment } from '../config/read/references.ts'
import type { Config } from '../config/schema/config.ts'
import { ConfigError, type Fault } from '../config/schema/faults.ts'
import { tryConfig } from '../dry-run/try-config.ts'

export type Validated = {
  /** Every file that was read, or is missing, with its fingerprint then. */
  readonly inputs: Readonly<Record<string, string>>
} & ({ readonly config: Config } | { readonly faults: readonly Fault[] })

/** @param running has the install config of the process; by default that of the files */
export async function validate(
  folders: Folders,
  environment: Environment,
  running?: Config
): Promise<Validated> {
  const inputs = createInputs()
  let faults: readonly Fault[]
  try {
    const steps = loadSteps(folders, environment, { inputs, running })
    let step = steps.next()
    for (; step.done !== true; step = steps.next()) await requestsInBetween()
    const { fault, named, ...config } = step.value
    configHash(config)
    await requestsInBetween()
    faults = await tryConfig({ ...config, fault, named })
    if (faults.length === 0) return { inputs: inputs.fingerprints(), config }
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    faults = error.faults
  }
  return {
    inputs: inputs.fingerprints(),
    faults: faults.filter(({ severity }) => severity === 'fault')
  }
}
