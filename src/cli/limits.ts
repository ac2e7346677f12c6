import type { Use } from '../limits/highest-use.ts'
import type { CallerLimit, LimitRow } from '../ops/limits.ts'
import type { LockoutJson, LockoutsAnswer, LockoutsOf } from '../ops/lockouts.ts'
import { askAndPrint } from './ask.ts'
import type { Invocation, Output } from './command.ts'
import { type Columns, table } from './output.ts'

interface Rows<Row> {
  readonly limits: readonly Row[]
}

const useText = (use: Use | undefined) => (use === undefined ? '-' : `${use.used} ${use.caller}`)

const useColumns: Columns<LimitRow> = {
  'LIMIT': ({ limit }) => limit,
  'MODE': ({ mode }) => mode,
  'MAX': ({ max }) => String(max),
  'THIS HOUR': ({ hour }) => useText(hour),
  '24 HOURS': ({ day }) => useText(day),
  'OVER': ({ over }) => over.slice(0, 3).join(', ') || '-',
  'NEAREST': ({ nearest, over }) => useText(nearest.find(({ caller }) => !over.includes(caller)))
}

export async function showUse(invocation: Invocation): Promise<number> {
  const inWords = (answer: Rows<LimitRow>, stream: Output) =>
    table(answer.limits, useColumns, stream, 'no limit is configured')
  const { limits } = await askAndPrint(invocation, ['/ops/api/limits'], inWords)
  return limits.some(({ mode, over }) => mode === 'enforce' && over.length > 0) ? 3 : 0
}

const secondsText = (ms: number) => (ms === 0 ? '-' : `${Math.ceil(ms / 1000)} s`)

const countColumns: Columns<CallerLimit> = {
  'LIMIT': ({ limit }) => limit,
  'OF': ({ of }) => of || '-',
  'MODE': ({ mode }) => mode,
  'USED': ({ used }) => String(used),
  'MAX': ({ max }) => String(max),
  'REFUSED FOR': ({ retryMs }) => secondsText(retryMs),
  'FREE IN': ({ resetMs }) => secondsText(resetMs)
}

export async function showCaller(invocation: Invocation): Promise<number> {
  const [caller = ''] = invocation.rest
  const path = `/ops/api/limits/caller?${new URLSearchParams({ caller }).toString()}`
  const none = `no limit has counts of ${caller} now; for locks of sign-in see lockouts list`
  const inWords = (answer: Rows<CallerLimit>, stream: Output) =>
    table(answer.limits, countColumns, stream, none)
  const { limits } = await askAndPrint(invocation, [path], inWords)
  return limits.some(({ exceeded, mode }) => exceeded && mode === 'enforce') ? 3 : 0
}

export async function resetCaller(invocation: Invocation): Promise<void> {
  const [caller] = invocation.rest
  const inWords = ({ reset }: { readonly reset: number }) => `reset: ${reset}\n`
  await askAndPrint(invocation, ['/ops/api/limits/caller/reset', { caller }], inWords)
}

const lockoutColumns: Columns<LockoutJson> = {
  WHAT: ({ kind }) => kind,
  OF: ({ account, address }) => [account ?? [], address ?? []].flat().join(' from '),
  UNTIL: ({ until }) => until
}

export async function listLockouts(invocation: Invocation<LockoutsOf>): Promise<void> {
  const query = new URLSearchParams({ ...invocation.values }).toString()
  const inWords = ({ lockouts, total }: LockoutsAnswer, stream: Output) => {
    const more = total > lockouts.length ? `and ${total - lockouts.length} more\n` : ''
    return table(lockouts, lockoutColumns, stream, 'nobody is locked out') + more
  }
  await askAndPrint(invocation, [`/ops/api/lockouts?${query}`], inWords)
}

export async function liftLockouts(invocation: Invocation<LockoutsOf>): Promise<void> {
  const inWords = ({ lifted }: { readonly lifted: number }) => `lifted: ${lifted}\n`
  await askAndPrint(invocation, ['/ops/api/lockouts/lift', invocation.values], inWords)
}
