/** `lockouts`: lists and lifts locks of sign-in, through the listener of a running gateway. */
import { jsonText } from './output.ts'
import type { LockoutJson } from '../ops/schemas.ts'
import type { Invocation, Output } from './command.ts'
import { askAdmin } from './admin-client.ts'
import { table } from './table.ts'

type Lockouts = Invocation<{ readonly account?: string; readonly address?: string }>

export async function listLockouts({ gateway, values, json, io }: Lockouts): Promise<number> {
  const query = new URLSearchParams({ ...values }).toString()
  const response = await askAdmin(gateway, `/ops/api/lockouts?${query}`)
  const locks = response['lockouts'] as LockoutJson[]
  const text = formatLockouts(locks, Number(response['total']), io.stdout)
  io.stdout.write(json ? jsonText(response) : text)
  return 0
}

export async function liftLockouts({ gateway, values, json, io }: Lockouts): Promise<number> {
  const response = await askAdmin(gateway, '/ops/api/lockouts/lift', values)
  io.stdout.write(json ? jsonText(response) : `lifted: ${String(response['lifted'])}\n`)
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
