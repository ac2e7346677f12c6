/** Loads the own code of a config and runs its expectations, before it is used. */
import { ConfigError, type Fault } from '../config/schema/faults.ts'
import { createYield } from '../app/yield.ts'
import { modulesIn } from '../config/load/named-files.ts'
import type { LoadedConfig } from '../config/schema/config.ts'
import { loadModules, ModulesError } from '../shaping/module.ts'

/** @throws ConfigError for a config that a start and a reload refuse */
export async function assertUsable(config: LoadedConfig): Promise<void> {
  const faults = await tryConfig(config)
  if (faults.length > 0) throw new ConfigError([...config.warnings, ...faults])
}

/** One fault for each module or expectation that fails. Little is loaded for a config without any. */
export async function tryConfig(
  config: LoadedConfig,
  yieldToRequests = createYield()
): Promise<Fault[]> {
  const faults = await moduleFaults(config)
  if (faults.length > 0) return faults
  if (Object.keys(config.routes.expect).length === 0) return []
  const { expectationFaults } = await import('./expectations.ts')
  return await expectationFaults(config, yieldToRequests)
}

async function moduleFaults(config: LoadedConfig): Promise<Fault[]> {
  try {
    await loadModules(config)
    return []
  } catch (error) {
    if (!(error instanceof ModulesError)) throw error
    return modulesIn(config.routes).flatMap(({ path, file }) => {
      const reason = error.reasons.get(file)
      return reason === undefined ? [] : [config.fault('routes', path, reason)]
    })
  }
}
