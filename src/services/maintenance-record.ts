/**
 * Maintenance that an operator began: it has an author and an end. Replicas share it as a sealed
 * record in Redis; without Redis it is in force in this process alone.
 */
import type { Cluster, Redis } from 'ioredis'
import { endOf, type MaintenanceConfig } from '../config/schema/maintenance.ts'
import { GatewayError } from '../errors.ts'
import { parseKeepingDigits } from '../json/digits.ts'
import { type Movable, movableTables, movableValue } from '../movable-state.ts'
import type { ReplicaBus } from './replica-bus.ts'
import type { ReplicaSeal } from './replica-seal.ts'

export type BoundedMaintenance = MaintenanceConfig & { readonly until: string }

export interface MaintenanceEntry {
  readonly maintenance: BoundedMaintenance
  readonly author: string
  readonly since: string
}

export interface MaintenanceRecord {
  /** Whether it is in force at all replicas, and not in this process alone. */
  readonly isShared: boolean
  /** Undefined when none was begun, and after its end. */
  readonly current: () => MaintenanceEntry | undefined
  /** @throws GatewayError `request.malformed` for an end that is past or too far away */
  readonly checkEnd: (until: string) => void
  /** @throws GatewayError as `checkEnd`, and `ops.redis` */
  readonly begin: (maintenance: BoundedMaintenance, author: string) => Promise<InForce>
  /** @throws GatewayError `ops.redis` */
  readonly end: (author: string) => Promise<InForce>
}

/** The replicas at which the act is in force; the others take it within a second. */
export interface InForce {
  readonly replicas: readonly string[]
  readonly silent: readonly string[]
}

type OnChange = (maintenance: MaintenanceConfig | undefined) => Promise<void>

/** As it is written; the end of a maintenance too, so that an older record does not revive it. */
interface Stored {
  /** Rises with each act. */
  readonly version: number
  readonly author: string
  readonly at: string
  /** Until then an older record may still be known somewhere. */
  readonly keepUntil: number
  readonly maintenance?: BoundedMaintenance
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

  current(): MaintenanceEntry | undefined {
    const { maintenance, author, at } = this.#latest ?? {}
    if (maintenance === undefined || author === undefined || at === undefined) return undefined
    if (Date.parse(maintenance.until) <= this.#now()) return undefined
    return { maintenance, author, since: at }
  }

  /** @returns when it is in force in all processes of this replica */
  async take(stored: Stored): Promise<void> {
    if (stored.version <= (this.#latest?.version ?? 0)) return
    this.#latest = stored
    await this.#apply()
  }

  /** @throws GatewayError for an end that is past or too far away */
  endOf(until: string): number {
    const end = endOf(until)
    const leftMs = end - this.#now()
    if (leftMs > 0 && leftMs <= maxMaintenanceMs) return end
    throw new GatewayError('request.malformed', { message: endHint })
  }

  /** @throws GatewayError as `endOf` */
  next(author: string, maintenance?: BoundedMaintenance): Stored {
    const now = this.#now()
    const until = maintenance === undefined ? now : this.endOf(maintenance.until)
    return {
      version: Math.max(now, (this.#latest?.version ?? 0) + 1),
      author,
      at: new Date(now).toISOString(),
      keepUntil: Math.max(until, this.#latest?.keepUntil ?? 0),
      ...(maintenance !== undefined && { maintenance })
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
    const maintenance = this.current()?.maintenance
    if (maintenance !== undefined) {
      const leftMs = Date.parse(maintenance.until) - this.#now()
      this.#timer = setTimeout(() => void this.#apply().catch(() => {}), leftMs + 1).unref()
    }
    await this.#onChange(maintenance)
  }
}

/** For a gateway without Redis. */
export function createLocalMaintenance(
  id: string,
  onChange: OnChange
): MaintenanceRecord & Movable & { readonly close: () => void } {
  const local = new LocalMaintenance(Date.now, onChange)
  const act = async (author: string, maintenance?: BoundedMaintenance): Promise<InForce> => {
    await local.take(local.next(author, maintenance))
    return { replicas: [id], silent: [] }
  }
  const latest = movableValue(
    () => local.latest ?? null,
    (stored: Stored | null) => {
      if (stored !== null) void local.take(stored).catch(() => {})
    }
  )
  return {
    ...movableTables({ latest }),
    isShared: false,
    current: () => local.current(),
    checkEnd: until => void local.endOf(until),
    begin: (maintenance, author) => act(author, maintenance),
    end: author => act(author),
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
const context = 'maintenance'

export class SharedMaintenance implements MaintenanceRecord {
  readonly isShared = true
  readonly #options: SharedOptions
  readonly #local: LocalMaintenance
  readonly #timer: NodeJS.Timeout
  #refreshed: Promise<void> = Promise.resolve()
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

  current(): MaintenanceEntry | undefined {
    return this.#local.current()
  }

  checkEnd(until: string): void {
    this.#local.endOf(until)
  }

  begin(maintenance: BoundedMaintenance, author: string): Promise<InForce> {
    return this.#act(author, maintenance)
  }

  end(author: string): Promise<InForce> {
    return this.#act(author)
  }

  /** Takes what Redis has, or gives it back what it has lost; one after the other. */
  refresh(): Promise<void> {
    this.#refreshed = this.#refreshed.catch(() => {}).then(() => this.#refresh())
    return this.#refreshed
  }

  close(): void {
    clearInterval(this.#timer)
    this.#local.close()
  }

  async #act(author: string, maintenance?: BoundedMaintenance): Promise<InForce> {
    const { bus } = this.#options
    let stored: Stored
    try {
      await this.refresh()
      stored = this.#local.next(author, maintenance)
      await this.#write(stored)
    } catch (cause) {
      if (cause instanceof GatewayError) throw cause
      throw new GatewayError('ops.redis', { cause })
    }
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

  #look(): void {
    if (this.#isLooking || this.#options.redis.status !== 'ready') return
    this.#isLooking = true
    void this.refresh()
      .catch(() => {})
      .finally(() => {
        this.#isLooking = false
      })
  }

  async #refresh(): Promise<void> {
    const { redis } = this.#options
    const text = await redis.get(this.#key)
    const stored = text === null ? undefined : this.#read(text)
    if (stored !== undefined) await this.#local.take(stored)
    const { latest } = this.#local
    // A failover, or whoever deleted it, does not end a maintenance: only an end does.
    if (latest === undefined || latest.version <= (stored?.version ?? 0)) return
    if (this.#local.isAlive(latest)) await this.#write(latest)
  }

  #read(text: string): Stored | undefined {
    const { seal, onRefused } = this.#options
    const opened = text.length > maxRecordLength ? undefined : seal.open(context, text)
    if (opened !== undefined) return parseKeepingDigits(opened.text) as unknown as Stored
    if (text !== this.#refused) onRefused(seal.isForeign(text) ? 'foreign' : 'unsealed')
    this.#refused = text
    return undefined
  }

  async #write(stored: Stored): Promise<void> {
    const { redis, seal, now } = this.#options
    const text = seal.close(context, JSON.stringify(stored))
    await redis.set(this.#key, text, 'PX', Math.max(1000, stored.keepUntil - now()))
  }

  get #key(): string {
    const { prefix } = this.#options
    return `${prefix}maintenance`
  }
}
