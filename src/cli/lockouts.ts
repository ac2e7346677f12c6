/** `lockouts`: lists and lifts locks of sign-in, through the listener of a running gateway. */
import { jsonText } from './output.ts'
import type { LockoutJson } from '../admin/lockouts.ts'
import type { GatewayAddress, Invocation, Output } from './command.ts'
import { askAdmin, table } from './admin-client.ts'

export async function lockouts({
  gateway,
  rest: [what],
  values: { account, address },
  json,
  io
}: Invocation): Promise<number> {
  const subject = {
    ...(account !== undefined && { account: String(account) }),
    ...(address !== undefined && { address: String(address) })
  }
  const response =
    what === 'list'
      ? await askEither(gateway, `?${new URLSearchParams(subject).toString()}`)
      : await askEither(gateway, '/lift', subject)
  const formatted =
    what === 'list'
      ? formatLockouts(locksOf(response), Number(response['total']), io.stdout)
      : `lifted: ${String(response['lifted'])}\n`
  io.stdout.write(json ? jsonText(response) : formatted)
  return 0
}

/** A gateway of 0.2.0 has the former path only. */
async function askEither(gateway: GatewayAddress, end: string, body?: object) {
  return askAdmin(gateway, `/lockouts${end}`, body, `/bans${end}`)
}

/** A gateway of 0.2.0 has the former member only. */
function locksOf({ lockouts: locks, bans: former }: Record<string, unknown>) {
  return (locks ?? former) as LockoutJson[]
}

function formatLockouts(shown: readonly LockoutJson[], total: number, stream: Output): string {
  if (total === 0) return 'nobody is locked out\n'
  const more = total > shown.length ? `and ${total - shown.length} more\n` : ''
  return (
    table(
      [['WHAT', 'OF', 'UNTIL'], ...shown.map(({ kind, of, until }) => [kind, of, until])],
      stream
    ) + more
  )
}
