/** `limits suggest`: a number for each limit, from a running gateway's record of use. */
import { jsonText } from '../output.ts'
import { toMilliseconds } from '../../config/schema/primitives.ts'
import type { Suggestion, Suggestions } from '../../limits/usage/suggest.ts'
import { type GatewayAddress, type Invocation, type Output, UsageError } from '../command.ts'
import { askAdmin, table } from '../admin-client.ts'

/** @throws UsageError */
export async function suggest(
  gateway: GatewayAddress,
  since: unknown,
  { json, io }: Pick<Invocation, 'json' | 'io'>
): Promise<number> {
  const period = typeof since === 'string' ? since : '24h'
  const sinceMs = toMilliseconds(period)
  if (!(sinceMs >= 1)) throw new UsageError('--since is a duration such as 24h.')
  const response = (await askAdmin(
    gateway,
    `/ops/api/limits/suggest?sinceMs=${Math.ceil(sinceMs)}`
  )) as unknown as Suggestions
  io.stdout.write(json ? jsonText(response) : inWords(response, period, io.stdout))
  return response.limits.some(({ mode, over }) => mode !== 'off' && over.length > 0) ? 3 : 0
}

const maxRows = 20
const clock = (iso: string) => iso.slice(0, 16).replace('T', ' ')

function processesInWords(alone: boolean, processes: number): string[] {
  if (alone) return ['Redis did not answer: this is what one process saw. The others are missing.']
  if (processes <= 1) return []
  return [
    `${processes} processes counted separately: for callers seen by several, ` +
      'MIN TO REFUSE NONE is a range.'
  ]
}

function inWords(
  { from, to, coveredMs, askedMs, processes, counting, alone, limits }: Suggestions,
  period: string,
  stream: Output
): string {
  const short = coveredMs < askedMs * 0.98 ? `, not ${period}: there is no record of the rest` : ''
  const head = [
    `Taken from ${span(coveredMs)} of use, from ${clock(from)} to ${clock(to)} (UTC)${short}.`,
    ...processesInWords(alone, processes),
    ...(!alone && processes < counting
      ? [
          `${counting} processes count now, but only ${processes} have stored a record yet: ` +
            'each stores one a minute.'
        ]
      : [])
  ]
  const rows = limits.map(each => [
    each.limit,
    each.mode,
    `${each.key} ${each.inForce}`,
    String(each.requests),
    String(each.refused),
    ...(each.lowest === undefined
      ? ['-', '-', '-', '-']
      : [each.p50, each.p99, each.highest, lowest(each.lowest)].map(String))
  ])
  const over = limits.flatMap(each =>
    each.over.map(caller => [
      caller.whom,
      each.limit,
      lowest(caller.needed),
      String(each.inForce),
      clock(caller.at),
      String(caller.refused)
    ])
  )
  const notes = [
    ...limits.flatMap(each => each.notes.map(note => `${each.limit}: ${note}`)),
    ...limits
      .filter(({ more }) => more)
      .map(({ limit }) => `${limit}: more callers are over it than the record lists`)
  ]
  return `${head.join('\n')}\n\n${table([['LIMIT', 'MODE', 'IN FORCE', 'REQUESTS', 'REFUSED', 'P50', 'P99', 'HIGHEST', 'MIN TO REFUSE NONE'], ...rows], stream)}${
    over.length === 0
      ? ''
      : `\n${table([['WHO IS OVER', 'LIMIT', 'NEEDED', 'IN FORCE', 'WHEN', 'REFUSED'], ...over.slice(0, maxRows)], stream)}${over.length > maxRows ? `and ${over.length - maxRows} more: --json lists them\n` : ''}`
  }${notes.length === 0 ? '' : `\n${notes.map(note => `- ${note}\n`).join('')}`}`
}

function lowest({ from, to }: NonNullable<Suggestion['lowest']>) {
  return from === to ? String(from) : `${from} to ${to}`
}

function span(ms: number): string {
  const minutes = Math.floor(ms / 60_000)
  if (minutes < 1) return `${Math.floor(ms / 1000)} s`
  return minutes < 120
    ? `${minutes} min`
    : `${Math.floor(minutes / 60)} h${minutes % 60 === 0 ? '' : ` ${minutes % 60} min`}`
}
