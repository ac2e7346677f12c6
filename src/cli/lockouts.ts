/** `lockouts`: lists and lifts locks of sign-in. */
import type { LockoutJson, LockoutsAnswer, LockoutsOf } from '../ops/lockouts.ts'
import { askAndPrint } from './ask.ts'
import type { Invocation, Output } from './command.ts'
import { table } from './output.ts'

export async function listLockouts(invocation: Invocation<LockoutsOf>): Promise<number> {
  const query = new URLSearchParams({ ...invocation.values }).toString()
  await askAndPrint(invocation, [`/ops/api/lockouts?${query}`], lockoutsText)
  return 0
}

export async function liftLockouts(invocation: Invocation<LockoutsOf>): Promise<number> {
  await askAndPrint(
    invocation,
    ['/ops/api/lockouts/lift', invocation.values],
    ({ lifted }: { readonly lifted: number }) => `lifted: ${lifted}\n`
  )
  return 0
}

function lockoutsText({ lockouts, total }: LockoutsAnswer, stream: Output): string {
  if (total === 0) return 'nobody is locked out\n'
  const rows = lockouts.map(lock => [lock.kind, ofWhom(lock), lock.until])
  const more = total > lockouts.length ? `and ${total - lockouts.length} more\n` : ''
  return table(['WHAT', 'OF', 'UNTIL'], rows, stream) + more
}

function ofWhom({ account, address }: LockoutJson): string {
  return [account, address].filter(each => each !== undefined).join(' from ')
}
