/** Asks the ops listener of a running gateway, for commands that need one. */
import { readSecretFiles } from '../admin/secret-file.ts'
import { opsAccess } from '../config/load/admin-access.ts'
import { parseKeepingDigits } from '../json/digits.ts'
import { CommandError } from './command.ts'
import { printable } from '../observability/unprintable.ts'
import { paint } from './colours.ts'

/**
 * @param folder the config folder of the gateway, which names its ops listener and maybe its
 *   secret; the rest of it may be faulty
 * @param body sent as JSON by POST; GET without it
 * @param formerPath asked after a 404, which a gateway of the version before answers to a new path
 * @returns the answer's JSON
 * @throws CommandError with what to tell the operator
 */
export async function askAdmin(
  folder: string,
  path: string,
  body?: object,
  formerPath?: string
): Promise<Record<string, unknown>> {
  const { listen, secret } = opsAccess(folder, process.env)
  const local = listen.replace(/^0\.0\.0\.0:/, '127.0.0.1:').replace(/^\[::\]:/, '[::1]:')
  const base = `http://${local}`
  const secrets = secret === undefined ? readSecretFiles(listen) : [secret]
  let answer = await ask(base, path, secrets[0], body)
  // A gateway that was killed leaves its file: root may see those of several users.
  for (const other of secrets.slice(1)) {
    if (answer.status === 401) answer = await ask(base, path, other, body)
  }
  const members = recordOf(await answer.text())
  if (answer.status === 404 && formerPath !== undefined) return askAdmin(folder, formerPath, body)
  const isConfigured = secret !== undefined
  if (answer.status === 401) throw new CommandError(refusal(isConfigured, secrets.length > 0))
  if (!answer.ok) {
    throw new CommandError(`The gateway answered ${answer.status}: ${String(members['error'])}`)
  }
  return members
}

async function ask(base: string, path: string, secret?: string, body?: object): Promise<Response> {
  const headers = {
    ...(secret !== undefined && { authorization: `Bearer ${secret}` }),
    ...(body !== undefined && { 'content-type': 'application/json' })
  }
  try {
    if (body === undefined) return await fetch(base + path, { headers })
    return await fetch(base + path, { method: 'POST', headers, body: JSON.stringify(body) })
  } catch (error) {
    const { cause } = error as Error
    const reason = cause instanceof Error ? cause.message : String(error)
    throw new CommandError(
      `No gateway answers on ${new URL(base).host}: ${reason}. ` +
        'Is it running with this config (--config DIR)?'
    )
  }
}

function refusal(isConfigured: boolean, isLeft: boolean): string {
  if (isConfigured) {
    return (
      'The gateway refused ops.secret: it runs with another one. ' +
      'Give this command the secret with which the gateway was started.'
    )
  }
  const reason = isLeft
    ? 'the secret that it left for commands on this machine is another gateway’s'
    : 'this user can read none that it left for commands on this machine'
  return (
    `The gateway wants its operators’ secret, and ${reason}. ` +
    'Run this command as the gateway’s user, in its container and with its TMPDIR and ' +
    'XDG_RUNTIME_DIR, or set ops.secret in gateway.yaml.'
  )
}

/** An answer that is no JSON has no members. */
function recordOf(body: string): Record<string, unknown> {
  try {
    return parseKeepingDigits(body) as Record<string, unknown>
  } catch {
    return {}
  }
}

/** Columns for people; the first row is the head. Cells may hold text of clients. */
export function table(given: ReadonlyArray<readonly string[]>): string {
  const rows = given.map(row => row.map(printable))
  const widths =
    rows[0]?.map((_, column) => Math.max(...rows.map(row => row[column]?.length ?? 0))) ?? []
  const lines = rows.map(row =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd()
  )
  return lines.map((line, index) => `${index === 0 ? paint('bold', line) : line}\n`).join('')
}
