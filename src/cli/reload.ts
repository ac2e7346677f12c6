/** `reload`: makes a running gateway take its files over. */
import { printableLines } from '../observability/unprintable.ts'
import type { ReloadAnswer } from '../ops/state-schemas.ts'
import { ask } from './ask.ts'
import type { Invocation } from './command.ts'
import { jsonText } from './output.ts'

export async function reload({
  gateway,
  json,
  values: { yes = false },
  io
}: Invocation<{ readonly yes?: boolean }>): Promise<number> {
  const answer = await ask<ReloadAnswer>(gateway, '/ops/api/reload', { yes })
  const isRefused = answer.outcome === 'refused'
  if (json) io.stdout.write(jsonText(answer))
  else (isRefused ? io.stderr : io.stdout).write(printableLines(outcomeText(answer)))
  return isRefused ? 1 : 0
}

function outcomeText(answer: ReloadAnswer): string {
  const { outcome, generation, faults = [], taken } = answer
  const { changes = [], sessions = [], restartNeeded = [] } = answer
  const end = outcome === 'refused' ? 'keeps running' : 'runs'
  const lines = [...faults, ...changes, ...sessions, `${outcome}; generation ${generation} ${end}`]
  // Set when a gateway that watches its files has reloaded them before the command.
  if (taken !== undefined) {
    lines.push(`applied already at ${taken.at} (${taken.by}): ${taken.changes.join('; ')}`)
  }
  if (restartNeeded.length > 0) lines.push(`restart needed: ${restartNeeded.join(', ')}`)
  return `${lines.join('\n')}\n`
}
