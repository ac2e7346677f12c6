/**
 * Live streams, each bound to the session that opened it: a stream ends soon after its session, the
 * role that it needs, or the opening hours of its route. Outlives generations, as streams do.
 */
import type { ErrorCode } from '../errors/errors.ts'
import type { Config } from '../config/schema/config.ts'
import type { Sessions } from '../session/sessions.ts'
import { StoreUnavailable } from '../session/store.ts'
import type { Live, Session } from '../session/types.ts'
import type { Counter, Metrics } from '../observability/metrics.ts'
import type { BindStream, BoundStream } from './hooks/context.ts'
import type { OperatorsMaintenance } from './gateway.ts'
import { mayUse, createClosings, type ClosingOf } from './hooks/guard.ts'

/** Twice a second, so that with a late turn of the event loop a stream still ends within 1 s. */
const sweepEveryMs = 500

interface Entry extends BoundStream {
  live: Live | undefined
  /** Of its generation. */
  readonly scope: { isDrained: boolean }
  /** Of the `turns`: the one in which its session is asked for without news. */
  readonly turn: number
}

/**
 * Where nobody tells of changes (Redis is in trouble), a sweep asks for one session of so many: all
 * of them would be what a store in trouble needs least.
 */
const turns = 10

interface Options {
  readonly sessions: Pick<Sessions, 'cached' | 'read' | 'hasNews' | 'use' | 'now'>
  readonly metrics: Metrics
  readonly maintenance?: OperatorsMaintenance
  /** Called for what is neither an end nor a store that cannot answer. */
  readonly onError: (error: unknown) => void
}

export class BoundStreams {
  readonly #options: Options
  readonly #entries = new Set<Entry>()
  /** Keys of sessions: a slow store is not asked again meanwhile. */
  readonly #asked = new Set<string>()
  readonly #ended: Counter
  #routes: Config['routes']['routes'] = {}
  #closingOf: ClosingOf = () => undefined
  readonly #timer = setInterval(() => this.#sweep(), sweepEveryMs).unref()
  /** Of all generations, at a stop. */
  readonly #all = { isDrained: false }
  #opened = 0
  #sweeps = 0

  constructor(options: Options) {
    this.#options = options
    options.metrics.read({
      name: 'console_gateway_streams',
      help: 'Live streams (WebSocket, event streams, downloads) that are bound to sessions, by route.',
      labelNames: ['route'],
      read: () =>
        Array.from(
          Map.groupBy(this.#entries, ({ route }) => route),
          ([route, { length }]) => [[route], length] as const
        )
    })
    this.#ended = options.metrics.counter(
      'console_gateway_streams_ended_total',
      'Live streams that the gateway ended, by the reason.',
      ['reason']
    )
  }

  get size(): number {
    return this.#entries.size
  }

  /** The roles of a config hold from now on, also for streams opened before. */
  activate(config: Config): void {
    this.#routes = config.routes.routes
    this.#closingOf = createClosings(config, this.#options.maintenance)
  }

  /** Streams of a generation of their own, which it can drain by itself. */
  scope() {
    const scope = { isDrained: false }
    const add: BindStream = stream => {
      const entry = { ...stream, scope, turn: this.#opened++ % turns }
      this.#entries.add(entry)
      // Not within `add`: the caller has not got to know yet how to take it back.
      if (this.#isDrained(entry)) setImmediate(() => this.#end([entry], 'gateway.stopping'))
      return () => void this.#entries.delete(entry)
    }
    return { add, drain: (overMs: number) => this.drain(overMs, scope) }
  }

  /**
   * Ends streams, spread over the time, so that clients do not all come back at once; those that
   * are added from now on end at once.
   * @param of their generation; by default all
   */
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
      this.#ended.labels(reason).inc()
      entry.stream.end(reason)
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
      const now = sessions.now()
      // Known without the store: nothing moves the absolute end.
      if (now >= live.absoluteEnd) this.#end(entries, 'session.absolute')
      else if (cached !== undefined) this.#judge(entries, cached)
      // A change that was announced, and an end that is known, are looked up at once.
      else if (sessions.hasNews() || now >= live.idleEnd || this.#sweeps % turns === turn) {
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

  /** The session lives: ends those of its streams that its user may not have any more. */
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
    return this.#closingOf(route, 'GET', session) === undefined ? undefined : 'maintenance'
  }
}
