/** Requests of commands to a running gateway. */
import { parseKeepingDigits } from '../json/digits.ts'
import { isRecord } from '../json/values.ts'
import { remoteConnection, send } from './admin-connection.ts'
import { CommandError, type GatewayAddress } from './command.ts'
import { printableLines } from '../observability/unprintable.ts'

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
    return isRecord(value) ? value : undefined
  } catch {
    return undefined
  }
}
