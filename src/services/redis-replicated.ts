/**
 * Writes that outlive their primary: acknowledged only once the replicas that might take over have
 * them.
 */
import { isIP } from 'node:net'
import type { Redis } from 'ioredis'
import { type Address, isSame, type Sentinels, type SentinelView } from './redis-sentinels.ts'

/**
 * `every`: each replica that counts as up. `connected`: not the former primary either, until it has
 * been told that it is a replica; but while a failover runs nothing is acknowledged. Without
 * Sentinels each that follows the primary now, or did two seconds ago.
 */
export type Confirmation = 'every' | 'connected'

export interface ReplicatedWrites {
  /**
   * Runs `write` on the primary of `key`.
   * @throws where the replicas did not confirm it in time; it may have been done all the same
   */
  readonly run: <T>(
    key: string,
    confirmation: Confirmation,
    write: (primary: Redis) => Promise<T>
  ) => Promise<T>
  readonly close: () => void
}

interface Options {
  /** A connection that nothing else uses: `WAIT` holds up what comes after it. */
  readonly primary: Redis
  /** Written before each `WAIT`, which waits for nothing where its connection wrote nothing. */
  readonly barrierKey: string
  readonly waitMs: number
  readonly sentinels?: Sentinels | undefined
  /** Replicas that must confirm, where no Sentinel tells. */
  readonly expected?: () => readonly Address[]
  /** Told once where Redis does not let its user `WAIT`: the primary alone confirms then. */
  readonly onRefused: () => void
}

/** The replicas that confirmed the writes before it was collected. */
interface Evidence {
  readonly stream: Redis['stream']
  readonly connected: readonly Address[]
  /** Replicas that followed the primary a moment ago: one of them may be about to take over. */
  readonly justLeft: readonly Address[]
  readonly confirmedBy: readonly Address[]
  readonly views: readonly SentinelView[]
}

const barrierMs = 60_000
/** Once more where a replica has come meanwhile. */
const maxWaits = 3
const justLeftMs = 2000

export function createReplicatedWrites(options: Options): ReplicatedWrites {
  const { primary, sentinels, onRefused } = options
  const gather = createGatherer(options)
  let isRefused = false
  let running: Promise<Evidence> | undefined
  let next: Promise<Evidence> | undefined

  function start(): Promise<Evidence> {
    const started = gather()
    const over = () => {
      if (running === started) running = undefined
    }
    running = started
    started.then(over, over)
    return started
  }

  /**
   * Begun after the call, so that it holds for what the caller wrote; shared by all who wait at the
   * time.
   */
  function evidence(): Promise<Evidence> {
    if (running === undefined) return start()
    const startNext = () => {
      next = undefined
      return start()
    }
    next ??= running.then(startNext, startNext)
    return next
  }

  /** @throws where `WAIT` failed */
  async function evidenceUnlessRefused(): Promise<Evidence | undefined> {
    try {
      return await evidence()
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('NOPERM')) throw error
      if (!isRefused) onRefused()
      isRefused = true
      return undefined
    }
  }

  return {
    run: async (_key, confirmation, write) => {
      const result = await write(primary)
      // The connection of the reply.
      const { stream } = primary
      const collected = isRefused ? undefined : await evidenceUnlessRefused()
      if (collected === undefined) return result
      if (collected.stream !== stream || primary.stream !== stream || stream.destroyed) {
        throw new Error('the connection to the primary was lost before the replicas confirmed')
      }
      const listed = confirmation === 'every' ? (options.expected?.() ?? []) : []
      const missing =
        sentinels === undefined
          ? missingOf(collected, [...collected.connected, ...collected.justLeft, ...listed])
          : missingBySentinels(collected, sentinels, confirmation)
      if (missing !== undefined) throw new Error(missing)
      return result
    },
    close: () => {
      primary.disconnect()
    }
  }
}

function createGatherer({
  primary,
  barrierKey,
  waitMs,
  sentinels
}: Options): () => Promise<Evidence> {
  const departures = createDepartures()
  let replicas = 0

  /** Without replicas nothing waits: an ACL of a server alone may not know `WAIT`. */
  async function waitOnce() {
    const [, count, [role, , followers]] = await Promise.all([
      primary.set(barrierKey, '1', 'PX', barrierMs).catch(unlessFull),
      replicas > 0 ? primary.wait(replicas, waitMs) : 0,
      primary.role() as Promise<[string, number, Array<[string, string, string]>]>
    ])
    if (role !== 'master') throw new Error('the server is a replica')
    return { count, followers }
  }

  return async () => {
    const { stream } = primary
    for (let tries = 1; ; tries++) {
      const asked = replicas
      const { count, followers } = await waitOnce()
      replicas = followers.length
      const isComplete = count >= followers.length || followers.length <= asked
      if (!isComplete && tries < maxWaits) continue
      // `count` of them had confirmed the barrier: surely those that are furthest.
      const byOffset = followers.toSorted((a, b) => Number(b[2]) - Number(a[2]))
      const connected = byOffset.map(([host, port]): Address => ({ host, port: Number(port) }))
      // Asked afterwards: a failover that began before the replicas confirmed must be seen.
      const views = (await sentinels?.ask()) ?? []
      return {
        stream,
        connected,
        justLeft: departures(connected),
        confirmedBy: connected.slice(0, count),
        views
      }
    }
  }
}

/** A Redis that is full lets go of sessions all the same, and `WAIT` holds for that write. */
function unlessFull(error: Error): void {
  if (!error.message.startsWith('OOM')) throw error
}

/**
 * @returns what tells, of the replicas that are connected now, which others were so until a moment
 * ago
 */
function createDepartures(): (connected: readonly Address[]) => Address[] {
  const seen = new Map<string, { readonly address: Address; leftAt: number | undefined }>()
  return connected => {
    const time = performance.now()
    for (const entry of seen.values()) entry.leftAt ??= time
    for (const address of connected) {
      seen.set(`${address.host}:${address.port}`, { address, leftAt: undefined })
    }
    for (const [key, { leftAt }] of seen) {
      if (leftAt !== undefined && time - leftAt > justLeftMs) seen.delete(key)
    }
    const left = [...seen.values()].filter(({ leftAt }) => leftAt !== undefined)
    return left.map(({ address }) => address)
  }
}

/** @returns undefined where nothing is missing, otherwise what */
function missingBySentinels(
  evidence: Evidence,
  sentinels: Sentinels,
  confirmation: Confirmation
): string | undefined {
  const current = evidence.views.filter(view => isSame(view.primary, sentinels.primary()))
  if (current.length < sentinels.majority) return 'too few Sentinels agree on the primary'
  const replicas = current.flatMap(view => view.replicas)
  const up = replicas.filter(({ isUp }) => isUp)
  if (confirmation === 'every') return missingOf(evidence, up)
  if (current.some(view => view.isFailingOver)) return 'a failover is in progress'
  const isUp = (replica: Address) =>
    up.some(each => isSame(each, replica)) || !replicas.some(each => isSame(each, replica))
  // Right after a failover the other replicas have yet to turn to the new primary, which may fail
  // in turn.
  const turning = up.filter(({ isPrimary }) => !isPrimary)
  return missingOf(evidence, [
    ...turning,
    ...[...evidence.connected, ...evidence.justLeft].filter(isUp)
  ])
}

function missingOf({ confirmedBy }: Evidence, wanted: readonly Address[]): string | undefined {
  const distinct = new Map(wanted.map(each => [`${each.host}:${each.port}`, each]))
  const all = [...distinct.values(), ...confirmedBy]
  // Sentinels may know a replica by a name, the primary by its address: then only their number can
  // be compared.
  const isComparable = all.every(({ host }) => isIP(host) !== 0)
  const isMissing = isComparable
    ? [...distinct.values()].some(each => !confirmedBy.some(other => isSame(each, other)))
    : confirmedBy.length < distinct.size
  return isMissing ? 'not every replica confirmed in time' : undefined
}
