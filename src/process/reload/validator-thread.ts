/** The thread in which a config is read and tried before it is taken. */
import { parentPort } from 'node:worker_threads'
import { ConfigError } from '../../config/schema/faults.ts'
import { createInputs } from '../../config/load/inputs.ts'
import { loadConfig } from '../../config/load/load.ts'
import type { Validated, ValidationTask } from './validator.ts'
import { tryConfig } from '../../dry-run/try-config.ts'

parentPort?.on('message', ({ folder, environment, running }: ValidationTask) => {
  const inputs = createInputs()
  const validate = async (): Promise<Validated['result']> => {
    const { fault, ...config } = loadConfig(folder, environment, {
      ...(running !== undefined && { running }),
      inputs
    })
    const faults = await tryConfig({ ...config, fault })
    return faults.length > 0 ? { faults } : { config }
  }
  void validate()
    .catch((error: unknown): Validated['result'] => {
      if (error instanceof ConfigError) return { faults: error.faults }
      throw error
    })
    .then(result =>
      parentPort?.postMessage({ files: Object.keys(inputs.digests()), result } satisfies Validated)
    )
})
