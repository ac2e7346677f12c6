/** `limits simulate`: replays an access log against limits that are not in use yet. */
import { resolve } from 'node:path'
import { loadConfig } from '../../config/load/load.ts'
import { createReorderBuffer } from '../../limits/replay/reorder-buffer.ts'
import { createReplay } from '../../limits/replay/replay.ts'
import { createReplayReport, type ReplayReport } from '../../limits/replay/report.ts'
import { createAccessLines } from './access-lines.ts'
import type { LineCounts } from './line-counts.ts'
import { CommandError, type Io, type Output } from '../command.ts'
import { picture } from './picture.ts'
import { lengthOf, logLines } from './log-lines.ts'
import { table } from '../admin-client.ts'
import { jsonText, writeOutput } from '../output.ts'
import { createProgress } from './progress.ts'

export interface Simulation extends ReplayReport {
  readonly log: LineCounts & { late: number }
  /** The requests that the figures leave out, with the reasons. */
  readonly notes: readonly string[]
}

interface SimulateOptions {
  readonly config: string
  readonly log: string
  readonly limits: string | undefined
  readonly svg: string | undefined
  readonly json: boolean
}

export async function simulate(
  { config: folder, log, limits, svg, json }: SimulateOptions,
  io: Io
): Promise<number> {
  const config = loadConfig(
    folder,
    io.env,
    limits === undefined ? {} : { limitsFile: resolve(limits) }
  )
  const length = lengthOf(log)
  const progress = createProgress(length, io.stderr)
  const access = createAccessLines(config)
  const replay = createReplay(config.limits)
  const collected = createReplayReport(config.limits)
  const order = createReorderBuffer()
  let bytes = 0
  const takeDue = async (atEnd?: boolean) => {
    for (const request of order.due(atEnd)) collected.add(request, await replay.take(request))
  }
  for await (const lines of logLines(log, io.stdin, count => {
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
      `${log === '-' ? 'Standard input' : log} has no requests to replay: ${counts.lines} lines, ` +
        `${counts.others} about something else, ${counts.broken} that cannot be read, ` +
        `${counts.unlimited} that no limit counts, ${counts.unattributed} whose caller is unknown.`
    )
  }
  if (svg !== undefined) writeOutput(svg, picture(report), io)
  io.stdout.write(json ? jsonText(result) : inWords(result, io.stdout))
  return report.refused > 0 ? 3 : 0
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
  const many = (count: number, singular: string, more: string) =>
    `${count} ${count === 1 ? singular : more}`
  const notes = [
    `inFlightPerUser${Object.keys(inFlightPerRoute).length > 0 ? ' and inFlightPerRoute are' : ' is'} not simulated: a log does not name the process that answered.`
  ]
  if (counts.combined > 0 && byAccount !== '') {
    notes.push(
      `${byAccount}: not simulated for ${many(counts.combined, 'line', 'lines')} in Combined Log Format, which do not name the account of a sign-in.`
    )
  }
  if (counts.combined > 0 && bySession !== '') {
    notes.push(
      `${bySession}: lines in Combined Log Format name no session, so all of a user count as one.`
    )
  }
  if (byRole !== '' && withoutRoles > 0) {
    notes.push(
      `${byRole}: not simulated for ${many(withoutRoles, 'user', 'users')} whose roles are in no sign-in of this log and in no users file.`
    )
  }
  if (counts.unattributed > 0) {
    notes.push(
      `${many(counts.unattributed, 'request was', 'requests were')} left out: the caller was signed in, but the log does not name the user.`
    )
  }
  if (counts.undecidedSignIns > 0) {
    notes.push(
      `${many(counts.undecidedSignIns, 'sign-in', 'sign-ins')} got 429, so nobody checked the password: counted as wrong.`
    )
  }
  if (counts.endedUnnamed > 0) {
    const requests = many(counts.endedUnnamed, 'request', 'requests')
    notes.push(
      `${requests} had the cookie of an ended session (endedSessions) ` +
        'that the log does not name: all of an address count as one.'
    )
  }
  if (counts.endedUnknown > 0) {
    const requests = many(counts.endedUnknown, 'request', 'requests')
    notes.push(
      `${requests} in Combined Log Format got 401 and count by address. ` +
        'The gateway counts those with the cookie of an ended session by that session (endedSessions).'
    )
  }
  if (counts.refusedThen > 0) {
    notes.push(
      `${many(counts.refusedThen, 'request', 'requests')} got 429. They count here like the others; without the 429 their callers may have sent fewer, or more.`
    )
  }
  if (counts.late > 0) {
    notes.push(
      `${many(counts.late, 'request', 'requests')} came more than a minute out of order and count at the time of those before. Check the order of the files.`
    )
  }
  if (counts.broken > 0) notes.push(`${many(counts.broken, 'line', 'lines')} could not be read.`)
  return notes
}

const clock = (iso: string | undefined) =>
  iso === undefined ? '-' : iso.slice(0, 19).replace('T', ' ')
const figure = (count: number) => String(count).replace(/\B(?=(\d{3})+$)/g, ' ')
const maxCallers = 20

function inWords(
  { from, to, requests, refused, limits, callers, log, notes }: Simulation,
  stream: Output
): string {
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
    .slice(0, maxCallers)
    .map(each => [each.whom, each.limit, figure(each.refused), clock(each.first), clock(each.last)])
  return `${head}\n${table([['LIMIT', 'MODE', 'HOLDS FOR', 'REFUSES', 'CALLERS', 'FIRST', 'LAST', 'MIN TO REFUSE NONE'], ...rows], stream)}${
    whom.length === 0
      ? ''
      : `\n${table([['WHO', 'LIMIT', 'REFUSED', 'FIRST', 'LAST'], ...whom], stream)}${callers.length > maxCallers ? `and ${figure(callers.length - maxCallers)} more: --json lists them\n` : ''}`
  }${notes.length === 0 ? '' : `\n${notes.map(note => `- ${note}\n`).join('')}`}`
}

export function simulateOptions(
  config: string,
  values: Readonly<Record<string, unknown>>,
  json: boolean
): SimulateOptions {
  const { log, limits, svg } = values
  const text = (value: unknown) => (typeof value === 'string' ? value : undefined)
  return { config, log: String(log), limits: text(limits), svg: text(svg), json }
}
