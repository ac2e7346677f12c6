/** `restart`: replaces a running gateway by a new process, without a gap. */
import { printable, printableLines } from '../observability/unprintable.ts'
import type { RestartOutcome } from '../process/restart/restart.ts'
import { askAdmin } from './admin-client.ts'
import type { Invocation, Io } from './command.ts'
import { jsonText } from './output.ts'

export async function restart({ gateway, json, io }: Invocation): Promise<number> {
  const response = await askAdmin(gateway, '/ops/api/restart', {})
  const outcome = response as unknown as RestartOutcome
  if (json) io.stdout.write(jsonText(response))
  else print(outcome, io)
  return outcome.outcome === 'restarted' ? 0 : 1
}

function print(outcome: RestartOutcome, io: Io): void {
  if (outcome.outcome === 'restarted') {
    io.stdout.write(`restarted; process ${outcome.pid} takes the requests\n`)
    return
  }
  const { outcome: name, reason } = outcome
  io.stderr.write(`${printableLines(reason)}\n${printable(name)}; the gateway runs on\n`)
}
