import type { Use } from '../limits/highest-use.ts'
import type { CallerLimit, LimitRow } from '../ops/limits.ts'
import type { LockoutJson, LockoutsAnswer, LockoutsOf } from '../ops/lockouts.ts'
import { askAndPrint } from './ask.ts'
import type { Invocation, Output } from './command.ts'
import { table } from './output.ts'

interface Rows<Row> {
  readonly limits: readonly Row[]
}

export async function showUse(invocation: Invocation): Promise<number> {
  const { limits } = await askAndPrint(invocation, ['/ops/api/limits'], useText)
  return limits.some(({ mode, over }) => mode === 'enforce' && over.length > 0) ? 3 : 0
}

function useText({ limits }: Rows<LimitRow>, stream: Output): string {
  if (limits.length === 0) return 'no limit is configured\n'
  const nameOf = (use: Use | undefined) => (use === undefined ? '-' : `${use.used} ${use.caller}`)
  const rows = limits.map(({ limit, mode, max, hour, day, over, nearest }) => [
    limit,
    mode,
    String(max),
    nameOf(hour),
    nameOf(day),
    over.length === 0 ? '-' : over.slice(0, 3).join(', '),
    nameOf(nearest.find(({ caller }) => !over.includes(caller)))
  ])
  const head = ['LIMIT', 'MODE', 'MAX', 'THIS HOUR', '24 HOURS', 'OVER', 'NEAREST']
  return table(head, rows, stream)
}

export async function showCaller(invocation: Invocation): Promise<number> {
  const [caller = ''] = invocation.rest
  const path = `/ops/api/limits/caller?${new URLSearchParams({ caller }).toString()}`
  const inWords = ({ limits }: Rows<CallerLimit>, stream: Output) =>
    countsText(caller, limits, stream)
  const { limits } = await askAndPrint(invocation, [path], inWords)
  return limits.some(({ exceeded, mode }) => exceeded && mode === 'enforce') ? 3 : 0
}

export async function resetCaller(invocation: Invocation): Promise<number> {
  const [caller = ''] = invocation.rest
  await askAndPrint(
    invocation,
    ['/ops/api/limits/caller/reset', { caller }],
    ({ reset }: { readonly reset: number }) => `reset: ${reset}\n`
  )
  return 0
}

function countsText(caller: string, limits: readonly CallerLimit[], stream: Output): string {
  if (limits.length === 0) {
    return `no limit has counts of ${caller} now; for locks of sign-in see lockouts list\n`
  }
  const seconds = (ms: number) => (ms === 0 ? '-' : `${Math.ceil(ms / 1000)} s`)
  const rows = limits.map(({ limit, of, mode, used, max, retryMs, resetMs }) => [
    limit,
    of === '' ? '-' : of,
    mode,
    String(used),
    String(max),
    seconds(retryMs),
    seconds(resetMs)
  ])
  return table(['LIMIT', 'OF', 'MODE', 'USED', 'MAX', 'REFUSED FOR', 'FREE IN'], rows, stream)
}

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
