/** `reload`: replaces the running config, through the operators' listener. */
import { jsonText, printText } from './output.ts'
import { printableLines } from '../observability/unprintable.ts'
import type { ReloadAnswer } from '../ops/state-schemas.ts'
import type { Invocation } from './command.ts'
import { askAdmin } from './admin-client.ts'

export async function reload({
  gateway,
  json,
  values: { yes = false },
  io
}: Invocation<{ readonly yes?: boolean }>): Promise<number> {
  const answer = (await askAdmin(gateway, '/ops/api/reload', { yes })) as unknown as ReloadAnswer
  const { outcome, generation, faults = [] } = answer
  const isRefused = outcome === 'refused'
  const kept = `refused; generation ${generation} keeps running`
  if (json) io.stdout.write(jsonText(answer))
  else if (isRefused) io.stderr.write(`${printableLines([...faults, kept].join('\n'))}\n`)
  else printText(outcomeLines(answer).join('\n'), io)
  return isRefused ? 1 : 0
}

function outcomeLines(answer: ReloadAnswer): string[] {
  const { outcome, generation, changes = [], sessions = [], restartNeeded = [], taken } = answer
  const lines = [...changes, ...sessions, `${outcome}; generation ${generation} runs`]
  // Set when a gateway that watches its files has reloaded them before the command.
  if (taken !== undefined) {
    lines.push(`applied already at ${taken.at} (${taken.by}): ${taken.changes.join('; ')}`)
  }
  if (restartNeeded.length > 0) lines.push(`restart needed: ${restartNeeded.join(', ')}`)
  return lines
}
