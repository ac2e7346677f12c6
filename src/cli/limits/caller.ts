/** `limits show` and `limits reset`: the counts of one caller, through the operators' listener. */
import { jsonText } from '../output.ts'
import type { CallerLimit } from '../../admin/caller-limits.ts'
import type { GatewayAddress, Invocation, Output } from '../command.ts'
import { askAdmin, table } from '../admin-client.ts'

export async function showCaller(
  gateway: GatewayAddress,
  caller: string,
  { json, io }: Pick<Invocation, 'json' | 'io'>
): Promise<number> {
  const query = new URLSearchParams({ caller }).toString()
  const response = await askAdmin(gateway, `/ops/api/limits/caller?${query}`)
  const limits = response['limits'] as CallerLimit[]
  io.stdout.write(json ? jsonText(response) : inWords(caller, limits, io.stdout))
  return limits.some(({ exceeded, mode }) => exceeded && mode === 'enforce') ? 3 : 0
}

export async function resetCaller(
  gateway: GatewayAddress,
  caller: string,
  { json, io }: Pick<Invocation, 'json' | 'io'>
): Promise<number> {
  const response = await askAdmin(gateway, '/ops/api/limits/caller/reset', { caller })
  const words = `reset: ${String(response['reset'])}\n`
  io.stdout.write(json ? jsonText(response) : words)
  return 0
}

function inWords(caller: string, limits: readonly CallerLimit[], stream: Output): string {
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
  return table([['LIMIT', 'OF', 'MODE', 'USED', 'MAX', 'REFUSED FOR', 'FREE IN'], ...rows], stream)
}
