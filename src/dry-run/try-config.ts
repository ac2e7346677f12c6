/** What is tried of a config before it is taken: its examples of shapes, and what it expects of itself. */
import type { Fault } from '../config/schema/faults.ts'
import type { LoadedConfig } from '../config/schema/config.ts'

/** One fault for each that does not hold. What a config does not have costs nothing. */
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
