/**
 * Maintenance that an operator began: it has an author and an end. Replicas share it as a sealed
 * record in Redis; without Redis it is in force in this process alone.
 */
import type { Cluster, Redis } from 'ioredis'
import { endOf, type MaintenanceConfig } from '../config/schema/maintenance.ts'
import { GatewayError } from '../errors.ts'
import { parseKeepingDigits } from '../json/digits.ts'
import {
  type BoundedMaintenance,
  endMs,
  type MaintenanceEntry,
  withBegun,
  withoutRoutes
} from './maintenance-entries.ts'
import type { ReplicaBus } from './replica-bus.ts'
import type { ReplicaSeal } from './replica-seal.ts'

export interface MaintenanceRecord {
  /** Whether it is in force at all replicas, and not in this process alone. */
  readonly isShared: boolean
  /** What operators began and what has not ended yet, oldest first. */
  readonly current: () => readonly MaintenanceEntry[]
  /** @throws GatewayError `request.malformed` for an end that is past or too far away */
  readonly checkEnd: (until: string) => void
  /**
   * Adds to what is closed.
   * @throws GatewayError as `checkEnd`, and `ops.redis`
   */
  readonly begin: (maintenance: BoundedMaintenance, author: string) => Promise<InForce>
  /**
   * @param routes those to open; without any, all
   * @throws GatewayError `request.malformed` for a route that no operator closed, and `ops.redis`
   */
  readonly end: (routes: readonly string[]) => Promise<InForce>
}

/** The replicas at which the act is in force; the others take it within a second. */
export interface InForce {
  readonly replicas: readonly string[]
  readonly silent: readonly string[]
}

type OnChange = (maintenances: readonly MaintenanceConfig[]) => Promise<void>
type Change = (entries: readonly MaintenanceEntry[]) => readonly MaintenanceEntry[]

/** As it is written; the end of a maintenance too, so that an older record does not revive it. */
interface Stored {
  /** Rises with each act. */
  readonly version: number
  /** Until then an older record may still be known somewhere. */
  readonly keepUntil: number
  readonly entries: readonly MaintenanceEntry[]
}

const maxMaintenanceMs = 7 * 86_400_000
const endHint = 'The end ("until") is a time in the future, at most 7 days ahead.'

/** The record in force in this process. */
class LocalMaintenance {
  readonly #now: () => number
  readonly #onChange: OnChange
  #latest: Stored | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(now: () => number, onChange: OnChange) {
    this.#now = now
    this.#onChange = onChange
  }

  get latest(): Stored | undefined {
    return this.#latest
  }

  current(): readonly MaintenanceEntry[] {
    const now = this.#now()
    return (this.#latest?.entries ?? []).filter(entry => endMs(entry) > now)
  }

  /** @returns when it is in force in all processes of this replica */
  async take(stored: Stored): Promise<void> {
    if (stored.version <= (this.#latest?.version ?? 0)) return
    this.#latest = stored
    await this.#apply()
  }

  /** @throws GatewayError for an end that is past or too far away */
  checkEnd(until: string): void {
    const leftMs = endOf(until) - this.#now()
    if (leftMs > 0 && leftMs <= maxMaintenanceMs) return
    throw new GatewayError('request.malformed', { message: endHint })
  }

  /** @throws GatewayError as `checkEnd` */
  begin(maintenance: BoundedMaintenance, author: string): Change {
    this.checkEnd(maintenance.until)
    const since = new Date(this.#now()).toISOString()
    return entries => withBegun(entries, { maintenance, author, since })
  }

  /** @throws GatewayError as `change` */
  next(change: Change): Stored {
    const now = this.#now()
    const entries = change(this.current())
    return {
      version: Math.max(now, (this.#latest?.version ?? 0) + 1),
      keepUntil: Math.max(now, this.#latest?.keepUntil ?? 0, ...entries.map(endMs)),
      entries
    }
  }

  /** Whether it is missed where it is not known. */
  isAlive({ keepUntil }: Stored): boolean {
    return keepUntil > this.#now()
  }

  close(): void {
    clearTimeout(this.#timer)
  }

  async #apply(): Promise<void> {
    clearTimeout(this.#timer)
    const entries = this.current()
    if (entries.length > 0) {
      const leftMs = Math.min(...entries.map(endMs)) - this.#now()
      this.#timer = setTimeout(() => void this.#apply().catch(() => {}), leftMs + 1).unref()
    }
    await this.#onChange(entries.map(({ maintenance }) => maintenance))
  }
}

/** For a gateway without Redis. */
export function createLocalMaintenance(
  id: string,
  onChange: OnChange
): MaintenanceRecord & { readonly close: () => void } {
  const local = new LocalMaintenance(Date.now, onChange)
  const act = async (change: Change): Promise<InForce> => {
    await local.take(local.next(change))
    return { replicas: [id], silent: [] }
  }
  return {
    isShared: false,
    current: () => local.current(),
    checkEnd: until => local.checkEnd(until),
    begin: async (maintenance, author) => await act(local.begin(maintenance, author)),
    end: routes => act(entries => withoutRoutes(entries, routes)),
    close: () => local.close()
  }
}

interface SharedOptions {
  readonly redis: Redis | Cluster
  readonly prefix: string
  readonly seal: ReplicaSeal
  readonly bus: ReplicaBus
  /** The clock of Redis. */
  readonly now: () => number
  readonly onChange: OnChange
  /** Called for a record that is not sealed by a replica, or was changed: it is ignored. */
  readonly onRefused: (reason: 'foreign' | 'unsealed') => void
}

/** Longer than a replica takes that runs: the others take it by their next look. */
const askMs = 1000
/** A replica that hears no messages still takes a change within this. */
const lookEveryMs = 800
const maxRecordLength = 64 * 1024
const tooLong = 'More than 64 KiB of maintenance. End what is over first.'
/** Each time that an act at another replica came first. */
const maxTries = 20
const context = 'maintenance'
const writeScript = `
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1`

export class SharedMaintenance implements MaintenanceRecord {
  readonly isShared = true
  readonly #options: SharedOptions
  readonly #local: LocalMaintenance
  readonly #timer: NodeJS.Timeout
  #refreshed: Promise<unknown> = Promise.resolve()
  #isLooking = false
  /** The text that was refused last: it is counted once. */
  #refused: string | undefined

  constructor(options: SharedOptions) {
    this.#options = options
    const { bus, now, onChange } = options
    this.#local = new LocalMaintenance(now, onChange)
    this.#timer = setInterval(() => this.#look(), lookEveryMs).unref()
    bus.serve('maintenance', async () => {
      await this.refresh()
      return this.#local.latest?.version ?? 0
    })
  }

  current(): readonly MaintenanceEntry[] {
    return this.#local.current()
  }

  checkEnd(until: string): void {
    this.#local.checkEnd(until)
  }

  async begin(maintenance: BoundedMaintenance, author: string): Promise<InForce> {
    return await this.#act(this.#local.begin(maintenance, author))
  }

  end(routes: readonly string[]): Promise<InForce> {
    return this.#act(entries => withoutRoutes(entries, routes))
  }

  /**
   * Takes what Redis has, or gives it back what it has lost; one after the other.
   * @returns the text in Redis; undefined for one that an act overwrites whatever it is
   */
  refresh(): Promise<string | undefined> {
    const refreshed = this.#refreshed.catch(() => {}).then(() => this.#refresh())
    this.#refreshed = refreshed
    return refreshed
  }

  close(): void {
    clearInterval(this.#timer)
    this.#local.close()
  }

  async #act(change: Change): Promise<InForce> {
    const { bus } = this.#options
    const stored = await this.#change(change)
    await this.#local.take(stored)
    const { replies, silent } = await bus.ask('maintenance', {}, askMs)
    const isInForce = (value: unknown) => typeof value === 'number' && value >= stored.version
    const inForce = replies.filter(reply => 'value' in reply && isInForce(reply.value))
    const others = replies.filter(reply => !inForce.includes(reply))
    return {
      replicas: inForce.map(({ replica }) => replica),
      silent: [...silent, ...others.map(({ replica }) => replica)]
    }
  }

  /** An act at another replica in between is not overwritten: the change is made again on top of it. */
  async #change(change: Change): Promise<Stored> {
    try {
      for (let tries = 0; tries < maxTries; tries++) {
        const former = await this.refresh()
        const stored = this.#local.next(change)
        if ((await this.#write(stored, former)) !== undefined) return stored
      }
      throw new Error(`${maxTries} times an act at another replica came first`)
    } catch (cause) {
      if (cause instanceof GatewayError) throw cause
      throw new GatewayError('ops.redis', { cause })
    }
  }

  #look(): void {
    if (this.#isLooking || this.#options.redis.status !== 'ready') return
    this.#isLooking = true
    void this.refresh()
      .catch(() => {})
      .finally(() => {
        this.#isLooking = false
      })
  }

  async #refresh(): Promise<string | undefined> {
    const { redis } = this.#options
    const text = (await redis.get(this.#key)) ?? ''
    const stored = text === '' ? undefined : this.#read(text)
    if (stored !== undefined) await this.#local.take(stored)
    const former = text === '' || stored !== undefined ? text : undefined
    const { latest } = this.#local
    // A failover, or whoever deleted it, does not end a maintenance: only an end does.
    if (latest === undefined || latest.version <= (stored?.version ?? 0)) return former
    if (!this.#local.isAlive(latest)) return former
    return (await this.#write(latest, former)) ?? former
  }

  #read(text: string): Stored | undefined {
    const { seal, onRefused } = this.#options
    const opened = text.length > maxRecordLength ? undefined : seal.open(context, text)
    if (opened !== undefined) return parseKeepingDigits(opened.text) as unknown as Stored
    if (text !== this.#refused) onRefused(seal.isForeign(text) ? 'foreign' : 'unsealed')
    this.#refused = text
    return undefined
  }

  /** @returns the text that was written; undefined where Redis has another one than `former` by now */
  async #write(stored: Stored, former: string | undefined): Promise<string | undefined> {
    const { redis, seal, now } = this.#options
    const text = seal.close(context, JSON.stringify(stored))
    if (text.length > maxRecordLength) {
      throw new GatewayError('request.malformed', { message: tooLong })
    }
    const keepMs = Math.ceil(Math.max(1000, stored.keepUntil - now()))
    if (former === undefined) await redis.set(this.#key, text, 'PX', keepMs)
    else if (!(await redis.eval(writeScript, 1, this.#key, former, text, keepMs))) return undefined
    return text
  }

  get #key(): string {
    const { prefix } = this.#options
    return `${prefix}maintenance`
  }
}
