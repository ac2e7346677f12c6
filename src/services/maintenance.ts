/**
 * What operators closed. Replicas share it as a sealed text in Redis, which the heartbeat reads;
 * without Redis it is in force in this process alone.
 */
import { GatewayError } from '../errors/errors.ts'
import { parseKeepingDigits } from '../json/digits.ts'
import type { Seal } from '../session/seal.ts'
import { type Closing, endOf, type MaintenanceEntry } from './closing.ts'
import type { Log } from './logger.ts'
import type { Background } from './shared.ts'

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
  let all: readonly MaintenanceEntry[] = []
  let current: readonly Closing[] = []
  const entries = () => all.filter(({ maintenance }) => endOf(maintenance.until) > Date.now())

  function set(next: readonly MaintenanceEntry[]): void {
    all = next
    current = entries().map(({ maintenance }) => maintenance)
  }

  function take(sealed: string | null): void {
    if ((sealed ?? '') === text) return
    text = sealed ?? ''
    const opened = text === '' ? '[]' : seal.open(key, text)
    if (opened === undefined) log.warn({ event: 'maintenance.foreign' }, foreign)
    else set(parseKeepingDigits(opened) as never)
  }

  /** An act at another replica in between is not overwritten: the change is made again on top of it. */
  async function change(make: (former: readonly MaintenanceEntry[]) => MaintenanceEntry[]) {
    if (redis === undefined) return set(make(entries()))
    try {
      for (let tries = 0; tries < maxTries; tries++) {
        const former = (await redis.get(key)) ?? ''
        take(former)
        const next = make(entries())
        const closed = next.length === 0 ? '' : seal.close(key, JSON.stringify(next))
        if (closed.length > maxLength) throw malformed(tooLong)
        const ends = next.map(({ maintenance }) => endOf(maintenance.until))
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
    /** What has not ended yet, oldest first; some may begin later. */
    entries,
    take,
    /**
     * Adds to what is closed: here at once, at other replicas within a second.
     * @throws GatewayError
     */
    begin: async (maintenance: Closing, author: string): Promise<void> => {
      const { until, from } = maintenance
      const leftMs = endOf(until) - Date.now()
      if (!(leftMs > 0 && leftMs <= maxMs)) throw malformed(endHint)
      if (from !== undefined && !(endOf(from) < endOf(until))) throw malformed(startHint)
      const begun = { maintenance, author, since: new Date().toISOString() }
      await change(former => [
        ...former.filter(each => !isSame(each.maintenance, maintenance)),
        begun
      ])
    },
    /** @param routes those to open; without any, all @throws GatewayError */
    end: async (routes: readonly string[]): Promise<void> =>
      await change(former => withoutRoutes(former, routes))
  }
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

function withoutRoutes(
  entries: readonly MaintenanceEntry[],
  names: readonly string[]
): MaintenanceEntry[] {
  if (names.length === 0) return []
  const closed = new Set(entries.flatMap(({ maintenance }) => maintenance.routes))
  const open = names.find(name => !closed.has(name))
  if (open !== undefined) {
    throw malformed(
      `No operator closed the route "${open}" by its name. An end without routes opens all.`
    )
  }
  return entries.flatMap(entry => {
    const { maintenance } = entry
    const routes = maintenance.routes.filter(name => !names.includes(name))
    const isOver = routes.length === 0 && maintenance.routes.length > 0
    return isOver ? [] : [{ ...entry, maintenance: { ...maintenance, routes } }]
  })
}
