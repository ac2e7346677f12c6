/** Requests of commands to the operators' listener of a running gateway. */
import { readSecretFiles } from '../admin/secret-file.ts'
import { opsAccess } from '../config/load/admin-access.ts'
import { parseKeepingDigits } from '../json/digits.ts'
import { type AdminResponse, remoteConnection, send } from './admin-connection.ts'
import { CommandError, type GatewayAddress, type Output } from './command.ts'
import { printable, printableLines } from '../observability/unprintable.ts'
import { paint } from './colours.ts'

const refusedToken =
  'The gateway refused the token: it is not the operators’ secret (ops.secret) of the gateway at ' +
  'this address.'

/**
 * @param gateway of the invocation: the gateway of its config folder, whose `gateway.yaml` names
 *   the address and the secret of the operators' listener (the rest of it may be faulty), or the
 *   one at `--url`
 * @param body sent as JSON by POST; GET without it
 * @returns the response's JSON
 * @throws CommandError with a message for the operator
 */
export async function askAdmin(
  gateway: GatewayAddress,
  path: string,
  body?: object
): Promise<Record<string, unknown>> {
  const { response, refusal } = await ask(gateway, path, body)
  const { status, text } = response
  if (status === 401) throw new CommandError(refusal)
  const members = membersOf(text)
  if (status < 200 || status > 299) {
    const { error } = members ?? {}
    const reason =
      typeof error === 'string'
        ? error
        : 'without a reason. Is that the address of its operators’ listener (ops.listen)?'
    throw new CommandError(`The gateway answered ${status}: ${printableLines(reason)}`)
  }
  if (members === undefined) {
    throw new CommandError(`The response to ${path} is not of a gateway: it is no JSON object.`)
  }
  return members
}

interface Asked {
  readonly response: AdminResponse
  /** The meaning of a 401 here, and the way out. */
  readonly refusal: string
}

async function ask(gateway: GatewayAddress, path: string, body?: object): Promise<Asked> {
  const {
    folder,
    url,
    io: { env }
  } = gateway
  if (url !== undefined) {
    const response = await send(remoteConnection(gateway, url), path, body)
    return { response, refusal: refusedToken }
  }
  const { listen, secret, certificate } = opsAccess(folder, env)
  const local = listen.replace(/^0\.0\.0\.0:/, '127.0.0.1:').replace(/^\[::\]:/, '[::1]:')
  const place =
    certificate === undefined
      ? { base: `http://${local}` }
      : { base: `https://${local}`, pinned: certificate }
  const secrets = secret === undefined ? readSecretFiles(listen, env) : [secret]
  let response = await send({ ...place, token: secrets[0] }, path, body)
  // Several files: a killed gateway leaves its file, and root can read those of all users.
  for (const token of secrets.slice(1)) {
    if (response.status === 401) response = await send({ ...place, token }, path, body)
  }
  return { response, refusal: refusalOf(secret !== undefined, secrets.length > 0) }
}

function refusalOf(isConfigured: boolean, isLeft: boolean): string {
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

/** The members of a JSON response; undefined for another response. */
function membersOf(body: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = parseKeepingDigits(body)
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
    return isObject ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

/** Aligned columns; the first row is the head. Cells may hold text of clients, so it is escaped. */
export function table(cells: ReadonlyArray<readonly string[]>, stream: Output): string {
  const rows = cells.map(row => row.map(printable))
  const widths =
    rows[0]?.map((_, column) => Math.max(...rows.map(row => row[column]?.length ?? 0))) ?? []
  const lines = rows.map(row =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd()
  )
  return lines
    .map((line, index) => `${index === 0 ? paint('bold', line, stream) : line}\n`)
    .join('')
}
