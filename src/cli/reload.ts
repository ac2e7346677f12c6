/** `reload`: replaces the running config, through the operators' listener. */
import { jsonText, printText } from './output.ts'
import type { Taken } from '../observability/gateway-state.ts'
import { printableLines } from '../observability/unprintable.ts'
import type { Invocation } from './command.ts'
import { askAdmin } from './admin-client.ts'

export async function reload({ gateway, json, values, io }: Invocation): Promise<number> {
  const { yes: isMeant = false } = values
  const response = await askAdmin(gateway, '/ops/api/reload', { yes: isMeant })
  const isRefused = response['outcome'] === 'refused'
  if (json) io.stdout.write(jsonText(response))
  else if (isRefused) io.stderr.write(`${printableLines(refusalOf(response))}\n`)
  else printText(outcomeLines(response).join('\n'), io)
  return isRefused ? 1 : 0
}

function linesOf(response: Record<string, unknown>, name: string): readonly string[] {
  return (response[name] as readonly string[] | undefined) ?? []
}

function refusalOf(response: Record<string, unknown>): string {
  const kept = `refused; generation ${String(response['generation'])} keeps running`
  return [...linesOf(response, 'faults'), kept].join('\n')
}

function outcomeLines(response: Record<string, unknown>): string[] {
  const { outcome, generation } = response
  // Set when a gateway that watches its files has reloaded them before the command.
  const taken = response['taken'] as Taken | undefined
  const restartNeeded = linesOf(response, 'restartNeeded')
  const lines = [
    ...linesOf(response, 'changes'),
    ...linesOf(response, 'sessions'),
    `${String(outcome)}; generation ${String(generation)} runs`
  ]
  if (taken !== undefined) {
    lines.push(`applied already at ${taken.at} (${taken.by}): ${taken.changes.join('; ')}`)
  }
  if (restartNeeded.length > 0) lines.push(`restart needed: ${restartNeeded.join(', ')}`)
  return lines
}
