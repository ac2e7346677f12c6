/** Asks the ops listener of a running gateway, for commands that need one. */
import { opsListen } from '../config/load.ts'
import { CommandError } from './command.ts'
import { paint } from './paint.ts'

/**
 * @param folder the config folder of the gateway, which names its ops listener; the rest of it may be faulty
 * @param body sent as JSON by POST; GET without it
 * @returns the answer's JSON
 * @throws CommandError with what to tell the operator
 */
export async function askOps (folder: string, path: string, body?: object): Promise<Record<string, unknown>> {
  const base = `http://${opsListen(folder, process.env).replace(/^0\.0\.0\.0:/, '127.0.0.1:').replace(/^\[::\]:/, '[::1]:')}`
  let answer: Response
  try {
    answer = await fetch(base + path, body === undefined ? {} : { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
  } catch (error) {
    throw new CommandError(`No gateway answers on ${new URL(base).host}: ${error instanceof Error && error.cause instanceof Error ? error.cause.message : String(error)}. Is it running with this config (--config DIR)?`)
  }
  const found = await answer.json().catch(() => ({})) as Record<string, unknown>
  if (!answer.ok) throw new CommandError(`The gateway answered ${answer.status}: ${String(found['error'])}`)
  return found
}

/** Columns for people; the first row is the head. */
export function table (rows: ReadonlyArray<readonly string[]>): string {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map(row => row[column]?.length ?? 0))) ?? []
  const lines = rows.map(row => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ').trimEnd())
  return lines.map((line, index) => `${index === 0 ? paint('bold', line) : line}\n`).join('')
}
