/** `check`: reports all faults of a config folder, without starting. */
import { ConfigError, describeFault, type Fault } from '../config/schema/faults.ts'
import { loadConfig } from '../config/load/load.ts'
import { assertUsable } from '../dry-run/try-config.ts'
import { type Reached, reachAll } from '../services/reach.ts'
import type { Command } from './command.ts'
import { printableLines } from '../observability/unprintable.ts'
import { paint } from './colours.ts'
import { jsonText, printText } from './output.ts'

export const check: Command = {
  summary: 'report all faults of the config, without starting',
  ways: [{ takes: ['strict', 'live', 'json'] }],
  details: `
Reports all faults and warnings at once, each with file, line and what was expected.
Examples of shapes and expectations (examples, expect) are run as well.

Examples:
  console-gateway check -c /etc/console-gateway
  console-gateway check --strict --json
  console-gateway check --live

With --live it also connects to upstreams and Redis, and says which cannot be reached.

Exit codes: 0 no faults, 1 faults or something that cannot be reached, 3 warnings with --strict.`,
  options: {
    strict: { type: 'boolean', description: 'warnings end with exit code 3' },
    live: { type: 'boolean', description: 'connect to upstreams and Redis too' }
  },
  run: async ({ config: folder, values: { strict, live }, json }) => {
    const printJson = (
      faults: readonly Fault[],
      warnings: readonly Fault[],
      reached?: Reached[]
    ) => {
      const report = {
        folder,
        faults: faults.map(toJson),
        warnings: warnings.map(toJson),
        ...(reached && { live: reached })
      }
      process.stdout.write(jsonText(report))
    }
    try {
      const config = loadConfig(folder, process.env)
      const { warnings } = config
      await assertUsable(config)
      const reached = live === true ? await reachAll(config) : undefined
      const isDown = reached?.some(({ fault }) => fault !== undefined) === true
      const isStrict = strict === true && warnings.length > 0
      const warned = isStrict ? 3 : 0
      const code = isDown ? 1 : warned
      if (json) {
        printJson([], warnings, reached)
        return code
      }
      for (const warning of warnings) process.stdout.write(`${coloured(warning, process.stdout)}\n`)
      process.stdout.write(
        `${folder}: no faults${warnings.length > 0 ? `, ${warnings.length} warning${warnings.length > 1 ? 's' : ''}` : ''}\n`
      )
      for (const each of reached ?? []) printText(formatReached(each))
      return code
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      if (json) {
        printJson(
          error.faults.filter(({ severity }) => severity === 'fault'),
          error.faults.filter(({ severity }) => severity === 'warning')
        )
        return 1
      }
      for (const fault of error.faults) process.stderr.write(`${coloured(fault, process.stderr)}\n`)
      const faults = error.faults.filter(({ severity }) => severity === 'fault').length
      process.stderr.write(`${folder}: ${faults} fault${faults > 1 ? 's' : ''}\n`)
      return 1
    }
  }
}

function formatReached({ what, address, fault }: Reached): string {
  const state = fault === undefined ? 'ok' : `cannot be reached (${fault})`
  return `${what}: ${address}: ${state}`
}

function toJson({ file, line, path, message }: Fault): object {
  return { file, line, path, message }
}

/** Red for faults; yellow for warnings, which do not prevent a start. */
function coloured(fault: Fault, stream: NodeJS.WriteStream) {
  return paint(
    fault.severity === 'fault' ? 'red' : 'yellow',
    printableLines(describeFault(fault)),
    stream
  )
}
