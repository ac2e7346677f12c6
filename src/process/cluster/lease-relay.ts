/** In a worker: limits are counted by leases of the primary, of which the worker borrows parts. */
import type { SubjectKey } from '../../limits/counting/callers.ts'
import type { MachineLimits } from '../../limits/counting/machine-limits.ts'
import {
  isRefused,
  type Rule,
  type Tally,
  type TallyEntry,
  type Verdict
} from '../../limits/counting/rules.ts'
import { noGrant } from '../../limits/counting/shared-leases.ts'
import { machineTicks } from '../../steady-clock.ts'
import {
  type Answer,
  askMs,
  type AskKind,
  type LimitAnswers,
  type LimitAsks,
  verdictOf
} from './lease-messages.ts'

/** The primary is not asked for this time after it did not answer. */
const pauseMs = 1000

interface Asked {
  readonly kind: AskKind
  readonly entries: readonly TallyEntry[]
  /** Undefined where the primary did not decide. */
  readonly decide: (verdicts: readonly Verdict[] | undefined) => void
  /** The primary is asking the counters, so that its answer will come unless it hangs. */
  isUnderWay: boolean
  /** The request was counted without the primary, which did not answer in time. */
  isLate: boolean
}

/** The numbers of rules, by which messages name them. Rules of equal content have one. */
class RuleNumbers {
  readonly #byRule = new WeakMap<Rule, number>()
  readonly #byContent = new Map<string, number>()
  #unsent: Array<readonly [number: number, rule: Rule]> = []

  of(rule: Rule): number {
    let number = this.#byRule.get(rule)
    if (number !== undefined) return number
    const content = JSON.stringify(rule)
    number = this.#byContent.get(content)
    if (number === undefined) {
      number = this.#byContent.size
      this.#byContent.set(content, number)
      this.#unsent.push([number, rule])
    }
    this.#byRule.set(rule, number)
    return number
  }

  /** @returns rules that the primary does not know yet */
  takeUnsent(): ReadonlyArray<readonly [number: number, rule: Rule]> {
    const unsent = this.#unsent
    if (unsent.length > 0) this.#unsent = []
    return unsent
  }
}

/** All that is asked in one turn of the event loop goes in one message. */
export class LeaseRelay implements MachineLimits {
  readonly #send: (message: { readonly limits: LimitAsks }) => boolean
  readonly #rules = new RuleNumbers()
  readonly #asked = new Map<number, Asked>()
  #asks: Array<LimitAsks['asks'][number]> = []
  #forgotten: SubjectKey[] = []
  #isScheduled = false
  #lastId = 0
  #pausedUntil = 0
  #processes: number
  readonly #underWayMs: number
  #release: (keys: readonly string[]) => void = () => {}

  /**
   * @param send returns false where the primary is gone
   * @param processes that share the counters, until the primary tells their number
   * @param commandMs the time in which a command of the primary to the counters ends
   */
  constructor(
    send: (message: { readonly limits: LimitAsks }) => boolean,
    processes: number,
    commandMs: number
  ) {
    this.#send = send
    this.#processes = processes
    this.#underWayMs = 2 * commandMs + askMs
  }

  readonly processes = (): number => this.#processes

  readonly onRecall = (release: (keys: readonly string[]) => void): void => {
    this.#release = release
  }

  readonly forget = (subject: SubjectKey): void => {
    // The primary forgets before it reads the asks of a message: those from before go first.
    if (this.#asks.length > 0) this.flush()
    this.#forgotten.push(subject)
    this.#schedule()
  }

  readonly tally = (direct: Tally): Tally => ({
    consume: async entries => {
      if (performance.now() < this.#pausedUntil) this.#tell(entries)
      else {
        const verdicts = await this.#ask('consume', entries)
        if (verdicts !== undefined) return verdicts
      }
      // Without earlier use: the message to the primary holds it, and the primary counts it.
      const bare = entries.map(({ rule, key }) => ({ rule, key, unreported: 0 }))
      return (await direct.consume(bare)).map(verdict => ({ ...verdict, grant: noGrant }))
    },
    report: async entries => {
      if (entries.some(({ unreported, unused = 0 }) => unreported > 0 || unused > 0)) {
        this.#tell(entries)
        return []
      }
      return (await this.#ask('inspect', entries)) ?? (await direct.report(entries))
    }
  })

  /** Called with each message of the primary. */
  onAnswers({ answers, recalled, processes }: LimitAnswers): void {
    this.#processes = processes
    for (const answer of answers) this.#onAnswer(answer)
    const underWay = answers.flatMap(([id, verdicts]) => (verdicts === 'under way' ? id : []))
    if (underWay.length > 0) this.#boundUnderWay(underWay)
    // Grants of the same message are noted in microtasks, and belong to what is given back.
    if (recalled.length > 0) setImmediate(() => this.#release(recalled))
  }

  #onAnswer([id, verdicts]: Answer): void {
    const asked = this.#asked.get(id)
    if (asked === undefined) return
    if (verdicts === 'under way') {
      asked.isUnderWay = true
      return
    }
    this.#asked.delete(id)
    const decided = verdicts === 'undecided' ? undefined : verdicts.map(verdictOf)
    if (!asked.isLate) asked.decide(decided)
    else if (asked.kind === 'consume') this.#return(asked.entries, decided ?? [])
  }

  /** The request of a late answer was counted elsewhere too: its place and grant go back. */
  #return(entries: readonly TallyEntry[], verdicts: readonly Verdict[]): void {
    if (isRefused(entries, verdicts)) return
    const taken = verdicts.flatMap(({ exceeded, grant = noGrant }, index) => {
      const entry = entries[index]
      if (entry === undefined || exceeded) return []
      return [{ ...entry, unreported: -1, unused: grant.requests }]
    })
    if (taken.length > 0) this.#tell(taken)
  }

  #ask(kind: AskKind, entries: readonly TallyEntry[]): Promise<readonly Verdict[] | undefined> {
    return new Promise(resolve => {
      const id = ++this.#lastId
      this.#asked.set(id, { kind, entries, decide: resolve, isUnderWay: false, isLate: false })
      this.#queue(id, kind, entries)
    })
  }

  /** Without entries of no use: else a primary that hangs would get a message for each request. */
  #tell(entries: readonly TallyEntry[]): void {
    const used = entries.filter(({ unreported, unused = 0 }) => unreported !== 0 || unused > 0)
    if (used.length > 0) this.#queue(0, 'settle', used)
  }

  #queue(id: number, kind: AskKind, entries: readonly TallyEntry[]): void {
    this.#asks.push([
      id,
      kind,
      entries.map(({ rule, key, unreported, unused = 0 }) => [
        this.#rules.of(rule),
        key,
        unreported,
        unused
      ])
    ])
    this.#schedule()
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => this.flush())
  }

  /** Sends at once what waits for the end of this turn. */
  flush(): void {
    this.#isScheduled = false
    const asks = this.#asks
    const forgotten = this.#forgotten
    if (asks.length === 0 && forgotten.length === 0) return
    this.#asks = []
    this.#forgotten = []
    const rules = this.#rules.takeUnsent()
    const ids = asks.flatMap(([id]) => (id === 0 ? [] : [id]))
    if (!this.#send({ limits: { sentAt: machineTicks(), rules, asks, forgotten } })) {
      return this.#giveUp(ids)
    }
    if (ids.length === 0) return
    // Answers that came while this process was busy are read before `setImmediate` calls back.
    setTimeout(() => setImmediate(() => this.#giveUp(ids)), askMs).unref()
  }

  /** The primary may hang after it has said so, and its question to the counters with it. */
  #boundUnderWay(ids: readonly number[]): void {
    const giveUp = () => {
      for (const id of ids) {
        const asked = this.#asked.get(id)
        if (asked !== undefined) asked.isUnderWay = false
      }
      this.#giveUp(ids)
    }
    setTimeout(() => setImmediate(giveUp), this.#underWayMs).unref()
  }

  /** Has asks counted without the primary, unless it is asking the counters. */
  #giveUp(ids: readonly number[]): void {
    for (const id of ids) {
      const asked = this.#asked.get(id)
      if (asked === undefined || asked.isUnderWay || asked.isLate) continue
      asked.isLate = true
      this.#pausedUntil = performance.now() + pauseMs
      asked.decide(undefined)
    }
  }
}
