/** `limits`: how limits are used, and the counts of one caller, through the operators' listener. */
import type { CallerLimit, LimitRow } from '../ops/schemas.ts'
import type { Use } from '../limits/highest-use.ts'
import type { Invocation, Output } from './command.ts'
import { askAdmin } from './admin-client.ts'
import { table } from './table.ts'
import { jsonText } from './output.ts'

export async function showUse({ gateway, json, io }: Invocation): Promise<number> {
  const response = await askAdmin(gateway, '/ops/api/limits')
  const rows = response['limits'] as LimitRow[]
  io.stdout.write(json ? jsonText(response) : useText(rows, io.stdout))
  return rows.some(({ mode, over }) => mode === 'enforce' && over.length > 0) ? 3 : 0
}

function useText(rows: readonly LimitRow[], stream: Output): string {
  if (rows.length === 0) return 'no limit is configured\n'
  const nameOf = (use: Use | undefined) => (use === undefined ? '-' : `${use.used} ${use.caller}`)
  return table(
    [
      ['LIMIT', 'MODE', 'MAX', 'THIS HOUR', '24 HOURS', 'OVER', 'NEAREST'],
      ...rows.map(({ limit, mode, max, hour, day, over, nearest }) => [
        limit,
        mode,
        String(max),
        nameOf(hour),
        nameOf(day),
        over.length === 0 ? '-' : over.slice(0, 3).join(', '),
        nameOf(nearest.find(({ caller }) => !over.includes(caller)))
      ])
    ],
    stream
  )
}

export async function showCaller({ gateway, rest, json, io }: Invocation): Promise<number> {
  const [caller = ''] = rest
  const query = new URLSearchParams({ caller }).toString()
  const response = await askAdmin(gateway, `/ops/api/limits/caller?${query}`)
  const shown = response['limits'] as CallerLimit[]
  io.stdout.write(json ? jsonText(response) : countsText(caller, shown, io.stdout))
  return shown.some(({ exceeded, mode }) => exceeded && mode === 'enforce') ? 3 : 0
}

export async function resetCaller({ gateway, rest, json, io }: Invocation): Promise<number> {
  const [caller = ''] = rest
  const response = await askAdmin(gateway, '/ops/api/limits/caller/reset', { caller })
  io.stdout.write(json ? jsonText(response) : `reset: ${String(response['reset'])}\n`)
  return 0
}

function countsText(caller: string, shown: readonly CallerLimit[], stream: Output): string {
  if (shown.length === 0) {
    return `no limit has counts of ${caller} now; for locks of sign-in see lockouts list\n`
  }
  const seconds = (ms: number) => (ms === 0 ? '-' : `${Math.ceil(ms / 1000)} s`)
  const rows = shown.map(({ limit, of, mode, used, max, retryMs, resetMs }) => [
    limit,
    of === '' ? '-' : of,
    mode,
    String(used),
    String(max),
    seconds(retryMs),
    seconds(resetMs)
  ])
  return table([['LIMIT', 'OF', 'MODE', 'USED', 'MAX', 'REFUSED FOR', 'FREE IN'], ...rows], stream)
}
