/** Puts the present of this replica and the replicas together, once a second at most. */
import type { Now, ReplicaNow } from '../../admin/now-schema.ts'
import { configHashes } from '../../config/load/config-hash.ts'
import type { ReplicaBus } from '../../services/replica-bus.ts'
import type { Reloader } from '../reload/reload.ts'
import type { ProcessPresent } from '../server/present.ts'
import { type Present, presentJson } from '../server/present-json.ts'

interface Options {
  readonly present: () => ProcessPresent
  readonly reloader: Pick<Reloader, 'current' | 'files'>
  readonly bus: Pick<ReplicaBus, 'id' | 'serve' | 'ask' | 'replicas'>
}

/** The state that a replica sends to the others. */
type Summary = Required<
  Pick<ReplicaNow, 'requestsPerSecond' | 'errorShare' | 'inFlight' | 'queued' | 'p99Ms'>
>

/** Less than the second between two events of a stream. */
const freshMs = 800
const replyWithinMs = 700
/** A replica that was silent once is shown with what it said last. */
const maxSummaryAgeMs = 5000

export class NowSource {
  readonly #options: Options
  readonly #present: () => Promise<Present>
  readonly #summaries = new Map<string, { readonly summary: Summary; readonly at: number }>()
  readonly #askOthers: () => Promise<void>
  readonly read: () => Promise<Now>

  constructor(options: Options) {
    const { bus } = options
    this.#options = options
    this.#present = cached(async () => presentJson(options.present()))
    this.#askOthers = cached(() => this.#ask())
    this.read = cached(() => this.#read())
    bus.serve('now', async () => summaryOf(await this.#present()))
  }

  async #read(): Promise<Now> {
    const { reloader, bus } = this.#options
    const asking = this.#askOthers().catch(() => {})
    // Only the first answer waits for others: a dead replica must not delay each of them.
    if (this.#summaries.size === 0) await asking
    const [present, replicas] = await Promise.all([this.#present(), bus.replicas()])
    const { config, number } = reloader.current()
    return {
      at: new Date().toISOString(),
      replica: bus.id,
      ...present,
      replicas: replicas.map(({ id, host, version, configHash, ready, seenAt }) => ({
        id,
        host,
        version,
        ...(configHash !== undefined && { configHash }),
        ready,
        seenAt,
        ...(id === bus.id ? summaryOf(present) : this.#summaryOf(id))
      })),
      config: {
        generation: number,
        hash: configHashes(config).config,
        state: reloader.files().state
      }
    }
  }

  async #ask(): Promise<void> {
    const { replies } = await this.#options.bus.ask('now', {}, replyWithinMs)
    const at = performance.now()
    for (const reply of replies) {
      if (!('value' in reply) || !isSummary(reply.value)) continue
      this.#summaries.set(reply.replica, { summary: reply.value, at })
    }
    for (const [id, summary] of this.#summaries) {
      if (at - summary.at > maxSummaryAgeMs) this.#summaries.delete(id)
    }
  }

  #summaryOf(id: string): Partial<Summary> {
    return this.#summaries.get(id)?.summary ?? {}
  }
}

function summaryOf({ requestsPerSecond, errorShare, inFlight, queued, p99Ms }: Present): Summary {
  return { requestsPerSecond, errorShare, inFlight, queued, p99Ms }
}

/** A replica of another release may say something else. */
function isSummary(value: unknown): value is Summary {
  const { p99Ms, ...others } = (value ?? {}) as Partial<Record<keyof Summary, unknown>>
  const { requestsPerSecond, errorShare, inFlight, queued } = others
  return (
    [requestsPerSecond, errorShare, inFlight, queued].every(Number.isFinite) &&
    (p99Ms === null || Number.isFinite(p99Ms))
  )
}

/** Calls at one time share one run, and its result for less than a second. */
function cached<T>(run: () => Promise<T>): () => Promise<T> {
  let last: Promise<T> | undefined
  let doneAt = -Infinity
  let isRunning = false
  return () => {
    if (last !== undefined && (isRunning || performance.now() - doneAt < freshMs)) return last
    isRunning = true
    last = run().finally(() => {
      isRunning = false
      doneAt = performance.now()
    })
    return last
  }
}
