/**
 * Live streams, each bound to the session that opened it: a stream ends soon after its session, the
 * role that it needs, or the opening hours of its route. Outlives generations, as streams do.
 */
import type { ErrorCode } from '../errors/errors.ts'
import type { Config } from '../config/schema/config.ts'
import type { Live } from '../session/evaluate.ts'
import type { Session } from '../session/record.ts'
import type { Sessions } from '../session/session.ts'
import type { Metrics } from '../observability/metrics.ts'
import { StoreUnavailable } from '../session/store.ts'
import type { BindStream, BoundStream } from './routes/bound-stream.ts'
import type { OperatorsMaintenance } from './gateway.ts'
import { createClosings, type RefusalOf } from './hooks/maintenance.ts'

/** Twice a second, so that with a late turn of the event loop a stream still ends within 1 s. */
const sweepEveryMs = 500
/** The ends of a drain are spread in steps of this. */
const drainStepMs = 50

/** The streams that one generation opened. */
export interface StreamScope {
  readonly add: BindStream
  /** Ends them, spread over the time, so that clients do not all come back at once. */
  readonly drain: (overMs: number) => void
}

interface Entry extends BoundStream {
  /** Of its generation. */
  readonly scope: { isDrained: boolean }
}

/**
 * Where nobody tells of changes (Redis is in trouble), a sweep asks for one session of so many: all
 * of them would be what a store in trouble needs least.
 */
const turns = 10

/** The streams of one session. */
interface OfSession {
  readonly key: string
  readonly entries: Set<Entry>
  live: Live
  /** Of the `turns`: the one in which it is asked for without news. */
  readonly turn: number
  /** The store is being asked: a slow one must not be asked again meanwhile. */
  isPending: boolean
}

interface Options {
  readonly sessions: Pick<Sessions, 'getCachedByKey' | 'getByKey' | 'hasNews' | 'use' | 'now'>
  readonly metrics: Metrics
  readonly maintenance?: OperatorsMaintenance
  /** Called for what is neither an end nor a store that cannot answer. */
  readonly onError: (error: unknown) => void
}

export class BoundStreams {
  readonly #options: Options
  readonly #entries = new Set<Entry>()
  readonly #bySession = new Map<string, OfSession>()
  readonly #countEnd: (reason: ErrorCode) => void
  #routes: Config['routes']['routes'] = {}
  #closingOf: RefusalOf = () => undefined
  #timer: NodeJS.Timeout | undefined
  #isStopping = false
  #opened = 0
  #sweeps = 0

  constructor(options: Options) {
    this.#options = options
    const { metrics } = options
    metrics.read({
      name: 'console_gateway_streams',
      help: 'Live streams (WebSocket, event streams, downloads) that are bound to sessions, by route.',
      labelNames: ['route'],
      read: () => this.#countByRoute()
    })
    const ended = metrics.counter(
      'console_gateway_streams_ended_total',
      'Live streams that the gateway ended, by the reason.',
      ['reason']
    )
    this.#countEnd = reason => ended.labels(reason).inc()
  }

  get size(): number {
    return this.#entries.size
  }

  /** Roles and maintenance of a config hold from now on, also for streams opened before. */
  activate(config: Config): void {
    this.#routes = config.routes.routes
    this.#closingOf = createClosings(config.routes, this.#options.maintenance)
  }

  /** Streams of a generation of their own, which it can drain by itself. */
  scope(): StreamScope {
    const scope = { isDrained: false }
    return {
      add: stream => this.#add({ ...stream, scope }),
      drain: overMs => {
        scope.isDrained = true
        this.#endSpread(
          [...this.#entries].filter(entry => entry.scope === scope),
          overMs
        )
      }
    }
  }

  /** Ends all streams, spread over the time; those that are added from now on end at once. */
  drain(overMs: number): void {
    this.#isStopping = true
    this.#endSpread([...this.#entries], overMs)
  }

  close(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #add(entry: Entry): () => void {
    this.#entries.add(entry)
    const { live } = entry
    if (live !== undefined) {
      const { key } = live
      const ofSession = this.#bySession.get(key)
      if (ofSession === undefined) {
        const turn = this.#opened++ % turns
        this.#bySession.set(key, { key, entries: new Set([entry]), live, turn, isPending: false })
      } else ofSession.entries.add(entry)
      this.#timer ??= setInterval(() => this.#sweep(), sweepEveryMs).unref()
    }
    // Not within `add`: the caller has not got to know yet how to take it back.
    const isDrained = this.#isStopping || entry.scope.isDrained
    if (isDrained && entry.isFinite !== true) {
      setImmediate(() => this.#end(entry, 'gateway.stopping'))
    }
    return () => this.#remove(entry)
  }

  #remove(entry: Entry): void {
    this.#entries.delete(entry)
    const ofSession = entry.live && this.#bySession.get(entry.live.key)
    if (ofSession === undefined) return
    ofSession.entries.delete(entry)
    if (ofSession.entries.size > 0) return
    this.#bySession.delete(ofSession.key)
    if (this.#bySession.size === 0) this.close()
  }

  #end(entry: Entry, reason: ErrorCode): void {
    if (!this.#entries.has(entry)) return
    this.#remove(entry)
    this.#countEnd(reason)
    entry.stream.end(reason)
  }

  #sweep(): void {
    const { sessions, onError } = this.#options
    this.#sweeps++
    for (const ofSession of this.#bySession.values()) {
      const cached = sessions.getCachedByKey(ofSession.key)
      if (cached !== undefined) this.#judge(ofSession, cached)
      else if (sessions.now() >= ofSession.live.session.absoluteEnd) {
        // Known without the store: nothing moves the absolute end.
        this.#endSession(ofSession, 'session.absolute')
      } else if (!ofSession.isPending && this.#isDue(ofSession)) {
        ofSession.isPending = true
        this.#ask(ofSession)
          .catch(onError)
          .finally(() => (ofSession.isPending = false))
      }
    }
  }

  /** A change that was announced, and an end that is known, are looked up at once. */
  #isDue({ live, turn }: OfSession): boolean {
    const { sessions } = this.#options
    const isIdle = sessions.now() >= live.idleEnd
    return sessions.hasNews() || isIdle || this.#sweeps % turns === turn
  }

  /** Streams go on while the store cannot answer: only what surely is over is ended. */
  async #ask(ofSession: OfSession): Promise<void> {
    try {
      const evaluation = await this.#options.sessions.getByKey(ofSession.key)
      if ('live' in evaluation) this.#judge(ofSession, evaluation.live)
      else if ('ended' in evaluation) this.#endSession(ofSession, `session.${evaluation.ended}`)
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error
    }
  }

  /** The session lives: ends those of its streams that its user may not have any more. */
  #judge(ofSession: OfSession, live: Live): void {
    ofSession.live = live
    let isUsed = false
    for (const entry of ofSession.entries) {
      const reason = this.#refusalOf(entry, live.session)
      if (reason !== undefined) this.#end(entry, reason)
      else isUsed ||= entry.touch
    }
    if (isUsed) this.#options.sessions.use(live)
  }

  #refusalOf({ route, access }: Entry, session: Session): ErrorCode | undefined {
    const current = Object.hasOwn(this.#routes, route) ? this.#routes[route]?.access : undefined
    const needed = current ?? access
    const isAllowed =
      typeof needed === 'string' || session.identity.roles.some(role => needed.roles.includes(role))
    if (!isAllowed) return 'route.forbidden'
    return this.#closingOf(route, 'GET', session) === undefined ? undefined : 'maintenance'
  }

  #endSession({ entries }: OfSession, reason: ErrorCode): void {
    for (const entry of entries) this.#end(entry, reason)
  }

  #endSpread(candidates: readonly Entry[], overMs: number): void {
    const entries = candidates.filter(entry => entry.isFinite !== true)
    const startedAt = performance.now()
    let ended = 0
    const endDue = () => {
      const share = overMs === 0 ? 1 : (performance.now() - startedAt + drainStepMs) / overMs
      const due = Math.min(entries.length, Math.ceil(entries.length * share))
      for (; ended < due; ended++) this.#end(entries[ended] as Entry, 'gateway.stopping')
      if (ended < entries.length) setTimeout(endDue, drainStepMs).unref()
    }
    endDue()
  }

  #countByRoute(): Array<readonly [labels: readonly string[], value: number]> {
    const counts = new Map<string, number>()
    for (const { route } of this.#entries) counts.set(route, (counts.get(route) ?? 0) + 1)
    return Array.from(counts, ([route, count]) => [[route], count] as const)
  }
}
