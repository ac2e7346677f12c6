/** In the primary: lends parts of the machine's leases to its workers. */
import type { Worker } from 'node:cluster'
import type { SharedLeases } from '../../limits/counting/shared-leases.ts'
import type { Rule, TallyEntry, Verdict } from '../../limits/counting/rules.ts'
import { machineTicks } from '../../steady-clock.ts'
import { type MachineLeases, openMachineLeases } from '../../services/machine-limits.ts'
import {
  type Answer,
  askMs,
  type LimitAnswers,
  type LimitAsks,
  writeVerdict
} from './lease-messages.ts'

type Options = Omit<Parameters<typeof openMachineLeases>[0], 'recall'>

/** The time after which a worker learns that the counters are being asked. */
const underWayMs = askMs / 4
const processesEveryMs = 1000

export class LeaseLender {
  readonly #machine: MachineLeases
  readonly #workers: number
  readonly #borrowers = new Map<number, Borrower>()
  /** One object for each content, since a lease is one rule's. */
  readonly #rules = new Map<string, Rule>()
  readonly #timer: NodeJS.Timeout

  constructor(options: Options) {
    this.#workers = options.workers
    this.#machine = openMachineLeases({
      ...options,
      recall: (worker, key) => this.#borrowers.get(worker)?.recall(key)
    })
    this.#timer = setInterval(() => {
      for (const borrower of this.#borrowers.values()) borrower.sendProcesses()
    }, processesEveryMs).unref()
  }

  /** Serves a worker until it ends. */
  serve(worker: Worker): void {
    const borrower = new Borrower({
      id: worker.id,
      leases: this.#machine.leases,
      processes: () => this.#machine.replicas() * this.#workers,
      ruleOf: rule => this.#ruleOf(rule),
      send: limits => {
        if (worker.isConnected()) worker.send({ limits }, undefined, undefined, () => {})
      }
    })
    this.#borrowers.set(worker.id, borrower)
    worker.on('message', (message: { readonly limits?: LimitAsks } | string) => {
      // Messages may be read after the exit, when all that was lent counts as used already.
      if (!this.#borrowers.has(worker.id)) return
      if (typeof message === 'object' && message.limits !== undefined) {
        borrower.onAsks(message.limits)
      }
    })
    worker.once('exit', () => {
      this.#borrowers.delete(worker.id)
      this.#machine.leases.drop(worker.id)
    })
  }

  /** A number of processes in config counts each worker; here the machine counts as one. */
  #ruleOf(rule: Rule): Rule {
    const content = JSON.stringify(rule)
    let interned = this.#rules.get(content)
    if (interned === undefined) {
      const { replicas } = rule
      interned = {
        ...rule,
        replicas: replicas === undefined ? undefined : Math.ceil(replicas / this.#workers)
      }
      this.#rules.set(content, interned)
    }
    return interned
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#machine.close()
  }
}

interface BorrowerOptions {
  readonly id: number
  readonly leases: SharedLeases
  readonly processes: () => number
  readonly ruleOf: (rule: Rule) => Rule
  readonly send: (answers: LimitAnswers) => void
}

/** A worker that borrows. All answers of one turn of the event loop go in one message. */
class Borrower {
  readonly #options: BorrowerOptions
  readonly #rules = new Map<number, Rule>()
  #answers: Answer[] = []
  #recalled: string[] = []
  #isScheduled = false
  #sentProcesses = 0
  /** Ids of asks for which the counters are being asked, unknown to the worker. */
  readonly #underWay = new Set<number>()

  constructor(options: BorrowerOptions) {
    this.#options = options
  }

  recall(key: string): void {
    this.#recalled.push(key)
    this.#schedule()
  }

  sendProcesses(): void {
    if (this.#options.processes() !== this.#sentProcesses) this.#schedule()
  }

  onAsks({ sentAt, rules, asks, forgotten }: LimitAsks): void {
    const { id: borrower, leases, ruleOf } = this.#options
    for (const [number, rule] of rules) this.#rules.set(number, ruleOf(rule))
    for (const subject of forgotten) leases.forget(subject)
    // The worker has counted without the primary meanwhile, or is about to.
    const isTooLate = machineTicks() - sentAt >= askMs
    for (const [id, kind, written] of asks) {
      const entries = written.map(([rule, key, unreported, unused]) => ({
        rule: this.#rules.get(rule) as Rule,
        key,
        unreported,
        unused
      }))
      if (kind === 'settle' || isTooLate) leases.settle(borrower, entries)
      if (kind === 'settle') continue
      if (isTooLate) this.#answer(id, 'undecided')
      else if (kind === 'consume') this.#consume(id, entries)
      else this.#inspect(id, entries)
    }
  }

  #consume(id: number, entries: readonly TallyEntry[]): void {
    const { id: borrower, leases } = this.#options
    const verdicts = leases.take(borrower, entries)
    if (verdicts instanceof Promise) this.#answerLater(id, verdicts)
    else this.#answer(id, verdicts.map(writeVerdict))
  }

  #inspect(id: number, entries: readonly TallyEntry[]): void {
    const rules = entries.map(({ rule }) => rule)
    const keys = entries.map(({ key }) => key)
    this.#answerLater(id, this.#options.leases.inspect(rules, keys))
  }

  #answerLater(id: number, verdicts: Promise<readonly Verdict[]>): void {
    if (this.#underWay.size === 0) setTimeout(() => this.#sendUnderWay(), underWayMs).unref()
    this.#underWay.add(id)
    verdicts.then(
      decided => this.#answer(id, decided.map(writeVerdict)),
      () => this.#answer(id, 'undecided')
    )
  }

  #sendUnderWay(): void {
    if (this.#underWay.size === 0) return
    for (const id of this.#underWay) this.#answers.push([id, 'under way'])
    this.#underWay.clear()
    this.#schedule()
  }

  #answer(id: number, verdicts: Answer[1]): void {
    this.#underWay.delete(id)
    this.#answers.push([id, verdicts])
    this.#schedule()
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => this.#flush())
  }

  #flush(): void {
    this.#isScheduled = false
    const { processes, send } = this.#options
    this.#sentProcesses = processes()
    const answers = this.#answers
    const recalled = this.#recalled
    this.#answers = []
    this.#recalled = []
    send({ answers, recalled, processes: this.#sentProcesses })
  }
}
