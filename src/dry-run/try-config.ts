/** Runs the expectations of a config before it is used. */
import { ConfigError, type Fault } from '../config/schema/faults.ts'
import { createYield } from '../app/yield.ts'
import type { LoadedConfig } from '../config/schema/config.ts'

/** @throws ConfigError for a config that a start and a reload refuse */
export async function assertUsable(config: LoadedConfig): Promise<void> {
  const faults = await tryConfig(config)
  if (faults.length > 0) throw new ConfigError([...config.warnings, ...faults])
}

/** One fault for each that fails. Nothing is loaded for a config without any. */
export async function tryConfig(
  config: LoadedConfig,
  yieldToRequests = createYield()
): Promise<Fault[]> {
  if (Object.keys(config.routes.expect).length === 0) return []
  const { expectationFaults } = await import('./expectations.ts')
  return await expectationFaults(config, yieldToRequests)
}
