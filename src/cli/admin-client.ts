/** Requests of commands to a running gateway. */
import { parseKeepingDigits } from '../json/digits.ts'
import { remoteConnection, send } from './admin-connection.ts'
import { CommandError, type GatewayAddress, type Output } from './command.ts'
import { printable, printableLines } from '../observability/unprintable.ts'
import { paint } from './colours.ts'

const refusedToken =
  'The gateway refused the token: it is not the operators’ secret (ops.secret) of the gateway at ' +
  'this address.'

/**
 * @param gateway of the invocation: the one of a socket on this machine, or the one at `--url`
 * @param body sent as JSON by POST; GET without it
 * @returns the response's JSON
 * @throws CommandError with a message for the operator
 */
export async function askAdmin(
  gateway: GatewayAddress,
  path: string,
  body?: object
): Promise<Record<string, unknown>> {
  const { url, socket } = gateway
  const connection =
    url === undefined
      ? { base: 'http://localhost', ...(socket !== undefined && { socketPath: socket }) }
      : remoteConnection(gateway, url)
  const { status, text } = await send(connection, path, body)
  if (status === 401) throw new CommandError(refusedToken)
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
