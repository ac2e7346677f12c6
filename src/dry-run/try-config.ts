/** Runs the tests of a config before it is used: its examples of shapes and its expectations. */
import type { Fault } from '../config/schema/faults.ts'
import type { LoadedConfig } from '../config/schema/config.ts'

/** One fault for each that fails. Nothing is loaded for a config without any. */
export async function tryConfig(config: LoadedConfig): Promise<Fault[]> {
  const { examples, expect } = config.routes
  return [
    ...(Object.keys(examples).length > 0
      ? await (await import('./examples.ts')).exampleFaults(config)
      : []),
    ...(Object.keys(expect).length > 0
      ? await (await import('./expectations.ts')).expectationFaults(config)
      : [])
  ]
}
