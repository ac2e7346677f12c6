/** Requests of commands to the operators' listener of a running gateway. */
import { readSecretFiles } from '../admin/secret-file.ts'
import { opsAccess } from '../config/load/admin-access.ts'
import { parseKeepingDigits } from '../json/digits.ts'
import { CommandError } from './command.ts'
import { printable } from '../observability/unprintable.ts'
import { paint } from './colours.ts'

/**
 * @param folder the gateway's config folder, with the address and the secret of its operators'
 *   listener; the rest of it may be faulty
 * @param body sent as JSON by POST; GET without it
 * @param formerPath tried after a 404: a gateway of the version before does not know a new path
 * @returns the response's JSON
 * @throws CommandError with a message for the operator
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
  let response = await ask(base, path, secrets[0], body)
  // Several files: a killed gateway leaves its file, and root can read those of all users.
  for (const other of secrets.slice(1)) {
    if (response.status === 401) response = await ask(base, path, other, body)
  }
  const members = recordOf(await response.text())
  if (response.status === 404 && formerPath !== undefined) return askAdmin(folder, formerPath, body)
  const isConfigured = secret !== undefined
  if (response.status === 401) throw new CommandError(refusal(isConfigured, secrets.length > 0))
  if (!response.ok) {
    throw new CommandError(`The gateway answered ${response.status}: ${String(members['error'])}`)
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
      'The gateway refused ops.secret: it was started with another one. ' +
      'Run this command with the same secret.'
    )
  }
  const reason = isLeft
    ? 'the secret file on this machine belongs to another gateway'
    : 'this user can read no secret file of it on this machine'
  return (
    `The gateway requires its operators’ secret, and ${reason}. ` +
    'Run this command as the gateway’s user, in its container and with its TMPDIR and ' +
    'XDG_RUNTIME_DIR, or set ops.secret in gateway.yaml.'
  )
}

/** The members of a JSON response; none for another response. */
function recordOf(body: string): Record<string, unknown> {
  try {
    return parseKeepingDigits(body) as Record<string, unknown>
  } catch {
    return {}
  }
}

/** Aligned columns; the first row is the head. Cells may hold text of clients, so it is escaped. */
export function table(cells: ReadonlyArray<readonly string[]>): string {
  const rows = cells.map(row => row.map(printable))
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
