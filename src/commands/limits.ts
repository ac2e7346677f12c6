/** `limits`: which numbers to set, tried on what has been. */
import { type Command, UsageError } from './command.ts'
import { simulate, simulateGiven } from './limits-simulate.ts'

export const limits: Command = {
  summary: 'replay an access log against limits that are not in force',
  usage: ['simulate --log FILE [--limits FILE] [--svg FILE] [--json]'],
  details: `
simulate replays an access log through the same engine as the running gateway:
who would have been refused, when, by which limit. FILE holds the gateway's own
JSON lines, or Combined Log Format (nginx), plain, gzip or zstd; - is standard
input. Limits come from --limits, else from limits.yaml in the config folder;
routes, users and roles from the config folder. LOWEST FOR NOBODY is the lowest
number (max, or burst) with which that limit alone would have refused nobody.

Examples:
  console-gateway limits simulate --log access.log.gz --limits new-limits.yaml
  kubectl logs deploy/gateway --since 24h | console-gateway limits simulate --log - --svg limits.svg
Exit codes: 0 nobody would be refused, 3 somebody would.`,
  options: {
    log: { type: 'string', value: 'FILE', description: 'the access log; - is standard input' },
    limits: { type: 'string', value: 'FILE', description: 'limits to try (default: limits.yaml of the config folder)' },
    svg: { type: 'string', value: 'FILE', description: 'draw requests and refusals over time' }
  },
  run: async ({ config, rest: [what, ...more], values, json }) => {
    if (what === 'simulate' && more.length === 0) return await simulate(simulateGiven(config, values, json))
    throw new UsageError(what === undefined ? 'Say what to do.' : `There is no "limits ${[what, ...more].join(' ')}".`)
  }
}
