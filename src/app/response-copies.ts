/**
 * Copies of upstreams' responses, each of one session, in this process: for `cache` and for the
 * last good response of `fallback`. Bounded; dropped soon after their session or its roles end.
 */
import { LRUCache } from 'lru-cache'
import type { LimitsConfig } from '../config/schema/limits.ts'
import type { Metrics } from '../observability/metrics.ts'
import type { Freshness } from '../proxy/freshness.ts'
import type { UpstreamResponse } from '../proxy/response.ts'
import type { Live } from '../session/evaluate.ts'
import type { Sessions } from '../session/session.ts'
import { StoreUnavailable } from '../session/store.ts'

/** Of a response with status 200. */
export interface Copy {
  readonly headers: UpstreamResponse['headers']
  readonly bytes: Buffer
  readonly freshness: Freshness
  /** Monotonic, in milliseconds. */
  readonly receivedAt: number
  /** Upstream and path, without the query: a change of it makes the copy useless. */
  readonly target: string
}

interface Entry extends Copy {
  readonly session: string
}

interface SessionCopies {
  readonly session: string
  readonly roles: string
  readonly keys: Set<string>
  isPending: boolean
}

interface Options {
  readonly sessions: Pick<Sessions, 'getCachedByKey' | 'getByKey'>
  readonly metrics: Metrics
  /** Called for what is neither an end nor a store that cannot answer. */
  readonly onError: (error: unknown) => void
}

const sweepEveryMs = 1000
/** Of a sweep, so that it takes no time that requests need. */
const maxSwept = 1000
/** One session must not push out those of all others. */
const maxPerSession = 200
const maxChanges = 10_000
/** The bytes of an entry beside its texts and body. */
const entryBytes = 1024

export class ResponseCopies {
  readonly #options: Options
  readonly #sessions = new Map<string, SessionCopies>()
  /** When the target of a session was changed: what was asked for before is not kept. */
  readonly #changedAt = new LRUCache<string, number>({ max: maxChanges })
  #bounds: LimitsConfig['copies'] | undefined
  #entries: LRUCache<string, Entry> | undefined
  #sweep: Iterator<SessionCopies> | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(options: Options) {
    this.#options = options
    const { metrics } = options
    metrics.read('console_gateway_copies', 'Copies of responses that are kept.', [], () => [
      [[], this.#entries?.size ?? 0]
    ])
    metrics.read('console_gateway_copies_bytes', 'Bytes of the kept copies.', [], () => [
      [[], this.#entries?.calculatedSize ?? 0]
    ])
  }

  /** Other bounds than before drop all copies. */
  activate({ copies }: LimitsConfig): void {
    const { maxEntries, maxBytes } = this.#bounds ?? {}
    if (maxEntries === copies.maxEntries && maxBytes === copies.maxBytes) return
    this.#bounds = copies
    this.#entries?.clear()
    this.#entries = undefined
  }

  get(key: string): Copy | undefined {
    return this.#entries?.get(key)
  }

  /** @param askedAt when the response was asked for */
  set(key: string, { key: session, session: { identity } }: Live, askedAt: number, copy: Copy) {
    if ((this.#changedAt.get(`${session} ${copy.target}`) ?? 0) >= askedAt) return
    const roles = JSON.stringify(identity.roles)
    const before = this.#sessions.get(session)
    if (before !== undefined && before.roles !== roles) this.#dropSession(before)
    // A part of a larger buffer would keep all of it alive.
    const bytes = Buffer.allocUnsafeSlow(copy.bytes.length)
    copy.bytes.copy(bytes)
    const entries = this.#open()
    entries.set(key, { ...copy, bytes, session })
    // Too large: its predecessor is gone all the same.
    if (!entries.has(key)) return this.#unindex(session, key)
    const ofSession = this.#sessions.get(session) ?? this.#index(session, roles)
    ofSession.keys.delete(key)
    ofSession.keys.add(key)
    const [oldest] = ofSession.keys
    if (ofSession.keys.size > maxPerSession && oldest !== undefined) entries.delete(oldest)
  }

  drop(key: string): void {
    this.#entries?.delete(key)
  }

  /** A session has changed what an upstream has at a path (RFC 9111 §4.4). */
  dropTarget(session: string, target: string): void {
    this.#changedAt.set(`${session} ${target}`, performance.now())
    for (const key of this.#sessions.get(session)?.keys ?? []) {
      if (this.#entries?.peek(key)?.target === target) this.#entries.delete(key)
    }
  }

  close(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#entries?.clear()
  }

  #open(): LRUCache<string, Entry> {
    const { maxEntries, maxBytes } = this.#bounds ?? { maxEntries: 1, maxBytes: 1 }
    this.#entries ??= new LRUCache<string, Entry>({
      max: maxEntries,
      maxSize: maxBytes,
      sizeCalculation: sizeOf,
      dispose: ({ session }, key, reason) => {
        if (reason !== 'set') this.#unindex(session, key)
      }
    })
    return this.#entries
  }

  #index(session: string, roles: string): SessionCopies {
    const ofSession = { session, roles, keys: new Set<string>(), isPending: false }
    this.#sessions.set(session, ofSession)
    this.#timer ??= setInterval(() => this.#sweepSome(), sweepEveryMs).unref()
    return ofSession
  }

  #unindex(session: string, key: string): void {
    const ofSession = this.#sessions.get(session)
    if (ofSession?.keys.delete(key) !== true || ofSession.keys.size > 0) return
    this.#sessions.delete(session)
    if (this.#sessions.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #sweepSome(): void {
    this.#sweep ??= this.#sessions.values()
    for (let count = 0; count < maxSwept; count++) {
      const { value, done } = this.#sweep.next()
      if (done === true) {
        this.#sweep = undefined
        return
      }
      this.#look(value)
    }
  }

  #look(ofSession: SessionCopies): void {
    const { sessions, onError } = this.#options
    const cached = sessions.getCachedByKey(ofSession.session)
    if (cached !== undefined) return this.#compare(ofSession, cached)
    if (ofSession.isPending) return
    ofSession.isPending = true
    this.#ask(ofSession)
      .catch(onError)
      .finally(() => (ofSession.isPending = false))
  }

  async #ask(ofSession: SessionCopies): Promise<void> {
    try {
      const evaluation = await this.#options.sessions.getByKey(ofSession.session)
      if ('live' in evaluation) this.#compare(ofSession, evaluation.live)
      else if ('ended' in evaluation) this.#dropSession(ofSession)
    } catch (error) {
      // No request gets a copy either, while no session can be read.
      if (!(error instanceof StoreUnavailable)) throw error
    }
  }

  #compare(ofSession: SessionCopies, { session: { identity } }: Live): void {
    if (JSON.stringify(identity.roles) !== ofSession.roles) this.#dropSession(ofSession)
  }

  #dropSession({ keys }: SessionCopies): void {
    for (const key of keys) this.#entries?.delete(key)
  }
}

function sizeOf({ headers, bytes, target }: Entry): number {
  return bytes.length + JSON.stringify(headers).length + target.length + entryBytes
}
