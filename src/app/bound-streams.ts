/** Live streams: each ends soon after its session, its role, or the opening hours of its route. */
import type { ErrorCode } from '../errors/errors.ts'
import type { Config } from '../config/schema/config.ts'
import { StoreUnavailable } from '../session/store.ts'
import type { Live, Session } from '../session/types.ts'
import { steadyNow } from '../steady-clock.ts'
import type { Count } from '../observability/metrics.ts'
import type { BindStream, BoundStream } from './hooks/context.ts'
import type { Services } from '../services/services.ts'
import { closingOf, mayUse } from './hooks/guard.ts'

/** Twice a second, so that with a late turn of the event loop a stream still ends within 1 s. */
const sweepEveryMs = 500

interface Entry extends BoundStream {
  live: Live | undefined
  readonly scope: { isDrained: boolean }
  /** Of the `turns`: the one in which its session is asked for without news. */
  readonly turn: number
}

/** Without news (Redis is in trouble) a sweep asks for one session of so many: no flood. */
const turns = 10

interface Options extends Pick<Services, 'sessions' | 'metrics' | 'maintenance'> {
  readonly onError: (error: unknown) => void
}

export class BoundStreams {
  readonly #options: Options
  readonly #entries = new Set<Entry>()
  /** Keys of sessions: a slow store is not asked again meanwhile. */
  readonly #asked = new Set<string>()
  readonly #countEnd: Count
  #routes: Config['routes']['routes'] = {}
  readonly #timer = setInterval(() => this.#sweep(), sweepEveryMs).unref()
  readonly #all = { isDrained: false }
  #sweeps = 0

  constructor(options: Options) {
    this.#options = options
    options.metrics.read('console_gateway_streams', () => {
      const byRoute = Map.groupBy(this.#entries, ({ route }) => route)
      return Array.from(byRoute, ([route, { length }]) => [[route], length] as const)
    })
    this.#countEnd = options.metrics.counter('console_gateway_streams_ended_total')
  }

  /** The roles of a config hold from now on, also for streams opened before. */
  activate(config: Config): void {
    this.#routes = config.routes.routes
  }

  /** Streams of a generation of their own, which it can drain by itself. */
  scope() {
    const scope = { isDrained: false }
    const add: BindStream = stream => {
      const entry = { ...stream, scope, turn: Math.floor(Math.random() * turns) }
      this.#entries.add(entry)
      // Not within `add`: the caller has not got to know yet how to take it back.
      if (this.#isDrained(entry)) setImmediate(() => this.#end([entry], 'gateway.stopping'))
      return () => void this.#entries.delete(entry)
    }
    return { add, drain: (overMs: number) => this.drain(overMs, scope) }
  }

  /** Spread, so that clients do not all come back at once. @param of by default all */
  drain(overMs: number, of: Entry['scope'] = this.#all): void {
    of.isDrained = true
    const entries = [...this.#entries].filter(entry => this.#isDrained(entry))
    if (overMs === 0) return this.#end(entries, 'gateway.stopping')
    for (const [index, entry] of entries.entries()) {
      const afterMs = (overMs * index) / entries.length
      setTimeout(() => this.#end([entry], 'gateway.stopping'), afterMs).unref()
    }
  }

  close(): void {
    clearInterval(this.#timer)
  }

  #isDrained({ scope, isFinite }: Entry): boolean {
    return (this.#all.isDrained || scope.isDrained) && isFinite !== true
  }

  #end(entries: readonly Entry[], reason: ErrorCode): void {
    for (const entry of entries) {
      if (!this.#entries.delete(entry)) continue
      this.#countEnd(reason)
      entry.end(reason)
    }
  }

  #sweep(): void {
    const { sessions } = this.#options
    this.#sweeps++
    for (const entries of Map.groupBy(this.#entries, ({ live }) => live?.key).values()) {
      const { live, turn } = entries.at(-1) as Entry
      if (live === undefined) continue
      // No store has the token of a machine.
      const cached = live.sealed === '' ? live : sessions.cached(live.key)
      const now = steadyNow()
      // Known without the store: nothing moves the absolute end.
      if (now >= live.absoluteEnd) this.#end(entries, 'session.absolute')
      else if (cached !== undefined) this.#judge(entries, cached)
      // A change that was announced, and an end that is known, are looked up at once.
      else if (
        sessions.store.isFollowed() ||
        now >= live.idleEnd ||
        this.#sweeps % turns === turn
      ) {
        void this.#ask(live.key, entries)
      }
    }
  }

  /** Streams go on while the store cannot answer: only what surely is over is ended. */
  async #ask(key: string, entries: readonly Entry[]): Promise<void> {
    if (this.#asked.has(key)) return
    this.#asked.add(key)
    try {
      const evaluation = await this.#options.sessions.read(key)
      if ('live' in evaluation) this.#judge(entries, evaluation.live)
      else this.#end(entries, `session.${evaluation.ended}`)
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) this.#options.onError(error)
    } finally {
      this.#asked.delete(key)
    }
  }

  #judge(entries: readonly Entry[], live: Live): void {
    let isUsed = false
    for (const entry of entries) {
      entry.live = live
      const reason = this.#refusalOf(entry, live.session)
      if (reason !== undefined) this.#end([entry], reason)
      else isUsed ||= entry.touch
    }
    if (isUsed) this.#options.sessions.use(live)
  }

  #refusalOf({ route, access }: Entry, session: Session): ErrorCode | undefined {
    const current = Object.hasOwn(this.#routes, route) ? this.#routes[route]?.access : undefined
    if (!mayUse(current ?? access, session)) return 'route.forbidden'
    const { current: closings } = this.#options.maintenance
    return closingOf(closings, this.#routes, { route, method: 'GET' }, session) && 'maintenance'
  }
}
