/** Requests of the past against limits that are not in force: the same plan and the same counters as the running gateway, by the requests' own clock. */
import type { LimitConfig, LimitsConfig } from '../../config/schema/limits.ts'
import { accountKey } from '../lockout/account.ts'
import { createMemoryCounters } from '../counting/counters.ts'
import { createRequiredLimit, type RequiredLimit } from '../usage/required-limit.ts'
import { createMemoryTally } from '../counting/memory-tally.ts'
import { type LimitSubject, compileEnded, compilePlan, isOfSignIn } from '../counting/plan.ts'
import type { Rule } from '../counting/rules.ts'

export interface PastRequest {
  /** When it came, and when it was over: milliseconds since the epoch. */
  readonly at: number
  readonly endedAt: number
  readonly route: string
  readonly method: string
  /** As limits count it. */
  readonly address: string
  readonly caller: LimitSubject | undefined
  /** The session whose genuine cookie it had though it was over, or what stands for it. */
  readonly ended?: string
  /** Of a sign-in whose password was, or would have been, looked at. */
  readonly signIn?: { readonly account: string | undefined; readonly accepted: boolean }
}

/** What became of it. */
export interface Outcome {
  /** The limits that hold for it and are not off, by name. */
  readonly held: readonly string[]
  /** Those that are over: whether they refuse it, or only note it. */
  readonly over: ReadonlyArray<{ readonly limit: string; readonly enforced: boolean }>
  readonly refused: boolean
}

export interface Replay {
  /** In the order of `at`: an earlier one counts as of now. */
  readonly take: (request: PastRequest) => Promise<Outcome>
  /** Of each limit the lowest number with which it would have refused nobody, were it alone. */
  readonly lowest: () => ReadonlyMap<string, number>
  readonly close: () => void
}

const maxKeys = 100_000

/** What of the limits a replay counts. */
export type ReplayedLimits = Pick<LimitsConfig, 'limits' | 'replicas' | 'endedSessions'>

export function createReplay(config: ReplayedLimits): Replay {
  let time = 0
  const now = () => time
  const plan = compilePlan(config)
  const ofEnded = compileEnded(config)
  const tally = createMemoryTally(now)
  const counters = createMemoryCounters(now)
  const ofSignIn = Object.entries(config.limits).filter(
    ([, limit]) => limit.mode !== 'off' && isOfSignIn(limit)
  )
  const lowest = new Map<string, number>()
  const demands = new Map<Rule, Map<string, RequiredLimit>>()
  /** Attempts whose passwords turned out right, when they did. */
  let givenBack: Array<{ readonly at: number; readonly keys: readonly string[] }> = []

  const needs = (limit: string, number: number) => {
    if (number > (lowest.get(limit) ?? 0)) lowest.set(limit, number)
  }

  function follow(rule: Rule, key: string): void {
    let ofRule = demands.get(rule)
    if (ofRule === undefined) demands.set(rule, (ofRule = new Map()))
    let demand = ofRule.get(key)
    if (demand === undefined) {
      if (ofRule.size >= maxKeys)
        for (const [other, each] of ofRule) if (each.isOver(time)) ofRule.delete(other)
      ofRule.set(key, (demand = createRequiredLimit(rule)))
    }
    needs(rule.name, demand.hit(time))
  }

  /** As app/hooks/sign-in-limits.ts: one after the other, and the first that refuses is the last that counts. */
  async function attempt(
    { address, signIn, endedAt }: PastRequest,
    held: string[],
    over: Array<{ limit: string; enforced: boolean }>
  ): Promise<boolean> {
    for (const { at, keys } of givenBack)
      if (at <= time) for (const key of keys) await counters.refund(key)
    givenBack = givenBack.filter(({ at }) => at > time)
    const counted: string[] = []
    for (const [limit, { by, window, max, mode, refusedOnly }] of ofSignIn) {
      const key = keyOf(by, address, signIn?.account)
      if (key === undefined) continue
      held.push(limit)
      const { current } = await counters.hit(`${limit}:${key}`, window)
      needs(limit, current)
      if (current > max) over.push({ limit, enforced: mode === 'enforce' })
      if (current > max && mode === 'enforce') return true
      if (refusedOnly) counted.push(`${limit}:${key}`)
    }
    if (signIn?.accepted === true && counted.length > 0)
      givenBack.push({ at: endedAt, keys: counted })
    return false
  }

  return {
    take: async request => {
      time = Math.max(time, request.at)
      const { rules, keysOf } =
        request.ended === undefined
          ? plan(request.route, request.method, request.caller)
          : ofEnded(request.ended)
      const held = rules.map(({ name }) => name)
      const over: Array<{ limit: string; enforced: boolean }> = []
      if (rules.length > 0) {
        const keys = keysOf(request.address, request.caller)
        const verdicts = await tally.consume(
          rules.map((rule, index) => ({ rule, key: keys[index] as string, unreported: 0 }))
        )
        rules.forEach((rule, index) => {
          follow(rule, keys[index] as string)
          if (verdicts[index]?.exceeded === true)
            over.push({ limit: rule.name, enforced: rule.enforced })
        })
      }
      let refused = over.some(({ enforced }) => enforced)
      if (!refused && request.signIn !== undefined) refused = await attempt(request, held, over)
      return { held, over, refused }
    },
    lowest: () => lowest,
    close: () => counters.close()
  }
}

/** Undefined where it is not known whom the limit counts. */
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
