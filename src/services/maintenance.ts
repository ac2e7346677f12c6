/** What operators closed: a set of the session store, each member sealed. */
import { GatewayError } from '../errors/errors.ts'
import type { Seal } from '../session/seal.ts'
import type { SessionStore } from '../session/store.ts'
import type { Log } from './logger.ts'

export interface Closing {
  /** Empty for all, as `methods`. */
  readonly routes: readonly string[]
  readonly methods: readonly string[]
  /** Users with one of them can go on. */
  readonly allowRoles: readonly string[]
  readonly from?: string
  readonly until: string
  readonly message?: string
}

interface Entry extends Closing {
  readonly author: string
  readonly since: string
}

interface Options {
  readonly store: SessionStore
  readonly seal: Seal
  readonly log: Pick<Log, 'warn'>
}

const set = 'maintenance'
const maxMs = 7 * 86_400_000
const endHint = 'The end ("until") is a time in the future, at most 7 days ahead.'
const startHint = 'The start ("from") is a time before the end.'
const foreign =
  'a maintenance in Redis is not sealed with a secret of session.secrets: it is ignored'

export function createMaintenance({ store, seal, log }: Options) {
  /** By how the store has them; undefined for what is not ours. */
  let known: ReadonlyMap<string, Entry | undefined> = new Map()
  let current: readonly Entry[] = []
  const entries = () => current.filter(({ until }) => endOf(until) > Date.now())

  async function read(): Promise<void> {
    const sealed = [...(await store.membersOf(set)).keys()]
    if (sealed.length === known.size && sealed.every(each => known.has(each))) return
    // What is known stays the same object, also for an act that is under way.
    known = new Map(sealed.map(each => [each, known.has(each) ? known.get(each) : opened(each)]))
    const ours = [...known.values()].filter(each => each !== undefined)
    current = ours.toSorted((a, b) => a.since.localeCompare(b.since))
  }

  function opened(sealed: string): Entry | undefined {
    const text = seal.open(set, sealed)
    if (text !== undefined) return JSON.parse(text) as Entry
    log.warn({ event: 'maintenance.foreign' }, foreign)
    return undefined
  }

  async function change(make: (former: readonly Entry[]) => readonly Entry[]): Promise<void> {
    await read().catch(throwAway)
    const former = entries()
    await replace(former, make(former)).catch(throwAway)
  }

  /** What begins is written first, so that nothing is open in between. */
  async function replace(former: readonly Entry[], next: readonly Entry[]): Promise<void> {
    for (const entry of next.filter(each => !former.includes(each))) {
      const sealed = seal.close(set, JSON.stringify(entry))
      await store.addTo(set, sealed, endOf(entry.until) - Date.now())
    }
    for (const [sealed, entry] of known) {
      const isOver = entry !== undefined && former.includes(entry) && !next.includes(entry)
      if (isOver) await store.removeFrom(set, sealed)
    }
    await read()
  }

  return {
    /** What requests are held against; another array when one begins or ends. */
    get current() {
      return current
    },
    entries,
    /** To be called again and again, since other replicas close and open as well. */
    read,
    /** Adds to what is closed, at other replicas within a second. @throws GatewayError */
    begin: async (maintenance: Closing, author: string): Promise<void> => {
      const { until, from } = maintenance
      const leftMs = endOf(until) - Date.now()
      if (!(leftMs > 0 && leftMs <= maxMs)) throw malformed(endHint)
      if (from !== undefined && !(endOf(from) < endOf(until))) throw malformed(startHint)
      const begun = { ...maintenance, author, since: new Date().toISOString() }
      await change(former => [...former.filter(each => !isSame(each, maintenance)), begun])
    },
    /** @param routes those to open; without any, all @throws GatewayError */
    end: async (routes: readonly string[]): Promise<void> =>
      await change(former => withoutRoutes(former, routes))
  }
}

function throwAway(cause: unknown): never {
  throw new GatewayError('ops.redis', { cause })
}

function malformed(message: string): GatewayError {
  return new GatewayError('request.malformed', { message })
}

/** Closings add up; one of the same routes and methods takes the place of the former. */
function isSame(one: Closing, other: Closing): boolean {
  const isAlike = (all: readonly string[], others: readonly string[]) =>
    new Set(all).symmetricDifference(new Set(others)).size === 0
  return isAlike(one.routes, other.routes) && isAlike(one.methods, other.methods)
}

function withoutRoutes(entries: readonly Entry[], names: readonly string[]): Entry[] {
  if (names.length === 0) return []
  const closed = new Set(entries.flatMap(({ routes }) => routes))
  const open = names.find(name => !closed.has(name))
  if (open !== undefined) {
    throw malformed(
      `No operator closed the route "${open}" by its name. An end without routes opens all.`
    )
  }
  return entries.flatMap(entry => {
    const routes = entry.routes.filter(name => !names.includes(name))
    if (routes.length === entry.routes.length) return [entry]
    return routes.length === 0 ? [] : [{ ...entry, routes }]
  })
}

export const timePattern =
  '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d(:\\d\\d(\\.\\d+)?)?(Z|[+-]\\d\\d:\\d\\d)$'

/** In milliseconds; NaN for a day that the calendar does not have, such as 30 February. */
function endOf(until: string): number {
  const [date, day] = [until.slice(0, 10), until.slice(8, 10)]
  return new Date(date).getUTCDate() === Number(day) ? Date.parse(until) : NaN
}

/** A summary such as `closes orders (POST) until 2026-12-01T06:00:00Z`. */
export function maintenanceInWords({ routes, methods, allowRoles, from, until }: Closing): string {
  const what = routes.length === 0 ? 'every route' : routes.join(', ')
  const which = methods.length === 0 ? '' : ` (${methods.join(', ')})`
  const except = allowRoles.length === 0 ? '' : ` but for the roles ${allowRoles.join(', ')}`
  const start = from === undefined ? '' : ` from ${from}`
  return `closes ${what}${which}${except}${start} until ${until}`
}
