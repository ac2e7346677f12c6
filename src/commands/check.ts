/** `check`: says everything that is wrong with a config folder, without starting. */
import { ConfigError, describeFault } from '../config/faults.ts'
import { loadConfig } from '../config/load.ts'
import { tryConfig } from '../trial.ts'
import type { Command } from './command.ts'

export const check: Command = {
  summary: 'say everything that is wrong with the config, without starting',
  run: async ({ config: folder }) => {
    try {
      const config = loadConfig(folder, process.env)
      const { warnings } = config
      const faults = await tryConfig(config)
      if (faults.length > 0) throw new ConfigError([...warnings, ...faults])
      for (const warning of warnings) process.stdout.write(`${describeFault(warning)}\n`)
      process.stdout.write(`${folder}: no faults${warnings.length > 0 ? `, ${warnings.length} warning${warnings.length > 1 ? 's' : ''}` : ''}\n`)
      return 0
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      for (const fault of error.faults) process.stderr.write(`${describeFault(fault)}\n`)
      const faults = error.faults.filter(({ severity }) => severity === 'fault').length
      process.stderr.write(`${folder}: ${faults} fault${faults > 1 ? 's' : ''}\n`)
      return 1
    }
  }
}
