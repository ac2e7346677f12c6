/**
 * Schedules JSONata jobs: routes take turns, and a route whose expression exceeded its time runs on
 * a second thread for a while, so that it does not delay other routes.
 */
import { createExpressionRunner, type ExpressionJob } from './expression-runner.ts'

interface Lane {
  readonly waiting: ExpressionJob[]
  /** Until then it runs only on the second thread; milliseconds of a monotonic clock. */
  suspectUntil: number
}

type NamedJob = readonly [lane: string, job: ExpressionJob]

/** Of one route; further jobs are refused. */
const maxWaiting = 200
/** Of all routes: each waiting job holds the memory of its input. */
const maxWaitingInAll = 400
const suspectMs = 60_000
/** A job that has waited so long for another route's expression runs on the second thread. */
const patienceMs = 25
/** The second thread is ended after so long without a job: it costs memory and is rarely needed. */
const idleMs = 30_000

const isSuspect = ({ suspectUntil }: Lane) => suspectUntil > performance.now()

/** Queues of jobs, one for each route. */
export class Lanes {
  /** Lanes with waiting jobs, in the order of their turns, and suspect lanes. */
  readonly #lanes = new Map<string, Lane>()
  readonly #usual = createExpressionRunner()
  readonly #second = createExpressionRunner()
  #waitingInAll = 0
  /** The lane of the job on the usual thread. */
  #busyLane: string | undefined
  #impatient: NodeJS.Timeout | undefined
  #idle: NodeJS.Timeout | undefined

  /** @returns whether there was room */
  add(name: string, job: ExpressionJob): boolean {
    const lane = this.#lanes.get(name) ?? { waiting: [], suspectUntil: 0 }
    if (lane.waiting.length >= maxWaiting || this.#waitingInAll >= maxWaitingInAll) return false
    this.#lanes.set(name, lane)
    lane.waiting.push(job)
    this.#waitingInAll++
    this.#schedule()
    return true
  }

  async close(): Promise<void> {
    this.#clearTimers()
    const waiting = [...this.#lanes.values()].flatMap(lane => lane.waiting.splice(0))
    this.#lanes.clear()
    this.#waitingInAll = 0
    for (const job of waiting) job.done({ error: 'the gateway stops', lost: 'closed' })
    await Promise.all([this.#usual.close(), this.#second.close()])
    // Jobs that were ended by closing have set the timers again.
    this.#clearTimers()
  }

  #clearTimers(): void {
    clearTimeout(this.#impatient)
    clearTimeout(this.#idle)
  }

  /** The next job of the first lane that fits; its lane goes to the end. */
  #take(fits: (lane: Lane, name: string) => boolean): NamedJob | undefined {
    for (const [name, lane] of this.#lanes) {
      const [job] = lane.waiting
      if (job === undefined) {
        if (!isSuspect(lane)) this.#lanes.delete(name)
        continue
      }
      if (!fits(lane, name)) continue
      lane.waiting.shift()
      this.#waitingInAll--
      this.#lanes.delete(name)
      this.#lanes.set(name, lane)
      return [name, job]
    }
    return undefined
  }

  #schedule(): void {
    if (!this.#usual.isBusy()) this.#runUsually(this.#take(lane => !isSuspect(lane)))
    if (!this.#second.isBusy()) this.#runApart(this.#take(isSuspect))
  }

  #runUsually(next: NamedJob | undefined): void {
    if (next === undefined) return
    const [name, job] = next
    this.#busyLane = name
    this.#usual.run({ ...job, done: this.#settled(name, job) })
    clearTimeout(this.#impatient)
    this.#overtakeLater()
  }

  #runApart(next: NamedJob | undefined): void {
    if (next === undefined) return
    const [name, job] = next
    clearTimeout(this.#idle)
    const done = this.#settled(name, job)
    this.#second.run({
      ...job,
      done: outcome => {
        done(outcome)
        if (!this.#second.isBusy()) this.#closeSecondLater()
      }
    })
  }

  #settled(name: string, job: ExpressionJob): ExpressionJob['done'] {
    return outcome => {
      if ('lost' in outcome && outcome.lost !== 'closed') this.#suspect(name)
      job.done(outcome)
      this.#schedule()
    }
  }

  #closeSecondLater(): void {
    clearTimeout(this.#idle)
    this.#idle = setTimeout(() => {
      if (!this.#second.isBusy()) void this.#second.close()
    }, idleMs).unref()
  }

  #suspect(name: string): void {
    const lane = this.#lanes.get(name) ?? { waiting: [], suspectUntil: 0 }
    lane.suspectUntil = performance.now() + suspectMs
    this.#lanes.set(name, lane)
  }

  #overtakeLater(): void {
    this.#impatient = setTimeout(() => this.#overtake(), patienceMs).unref()
  }

  /** While the usual thread is busy for long, a job of another route runs on the second one. */
  #overtake(): void {
    if (!this.#usual.isBusy()) return
    if (!this.#second.isBusy()) this.#runApart(this.#take((_, name) => name !== this.#busyLane))
    this.#overtakeLater()
  }
}
