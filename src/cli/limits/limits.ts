/** `limits`: numbers for limits, from past use and logs. */
import type { Command } from '../command.ts'
import { resetCaller, showCaller } from './caller.ts'
import { simulate, simulateOptions } from './simulate.ts'
import { suggest } from './suggest.ts'

export const limits: Command = {
  summary: 'suggest and simulate numbers of limits, show or reset the counts of one caller',
  ways: [
    { words: 'suggest', takes: ['since', 'json'] },
    { words: 'simulate', needs: ['log'], takes: ['limits', 'svg', 'json'], isLocal: true },
    { words: 'show CALLER', takes: ['json'] },
    { words: 'reset CALLER', takes: ['json'] }
  ],
  details: `
suggest asks a running gateway how much of each limit its callers used in any hour:
the median, the 99th percentile and the maximum, the callers that were over, and the
lowest number that would have refused nobody. Limits in shadow count too.

simulate replays an access log through the engine of the gateway and lists the
callers that would have been refused, when, and by which limit. FILE holds the
gateway's own JSON lines, or Combined Log Format (nginx), plain, gzip or zstd; - is
standard input. Limits come from --limits, else from limits.yaml in the config
folder; routes, users and roles from the config folder. MIN TO REFUSE NONE is the
lowest number (max, or burst) with which that limit alone would have refused nobody.

show lists the counts of all limits for CALLER: an IP address, or a user by id (or by
name, if a users file has it). reset sets them to zero, in all replicas within two
seconds. Locks of sign-in after too many failures are not limits: see lockouts.

Examples:
  console-gateway limits show 203.0.113.7
  console-gateway limits reset u-1001
  console-gateway limits suggest --since 7d
  console-gateway limits simulate --log access.log.gz --limits new-limits.yaml
  kubectl logs deploy/gateway --since 24h | console-gateway limits simulate --log - --svg limits.svg
Exit codes: 0 nobody is over a limit, 3 somebody is; 1 if no gateway answers.`,
  options: {
    since: {
      type: 'string',
      value: 'TIME',
      description: 'the time to look back (default: 24h)'
    },
    log: {
      type: 'string',
      value: 'FILE',
      description: 'the access log; - is standard input'
    },
    limits: {
      type: 'string',
      value: 'FILE',
      description: 'limits to try (default: limits.yaml of the config folder)'
    },
    svg: {
      type: 'string',
      value: 'FILE',
      description: 'draw requests and refusals over time'
    }
  },
  asksGateway: true,
  run: async ({ config, gateway, rest: [what, caller = ''], values, json }) => {
    if (what === 'simulate') return await simulate(simulateOptions(config, values, json))
    if (what === 'suggest') return await suggest(gateway, values['since'], json)
    if (what === 'show') return await showCaller(gateway, caller, json)
    return await resetCaller(gateway, caller, json)
  }
}
