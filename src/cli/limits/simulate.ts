/** `limits simulate`: replays an access log against limits that are not in force. */
import { writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { loadConfig } from '../../config/load/load.ts'
import { createReorderBuffer } from '../../limits/replay/reorder-buffer.ts'
import { createReplay } from '../../limits/replay/replay.ts'
import { createReplayReport, type ReplayReport } from '../../limits/replay/report.ts'
import { createAccessLines } from './access-lines.ts'
import type { LineCounts } from './line-counts.ts'
import { CommandError, UsageError } from '../command.ts'
import { picture } from './picture.ts'
import { lengthOf, logLines } from './log-lines.ts'
import { table } from '../admin-client.ts'
import { createProgress } from './progress.ts'

export interface Simulation extends ReplayReport {
  readonly log: LineCounts & { late: number }
  /** What the figures leave out, and why. */
  readonly notes: readonly string[]
}

interface Given {
  readonly config: string
  readonly log: string
  readonly limits: string | undefined
  readonly svg: string | undefined
  readonly json: boolean
}

export async function simulate({ config: folder, log, limits, svg, json }: Given): Promise<number> {
  const config = loadConfig(
    folder,
    process.env,
    limits === undefined ? {} : { limitsFile: resolve(limits) }
  )
  const length = lengthOf(log)
  const progress = createProgress(length)
  const access = createAccessLines(config)
  const replay = createReplay(config.limits)
  const collected = createReplayReport(config.limits)
  const order = createReorderBuffer()
  let bytes = 0
  const takeDue = async (atEnd?: boolean) => {
    for (const request of order.due(atEnd)) collected.add(request, await replay.take(request))
  }
  for await (const lines of logLines(log, count => {
    bytes += count
  })) {
    for (const line of lines) {
      const request = access.read(line)
      if (request !== undefined) order.add(request)
    }
    await takeDue()
    progress.show(bytes, access.counts.lines)
  }
  await takeDue(true)
  replay.close()
  progress.end()
  const report = collected.report(replay.lowest())
  const counts = { ...access.counts, late: order.late() }
  const result: Simulation = {
    ...report,
    log: counts,
    notes: notesOf(config.limits, counts, access.withoutRoles.size)
  }
  if (report.requests === 0) {
    throw new CommandError(
      `${log === '-' ? 'Standard input' : log} has no requests to replay: ${counts.lines} lines, ${counts.others} about something else, ${counts.broken} that cannot be read, ${counts.unlimited} that no limit looks at, ${counts.unattributed} whose caller is unknown.`
    )
  }
  if (svg !== undefined) writePicture(svg, picture(report))
  process.stdout.write(json ? `${JSON.stringify(result, null, 2)}\n` : inWords(result))
  return report.refused > 0 ? 3 : 0
}

function writePicture(file: string, content: string): void {
  try {
    writeFileSync(file, content)
  } catch (error) {
    throw new CommandError(`The picture cannot be written: ${(error as Error).message}`)
  }
}

type Limits = Parameters<typeof createReplay>[0]['limits']

function notesOf(
  { limits, inFlightPerRoute }: { readonly limits: Limits; readonly inFlightPerRoute: object },
  counts: Simulation['log'],
  withoutRoles: number
): string[] {
  const entries = Object.entries(limits).filter(([, { mode }]) => mode !== 'off')
  const named = (fits: (limit: Limits[string]) => boolean) =>
    entries
      .filter(([, limit]) => fits(limit))
      .map(([name]) => name)
      .join(', ')
  const byAccount = named(({ by }) => by.includes('account'))
  const bySession = named(({ by }) => by.includes('session'))
  const byRole = named(({ roles }) => roles.length > 0)
  const many = (count: number, one: string, more: string) => `${count} ${count === 1 ? one : more}`
  const notes = [
    `inFlightPerUser${Object.keys(inFlightPerRoute).length > 0 ? ' and inFlightPerRoute are' : ' is'} not simulated: a log does not tell which process answered.`
  ]
  if (counts.combined > 0 && byAccount !== '') {
    notes.push(
      `${byAccount}: not simulated for ${many(counts.combined, 'line', 'lines')} in Combined Log Format, which do not tell the account that a sign-in tries.`
    )
  }
  if (counts.combined > 0 && bySession !== '') {
    notes.push(
      `${bySession}: lines in Combined Log Format tell no session, so all of a user count as one.`
    )
  }
  if (byRole !== '' && withoutRoles > 0) {
    notes.push(
      `${byRole}: not simulated for ${many(withoutRoles, 'user', 'users')} whose roles neither a sign-in in this log nor a users file tells.`
    )
  }
  if (counts.unattributed > 0) {
    notes.push(
      `${many(counts.unattributed, 'request was', 'requests were')} left out: somebody was signed in, but the log does not tell who.`
    )
  }
  if (counts.undecidedSignIns > 0) {
    notes.push(
      `${many(counts.undecidedSignIns, 'sign-in', 'sign-ins')} got 429 then, so it is unknown whether the password was right: counted as wrong.`
    )
  }
  if (counts.endedUnnamed > 0) {
    const requests = many(counts.endedUnnamed, 'request', 'requests')
    notes.push(
      `${requests} had the cookie of a session that is over (endedSessions), ` +
        'but the log does not tell which: all of an address count as one.'
    )
  }
  if (counts.endedUnknown > 0) {
    const requests = many(counts.endedUnknown, 'request', 'requests')
    notes.push(
      `${requests} in Combined Log Format got 401 then and count by address. ` +
        'The gateway counts those with the cookie of a session that is over by that session (endedSessions).'
    )
  }
  if (counts.refusedThen > 0) {
    notes.push(
      `${many(counts.refusedThen, 'request', 'requests')} got 429 then. They count here like the others; without the 429 their callers may have asked less, or more.`
    )
  }
  if (counts.late > 0) {
    notes.push(
      `${many(counts.late, 'request', 'requests')} came more than a minute out of order and count at the time of those before. Are the files in order?`
    )
  }
  if (counts.broken > 0) notes.push(`${many(counts.broken, 'line', 'lines')} could not be read.`)
  return notes
}

const clock = (iso: string | undefined) =>
  iso === undefined ? '-' : iso.slice(0, 19).replace('T', ' ')
const figure = (count: number) => String(count).replace(/\B(?=(\d{3})+$)/g, ' ')
const most = 20

function inWords({ from, to, requests, refused, limits, callers, log, notes }: Simulation): string {
  const head = `${figure(requests)} requests from ${clock(from)} to ${clock(to)} (UTC), ${figure(log.lines)} lines read\n${refused === 0 ? 'nobody would have been refused' : `${figure(refused)} would have been refused (${((100 * refused) / requests).toFixed(2)} %)`}\n`
  const rows = limits.map(each => [
    each.limit,
    each.mode,
    figure(each.requests),
    figure(each.refused),
    figure(each.callers),
    clock(each.first),
    clock(each.last),
    each.lowest === undefined ? '-' : figure(each.lowest)
  ])
  const whom = callers
    .slice(0, most)
    .map(each => [each.whom, each.limit, figure(each.refused), clock(each.first), clock(each.last)])
  return `${head}\n${table([['LIMIT', 'MODE', 'HOLDS FOR', 'REFUSES', 'CALLERS', 'FIRST', 'LAST', 'MIN TO REFUSE NONE'], ...rows])}${
    whom.length === 0
      ? ''
      : `\n${table([['WHO', 'LIMIT', 'REFUSED', 'FIRST', 'LAST'], ...whom])}${callers.length > most ? `and ${figure(callers.length - most)} more: --json lists them\n` : ''}`
  }${notes.length === 0 ? '' : `\n${notes.map(note => `- ${note}\n`).join('')}`}`
}

/** @throws UsageError */
export function simulateGiven(
  config: string,
  values: Readonly<Record<string, unknown>>,
  json: boolean
): Given {
  const { log, limits, svg } = values
  if (typeof log !== 'string') {
    throw new UsageError('Name the log: --log FILE, or --log - for standard input.')
  }
  const text = (value: unknown) => (typeof value === 'string' ? value : undefined)
  return { config, log, limits: text(limits), svg: text(svg), json }
}
