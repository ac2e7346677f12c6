/**
 * What operators closed: each closing has an author and an end. Replicas share it as a sealed text
 * in Redis, which the heartbeat reads; without Redis it is in force in this process alone.
 */
import type { Cluster, Redis } from 'ioredis'
import { type BoundedClosing, endOf, type MaintenanceEntry } from '../config/schema/maintenance.ts'
import { GatewayError } from '../errors/errors.ts'
import { parseKeepingDigits } from '../json/digits.ts'
import type { Seal } from '../session/seal.ts'
import type { Log } from './logger.ts'

interface Options {
  readonly redis?: Redis | Cluster | undefined
  readonly prefix: string
  readonly seal: Pick<Seal, 'close' | 'open'>
  /** By the clock of Redis, where there is one. */
  readonly now: () => number
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

export class Maintenance {
  readonly #options: Options
  readonly #key: string
  #text = ''
  #entries: readonly MaintenanceEntry[] = []
  /** What requests are held against; another array when one begins or ends. */
  current: readonly BoundedClosing[] = []

  constructor(options: Options) {
    this.#options = options
    this.#key = `${options.prefix}maintenance`
  }

  /** Whether it is in force at all replicas, and not in this process alone. */
  get isShared(): boolean {
    return this.#options.redis !== undefined
  }

  get now(): () => number {
    return this.#options.now
  }

  /** What has not ended yet, oldest first; some may begin later. */
  entries(): readonly MaintenanceEntry[] {
    const now = this.#options.now()
    return this.#entries.filter(entry => endOf(entry.maintenance.until) > now)
  }

  /** Takes what Redis has. */
  take(sealed: string | null): void {
    const text = sealed ?? ''
    if (text === this.#text) return
    this.#text = text
    const opened = text === '' ? '[]' : this.#options.seal.open(this.#key, text)
    if (opened !== undefined) return this.#set(parseKeepingDigits(opened) as never)
    this.#options.log.warn({ event: 'maintenance.foreign' }, foreign)
  }

  /** @throws GatewayError `request.malformed` for an end that is past or too far away */
  check({ until, from }: Pick<BoundedClosing, 'until' | 'from'>): void {
    const end = endOf(until)
    const leftMs = end - this.#options.now()
    if (!(leftMs > 0 && leftMs <= maxMs)) {
      throw new GatewayError('request.malformed', { message: endHint })
    }
    if (from === undefined || endOf(from) < end) return
    throw new GatewayError('request.malformed', { message: startHint })
  }

  /**
   * Adds to what is closed: here at once, at other replicas within a second.
   * @throws GatewayError as `check`, and `ops.redis`
   */
  async begin(maintenance: BoundedClosing, author: string): Promise<void> {
    this.check(maintenance)
    const since = new Date(this.#options.now()).toISOString()
    await this.#change(entries => withBegun(entries, { maintenance, author, since }))
  }

  /**
   * @param routes those to open; without any, all
   * @throws GatewayError `request.malformed` for a route that no operator closed, and `ops.redis`
   */
  async end(routes: readonly string[]): Promise<void> {
    await this.#change(entries => withoutRoutes(entries, routes))
  }

  #set(entries: readonly MaintenanceEntry[]): void {
    this.#entries = entries
    this.current = this.entries().map(({ maintenance }) => maintenance)
  }

  /** An act at another replica in between is not overwritten: the change is made again on top of it. */
  async #change(change: (entries: readonly MaintenanceEntry[]) => MaintenanceEntry[]) {
    const { redis } = this.#options
    if (redis === undefined) return this.#set(change(this.entries()))
    try {
      for (let tries = 0; tries < maxTries; tries++) {
        const former = (await redis.get(this.#key)) ?? ''
        this.take(former)
        const entries = change(this.entries())
        const text = this.#sealed(entries)
        const keepMs = Math.ceil(
          Math.max(1, ...entries.map(({ maintenance }) => endOf(maintenance.until))) -
            this.#options.now()
        )
        const isWritten = await redis.eval(writeScript, 1, this.#key, former, text, keepMs)
        if (isWritten === 1) return this.take(text)
      }
      throw new Error(`${maxTries} times an act at another replica came first`)
    } catch (cause) {
      if (cause instanceof GatewayError) throw cause
      throw new GatewayError('ops.redis', { cause })
    }
  }

  #sealed(entries: readonly MaintenanceEntry[]): string {
    if (entries.length === 0) return ''
    const text = this.#options.seal.close(this.#key, JSON.stringify(entries))
    if (text.length <= maxLength) return text
    throw new GatewayError('request.malformed', { message: tooLong })
  }
}

/**
 * The routes add up. One that is named again takes the new end, message and roles, unless the
 * former closing holds for more methods: a begin opens nothing.
 */
function withBegun(
  former: readonly MaintenanceEntry[],
  begun: MaintenanceEntry
): MaintenanceEntry[] {
  const { routes, methods } = begun.maintenance
  const isReplaced = ({ maintenance: { methods: others, routes: names } }: MaintenanceEntry) =>
    (methods.length === 0 || (others.length > 0 && others.every(each => methods.includes(each)))) &&
    (routes.length === 0) === (names.length === 0)
  const kept = former.flatMap(entry => (isReplaced(entry) ? withoutNames(entry, routes) : [entry]))
  return [...kept, begun]
}

/** @throws GatewayError for a route that is not closed by its name */
function withoutRoutes(
  entries: readonly MaintenanceEntry[],
  routes: readonly string[]
): MaintenanceEntry[] {
  if (routes.length === 0) return []
  const names = new Set(entries.flatMap(({ maintenance }) => maintenance.routes))
  const open = routes.find(route => !names.has(route))
  if (open !== undefined) {
    throw new GatewayError('request.malformed', {
      message: `No operator closed the route "${open}" by its name. An end without routes opens all.`
    })
  }
  return entries.flatMap(entry =>
    entry.maintenance.routes.length === 0 ? [entry] : withoutNames(entry, routes)
  )
}

/** @returns none where nothing is left of it */
function withoutNames(entry: MaintenanceEntry, names: readonly string[]): MaintenanceEntry[] {
  const { maintenance } = entry
  const routes = maintenance.routes.filter(route => !names.includes(route))
  return routes.length === 0 ? [] : [{ ...entry, maintenance: { ...maintenance, routes } }]
}
