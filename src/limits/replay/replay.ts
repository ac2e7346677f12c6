/**
 * Replays past requests against limits that are not in force, with the plan and counters of the
 * running gateway and the requests' own times.
 */
import type { LimitConfig, LimitsConfig } from '../../config/schema/limits.ts'
import { accountKey } from '../lockout/account.ts'
import { type Counters, createMemoryCounters } from '../counting/counters.ts'
import { createMemoryTally } from '../counting/memory-tally.ts'
import { type LimitSubject, compileEnded, compilePlan, isOfSignIn } from '../counting/plan.ts'
import { LowestNumbers } from './lowest-numbers.ts'

export interface PastRequest {
  /** Its start and end, in milliseconds since the epoch. */
  readonly at: number
  readonly endedAt: number
  readonly route: string
  readonly method: string
  /** As limits count it. */
  readonly address: string
  readonly caller: LimitSubject | undefined
  /** The ended session whose valid cookie it had, or a stand-in for it. */
  readonly ended?: string
  /** Of a sign-in whose password was checked, or would have been. */
  readonly signIn?: { readonly account: string | undefined; readonly accepted: boolean }
}

/** The effect of the limits on a request. */
export interface ReplayOutcome {
  /** The names of limits that apply to it and are not off. */
  readonly held: readonly string[]
  /** Exceeded limits, and whether they refuse it or only report it. */
  readonly over: ReadonlyArray<{ readonly limit: string; readonly enforced: boolean }>
  readonly refused: boolean
}

export interface Replay {
  /** Requests come in the order of `at`; a late one counts at the time of the one before. */
  readonly take: (request: PastRequest) => Promise<ReplayOutcome>
  /** Of each limit the lowest number with which it would have refused nobody, were it alone. */
  readonly lowest: () => ReadonlyMap<string, number>
  readonly close: () => void
}

/** The part of the limits' config that a replay needs. */
export type ReplayedLimits = Pick<LimitsConfig, 'limits' | 'replicas' | 'endedSessions'>

/** The limits that applied to a request so far. */
interface Met {
  readonly held: string[]
  readonly over: Array<{ readonly limit: string; readonly enforced: boolean }>
}

export function createReplay(config: ReplayedLimits): Replay {
  let time = 0
  const now = () => time
  const plan = compilePlan(config)
  const ofEnded = compileEnded(config)
  const tally = createMemoryTally(now)
  const lowest = new LowestNumbers()
  const attempts = new ReplayedAttempts(config.limits, now, lowest)

  async function countRequest(request: PastRequest, { held, over }: Met): Promise<void> {
    const { rules, keysOf } =
      request.ended === undefined
        ? plan(request.route, request.method, request.caller)
        : ofEnded(request.ended)
    if (rules.length === 0) return
    const keys = keysOf(request.address, request.caller)
    const verdicts = await tally.consume(
      rules.map((rule, index) => ({ rule, key: keys[index] as string, unreported: 0 }))
    )
    rules.forEach((rule, index) => {
      held.push(rule.name)
      lowest.count(rule, keys[index] as string, time)
      if (verdicts[index]?.exceeded === true) {
        over.push({ limit: rule.name, enforced: rule.enforced })
      }
    })
  }

  return {
    take: async request => {
      time = Math.max(time, request.at)
      const met: Met = { held: [], over: [] }
      await countRequest(request, met)
      let refused = met.over.some(({ enforced }) => enforced)
      if (!refused && request.signIn !== undefined) refused = await attempts.count(request, met)
      return { ...met, refused }
    },
    lowest: () => lowest.numbers,
    close: () => attempts.close()
  }
}

/**
 * Sign-in attempts, counted as app/hooks/rate-limit-adapter.ts does: the first limit that refuses
 * is the last that counts.
 */
class ReplayedAttempts {
  readonly #limits: ReadonlyArray<readonly [name: string, limit: LimitConfig]>
  readonly #now: () => number
  readonly #lowest: LowestNumbers
  readonly #counters: Counters
  /** Attempts with the right password, and the time of their end. */
  #refunds: Array<{ readonly at: number; readonly keys: readonly string[] }> = []

  constructor(limits: LimitsConfig['limits'], now: () => number, lowest: LowestNumbers) {
    this.#limits = Object.entries(limits).filter(
      ([, limit]) => limit.mode !== 'off' && isOfSignIn(limit)
    )
    this.#now = now
    this.#lowest = lowest
    this.#counters = createMemoryCounters(now)
  }

  /** @returns whether a limit refuses the attempt */
  async count({ address, signIn, endedAt }: PastRequest, { held, over }: Met): Promise<boolean> {
    await this.#refund()
    const refundable: string[] = []
    for (const [limit, { by, window, max, mode, refusedOnly }] of this.#limits) {
      const key = keyOf(by, address, signIn?.account)
      if (key === undefined) continue
      held.push(limit)
      const { current } = await this.#counters.hit(`${limit}:${key}`, window)
      this.#lowest.raise(limit, current)
      if (current > max) over.push({ limit, enforced: mode === 'enforce' })
      if (current > max && mode === 'enforce') return true
      if (refusedOnly) refundable.push(`${limit}:${key}`)
    }
    if (signIn?.accepted === true && refundable.length > 0) {
      this.#refunds.push({ at: endedAt, keys: refundable })
    }
    return false
  }

  async #refund(): Promise<void> {
    const time = this.#now()
    for (const { at, keys } of this.#refunds) {
      if (at <= time) for (const key of keys) await this.#counters.refund(key)
    }
    this.#refunds = this.#refunds.filter(({ at }) => at > time)
  }

  close(): void {
    this.#counters.close()
  }
}

/** Undefined where the log does not show whom the limit counts. */
function keyOf(
  by: LimitConfig['by'],
  address: string,
  account: string | undefined
): string | undefined {
  const whom = new Set(by)
  if (!whom.has('account')) return address
  if (account === undefined) return undefined
  return whom.has('address') ? `${accountKey(account)} ${address}` : accountKey(account)
}
