/**
 * Who runs next: routes take turns, and one whose expression exceeded its time goes to a second
 * thread for a while, so that it holds up nobody else.
 */
import { createRunner, type Job } from './expression-runner.ts'

interface Lane {
  readonly waiting: Job[]
  /** Until then it runs on the second thread alone; milliseconds of a monotonic clock. */
  suspectUntil: number
}

export interface Lanes {
  /** @returns whether there was room */
  readonly add: (lane: string, job: Job) => boolean
  readonly close: () => Promise<void>
}

/** So many may wait of one route; more are refused at once. */
const maxWaiting = 200
/** Of all routes: a wait costs the memory of its input. */
const maxWaitingInAll = 400
const suspectMs = 60_000
/** Whoever waits so long for another route's expression goes to the second thread. */
const patienceMs = 25
/** The second thread costs memory, and is rarely needed. */
const idleMs = 30_000

export function createLanes(): Lanes {
  /** Those that wait, in their turns, and suspects. */
  const lanes = new Map<string, Lane>()
  const usual = createRunner()
  const second = createRunner()
  let waitingInAll = 0
  let busyLane: string | undefined
  let impatient: NodeJS.Timeout | undefined
  let idle: NodeJS.Timeout | undefined

  const isSuspect = ({ suspectUntil }: Lane) => suspectUntil > performance.now()

  /** The job of the first lane that fits; its lane goes to the end. */
  function take(fits: (lane: Lane, name: string) => boolean): readonly [string, Job] | undefined {
    for (const [name, lane] of lanes) {
      const { waiting } = lane
      if (waiting.length === 0) {
        if (!isSuspect(lane)) lanes.delete(name)
        continue
      }
      if (!fits(lane, name)) continue
      const job = waiting.shift() as Job
      waitingInAll--
      lanes.delete(name)
      lanes.set(name, lane)
      return [name, job]
    }
    return undefined
  }

  function schedule(): void {
    if (!usual.isBusy()) {
      const [name, job] = take(lane => !isSuspect(lane)) ?? []
      if (name !== undefined && job !== undefined) runUsually(name, job)
    }
    if (!second.isBusy()) {
      const [name, job] = take(isSuspect) ?? []
      if (name !== undefined && job !== undefined) runApart(name, job)
    }
  }

  function runUsually(name: string, job: Job): void {
    busyLane = name
    usual.run({ ...job, done: settled(name, job) })
    clearTimeout(impatient)
    impatient = setTimeout(overtake, patienceMs).unref()
  }

  function runApart(name: string, job: Job): void {
    clearTimeout(idle)
    second.run({ ...job, done: settled(name, job) })
  }

  function settled(name: string, job: Job): Job['done'] {
    return (outcome, isAbandoned) => {
      if (isAbandoned) suspect(name)
      job.done(outcome, isAbandoned)
      schedule()
      if (second.isBusy()) return
      clearTimeout(idle)
      idle = setTimeout(() => {
        if (!second.isBusy()) void second.close()
      }, idleMs).unref()
    }
  }

  function suspect(name: string): void {
    const lane = lanes.get(name) ?? { waiting: [], suspectUntil: 0 }
    lane.suspectUntil = performance.now() + suspectMs
    lanes.set(name, lane)
  }

  /** One of another route, while the usual thread is busy for long. */
  function overtake(): void {
    if (!usual.isBusy()) return
    const [name, job] = second.isBusy() ? [] : (take((_, lane) => lane !== busyLane) ?? [])
    if (name !== undefined && job !== undefined) runApart(name, job)
    impatient = setTimeout(overtake, patienceMs).unref()
  }

  return {
    add: (name, job) => {
      const lane = lanes.get(name) ?? { waiting: [], suspectUntil: 0 }
      if (lane.waiting.length >= maxWaiting || waitingInAll >= maxWaitingInAll) return false
      lanes.set(name, lane)
      lane.waiting.push(job)
      waitingInAll++
      schedule()
      return true
    },
    close: async () => {
      clearTimeout(impatient)
      clearTimeout(idle)
      const waiting = [...lanes.values()].flatMap(lane => lane.waiting.splice(0))
      lanes.clear()
      waitingInAll = 0
      for (const job of waiting) job.done({ error: 'the gateway stops' }, false)
      await Promise.all([usual.close(), second.close()])
      clearTimeout(impatient)
      clearTimeout(idle)
    }
  }
}
