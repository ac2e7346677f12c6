/** `lockouts`: lists and lifts locks of sign-in, through the listener of a running gateway. */
import { jsonText } from './output.ts'
import type { LockoutJson } from '../ops/schemas.ts'
import type { Invocation, Output } from './command.ts'
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
      ? await askAdmin(gateway, `/ops/api/lockouts?${new URLSearchParams(subject).toString()}`)
      : await askAdmin(gateway, '/ops/api/lockouts/lift', subject)
  const formatted =
    what === 'list'
      ? formatLockouts(response['lockouts'] as LockoutJson[], Number(response['total']), io.stdout)
      : `lifted: ${String(response['lifted'])}\n`
  io.stdout.write(json ? jsonText(response) : formatted)
  return 0
}

function formatLockouts(shown: readonly LockoutJson[], total: number, stream: Output): string {
  if (total === 0) return 'nobody is locked out\n'
  const more = total > shown.length ? `and ${total - shown.length} more\n` : ''
  return (
    table(
      [['WHAT', 'OF', 'UNTIL'], ...shown.map(lock => [lock.kind, ofWhom(lock), lock.until])],
      stream
    ) + more
  )
}

function ofWhom({ account, address }: LockoutJson): string {
  return account !== undefined && address !== undefined
    ? `${account} from ${address}`
    : (account ?? address ?? '')
}
