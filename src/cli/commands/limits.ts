import type { Use } from '../../limits/highest-use.ts'
import type { CallerLimit, LimitRow } from '../../ops/limits.ts'
import type { LockoutJson, LockoutsAnswer, LockoutsOf } from '../../ops/lockouts.ts'
import { type CliCommand, type Columns, tableOf } from '../command.ts'

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

const lockoutColumns: Columns<LockoutJson> = {
  WHAT: ({ kind }) => kind,
  OF: ({ account, address }) => [account ?? [], address ?? []].flat().join(' from '),
  UNTIL: ({ until }) => until
}

export function addLimits(program: CliCommand): void {
  const limits = program
    .subcommand('limits', 'show how limits are used; show or reset the counts of one caller')
    .details(`
A caller is an IP address, or a user by name or id. For locks of sign-in see lockouts.
Exit codes: 0 nobody is over a limit, 3 somebody is.`)
    .examples('console-gateway limits show anna', 'console-gateway limits reset 203.0.113.7')
  limits
    .subcommand('use', 'how all limits are used (the default)', { isDefault: true })
    .asks<{ readonly limits: readonly LimitRow[] }>(
      () => ['/limits'],
      ({ limits: rows }) => ({
        ...tableOf(rows, useColumns, 'no limit is configured'),
        code: rows.some(({ mode, over }) => mode === 'enforce' && over.length > 0) ? 3 : 0
      })
    )
  limits
    .subcommand('show <caller>', 'the counts of all limits for a caller')
    .asks<{ readonly limits: readonly CallerLimit[] }>(
      ({ rest: [caller = ''] }) => ['/limits/caller', { query: { caller } }],
      ({ limits: rows }, { rest: [caller] }) => {
        const none = `no limit has counts of ${caller} now; for locks of sign-in see lockouts list`
        const isOver = rows.some(({ exceeded, mode }) => exceeded && mode === 'enforce')
        return { ...tableOf(rows, countColumns, none), code: isOver ? 3 : 0 }
      }
    )
  limits
    .subcommand('reset <caller>', 'set them to zero, in all replicas within a second')
    .asks<{ readonly reset: number }>(
      ({ rest: [caller] }) => ['/limits/caller/reset', { body: { caller } }],
      ({ reset }) => ({ text: `reset: ${reset}` })
    )
}

export function addLockouts(program: CliCommand): void {
  const lockouts = program
    .subcommand('lockouts', 'list and lift locks of sign-in after too many failures')
    .details('An address that tried many accounts is locked by itself: name both if both are.')
    .examples('console-gateway lockouts lift --account alice --address 203.0.113.7')
  const subcommand = (name: string, description: string) =>
    lockouts
      .subcommand(name, description)
      .option('--account <name>', 'the user name, in any spelling')
      .option('--address <ip>', 'an address; of an IPv6 address its whole network')
  subcommand('list', 'the locks').asks<LockoutsAnswer, LockoutsOf>(
    ({ values }) => ['/lockouts', { query: values }],
    ({ lockouts: rows, total }) => ({
      ...tableOf(rows, lockoutColumns, 'nobody is locked out'),
      ...(total > rows.length && { text: `and ${total - rows.length} more` })
    })
  )
  subcommand('lift', 'end a lock now, in all replicas, and forget the failures').asks<
    { readonly lifted: number },
    LockoutsOf
  >(
    ({ values }) => ['/lockouts/lift', { body: values }],
    ({ lifted }) => ({ text: `lifted: ${lifted}` })
  )
}
