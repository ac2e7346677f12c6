/** The queue for an upstream's connections: in order, bounded in number, bytes and time. */
import { GatewayError } from '../errors.ts'

export interface QueueBounds {
  readonly connections: number
  /** Requests that may wait. */
  readonly queue: number
  /** Bytes of their bodies. */
  readonly queueBytes: number
  readonly queueTimeout: number
}

/** A request that wants a connection. */
export interface Applicant {
  /** Bytes of its body, if that is in memory. */
  readonly bytes: number
  /** Whether its body is streamed from a client while it has the connection. */
  readonly isUpload: boolean
  /** Called when it gets a connection, which it keeps until `release()`. */
  readonly start: () => void
  readonly refuse: (error: GatewayError) => void
}

/**
 * A waiting request: a node of a linked list, so that removing it costs the same at any position.
 */
class Waiting {
  readonly applicant: Applicant
  readonly order: number
  readonly giveUpAt: number
  list: List | undefined
  before: Waiting | undefined
  behind: Waiting | undefined

  constructor(applicant: Applicant, order: number, giveUpAt: number) {
    this.applicant = applicant
    this.order = order
    this.giveUpAt = giveUpAt
  }
}

class List {
  first: Waiting | undefined
  last: Waiting | undefined

  add(waiting: Waiting): void {
    waiting.list = this
    waiting.before = this.last
    if (this.last === undefined) this.first = waiting
    else this.last.behind = waiting
    this.last = waiting
  }

  remove(waiting: Waiting): void {
    const { before, behind } = waiting
    if (before === undefined) this.first = behind
    else before.behind = behind
    if (behind === undefined) this.last = before
    else behind.before = before
    waiting.list = waiting.before = waiting.behind = undefined
  }
}

/**
 * The connections of one upstream and their queue. Uploads of slow clients may take at most half of
 * the connections.
 */
export class ConnectionQueue {
  readonly #bounds: QueueBounds
  readonly #maxUploads: number
  /** A list of their own: an upload that may not start yet does not block other requests. */
  readonly #uploads = new List()
  readonly #others = new List()
  #running = 0
  #runningUploads = 0
  #isStarting = false
  #waiting = 0
  #waitingBytes = 0
  #order = 0
  #timer: NodeJS.Timeout | undefined

  constructor(bounds: QueueBounds) {
    this.#bounds = bounds
    this.#maxUploads = Math.max(1, Math.floor(bounds.connections / 2))
  }

  /** Requests that have a connection. */
  get running(): number {
    return this.#running
  }

  get waiting(): number {
    return this.#waiting
  }

  get waitingBytes(): number {
    return this.#waitingBytes
  }

  /** Takes a free connection. @returns whether there was one */
  tryTake(isUpload: boolean): boolean {
    if (this.#running >= this.#bounds.connections) return false
    if (isUpload && this.#runningUploads >= this.#maxUploads) return false
    this.#take(isUpload)
    return true
  }

  /** a function that removes the request from the queue */
  wait(applicant: Applicant): () => void {
    const { queue, queueBytes, queueTimeout } = this.#bounds
    if (this.#waiting >= queue) throw overloaded('too many requests wait for the upstream')
    if (this.#waitingBytes + applicant.bytes > queueBytes) {
      throw overloaded('the bodies of waiting requests are too large')
    }
    const waiting = new Waiting(applicant, this.#order++, performance.now() + queueTimeout)
    const list = applicant.isUpload ? this.#uploads : this.#others
    list.add(waiting)
    this.#waiting++
    this.#waitingBytes += applicant.bytes
    this.#timer ??= setTimeout(() => this.#expire(), queueTimeout).unref()
    return () => this.#remove(waiting)
  }

  /** A connection is free again. */
  release(isUpload: boolean): void {
    this.#running--
    if (isUpload) this.#runningUploads--
    this.#startNext()
  }

  /** Refuses all waiting requests. */
  close(error: GatewayError): void {
    for (const list of [this.#uploads, this.#others]) {
      while (list.first !== undefined) this.#refuse(list.first, error)
    }
  }

  #take(isUpload: boolean): void {
    this.#running++
    if (isUpload) this.#runningUploads++
  }

  #startNext(): void {
    // A request that fails at once releases its connection within start(): the running loop
    // continues.
    if (this.#isStarting) return
    this.#isStarting = true
    try {
      this.#startAll()
    } finally {
      this.#isStarting = false
    }
  }

  #startAll(): void {
    while (this.#running < this.#bounds.connections) {
      const upload = this.#runningUploads < this.#maxUploads ? this.#uploads.first : undefined
      const next = earlierOf(upload, this.#others.first)
      if (next === undefined) return
      this.#remove(next)
      this.#take(next.applicant.isUpload)
      next.applicant.start()
    }
  }

  #remove(waiting: Waiting): void {
    if (waiting.list === undefined) return
    waiting.list.remove(waiting)
    this.#waiting--
    this.#waitingBytes -= waiting.applicant.bytes
    if (this.#waiting > 0) return
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #refuse(waiting: Waiting, error: GatewayError): void {
    this.#remove(waiting)
    waiting.applicant.refuse(error)
  }

  /** All wait equally long, so the first of a list expires first. */
  #expire(): void {
    this.#timer = undefined
    const now = performance.now()
    let nextAt = Infinity
    for (const list of [this.#uploads, this.#others]) {
      while (list.first !== undefined && list.first.giveUpAt <= now) {
        this.#refuse(list.first, overloaded('no connection to the upstream was free in time'))
      }
      nextAt = Math.min(nextAt, list.first?.giveUpAt ?? Infinity)
    }
    if (nextAt === Infinity) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#expire(), Math.ceil(nextAt - now)).unref()
  }
}

function earlierOf(first: Waiting | undefined, second: Waiting | undefined): Waiting | undefined {
  if (first === undefined) return second
  return second === undefined || first.order < second.order ? first : second
}

function overloaded(reason: string): GatewayError {
  return new GatewayError('overloaded', { retryAfter: 1, cause: new Error(reason) })
}
