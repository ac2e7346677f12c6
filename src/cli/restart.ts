/** `restart`: replaces a running gateway by a new process, without a gap. */
import { printable, printableLines } from '../observability/unprintable.ts'
import type { RestartOutcome } from '../process/restart/restart.ts'
import { askAdmin } from './admin-client.ts'
import type { Command } from './command.ts'
import { jsonText } from './output.ts'

export const restart: Command = {
  summary: 'replace a running gateway by a new process, without a gap',
  ways: [{ takes: ['json'] }],
  details: `
Starts the program again, as it was started, with the listeners of the process that
runs: no connection is refused, and no request fails. It reads gateway.yaml anew, and
where the program was updated, it is the new version. Once it is ready it takes all
requests, and the former process finishes its own. If it does not become ready, the
former one goes on, and the reason is printed. SIGUSR2 does the same.

Examples:
  console-gateway check && console-gateway restart
Exit codes: 1 if the new process did not become ready, a restart is refused, or no
gateway answers.`,
  asksGateway: true,
  run: async ({ gateway, json }) => {
    const response = await askAdmin(gateway, '/ops/api/restart', {})
    const outcome = response as unknown as RestartOutcome
    if (json) process.stdout.write(jsonText(response))
    else print(outcome)
    return outcome.outcome === 'restarted' ? 0 : 1
  }
}

function print(outcome: RestartOutcome): void {
  if (outcome.outcome === 'restarted') {
    process.stdout.write(`restarted; process ${outcome.pid} takes the requests\n`)
    return
  }
  const { outcome: name, reason } = outcome
  process.stderr.write(`${printableLines(reason)}\n${printable(name)}; the gateway runs on\n`)
}
