/** What operators closed: a sealed text in Redis, or without it in this process alone. */
import { GatewayError, malformed } from '../errors/errors.ts'
import type { Seal } from '../session/seal.ts'
import type { Log } from './logger.ts'
import type { Background } from './shared.ts'

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

interface Options extends Background {
  readonly seal: Seal
  readonly log: Pick<Log, 'warn'>
}

const maxMs = 7 * 86_400_000
const endHint = 'The end ("until") is a time in the future, at most 7 days ahead.'
const startHint = 'The start ("from") is a time before the end.'
const maxLength = 64 * 1024
const tooLong = 'More than 64 KiB of maintenance. End what is over first.'
const foreign =
  'the maintenance in Redis is not sealed with a secret of session.secrets: it is ignored, and the ' +
  'next begin or end replaces it'
/** Each time that an act at another replica came first. */
const maxTries = 20

const writeScript = `
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
if ARGV[2] == '' then redis.call('DEL', KEYS[1])
else redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) end
return 1`

export function createMaintenance({ redis, prefix, seal, log }: Options) {
  const key = `${prefix}maintenance`
  let text = ''
  let current: readonly Entry[] = []
  const entries = () => current.filter(({ until }) => endOf(until) > Date.now())

  function take(sealed: string | null): void {
    if ((sealed ?? '') === text) return
    text = sealed ?? ''
    const opened = text === '' ? [] : seal.open(key, text)
    if (opened === undefined) log.warn({ event: 'maintenance.foreign' }, foreign)
    else current = opened as readonly Entry[]
  }

  /** An act at another replica in between is not overwritten: the change is made again on top of it. */
  async function change(make: (former: readonly Entry[]) => Entry[]) {
    if (redis === undefined) return void (current = make(entries()))
    try {
      for (let tries = 0; tries < maxTries; tries++) {
        const former = (await redis.get(key)) ?? ''
        take(former)
        const next = make(entries())
        const closed = next.length === 0 ? '' : seal.close(key, next)
        if (closed.length > maxLength) throw malformed(tooLong)
        const ends = next.map(({ until }) => endOf(until))
        const keepMs = Math.ceil(Math.max(1, ...ends) - Date.now())
        const isWritten = await redis.eval(writeScript, 1, key, former, closed, keepMs)
        if (isWritten === 1) return take(closed)
      }
      throw new Error(`${maxTries} times an act at another replica came first`)
    } catch (cause) {
      if (cause instanceof GatewayError) throw cause
      throw new GatewayError('ops.redis', { cause })
    }
  }

  return {
    /** What requests are held against; another array when one begins or ends. */
    get current() {
      return current
    },
    isShared: redis !== undefined,
    entries,
    take,
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
    const isOver = routes.length === 0 && entry.routes.length > 0
    return isOver ? [] : [{ ...entry, routes }]
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
