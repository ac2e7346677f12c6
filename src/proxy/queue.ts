/**
 * Requests that wait for a connection of an upstream: bounded in count, bytes and time; in order
 * within a user, and by turns between users, so that one user's burst delays nobody else.
 */
import { GatewayError } from '../errors.ts'
import { identityKey, type VouchedUser } from '../session/identity-key.ts'
import { LinkedList, type Link } from './linked-list.ts'

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
  /** Requests of one user take turns with those of others; undefined: it is alone. */
  readonly user: string | undefined
  /** Bytes of its body, if that is in memory. */
  readonly bytes: number
  /** Whether its body is streamed from a client while it has the connection. */
  readonly isUpload: boolean
  /** Called when it gets a connection, which it keeps until `release()`. */
  readonly start: () => void
  readonly refuse: (error: GatewayError) => void
}

/** A request that waits. */
interface Waiting {
  readonly applicant: Applicant
  readonly user: User
  readonly order: number
  readonly giveUpAt: number
  isGone: boolean
  inAll: Link<Waiting> | undefined
  inLine: Link<Waiting> | undefined
}

/** The waiting requests of one class, uploads or others, of one user. */
interface Line {
  readonly waiting: LinkedList<Waiting>
  /** The user's place among those with requests of this class; undefined without any. */
  turn: Link<Turn> | undefined
}

interface Turn {
  readonly user: User
  readonly order: number
}

interface User {
  readonly key: string | undefined
  /** How many of its requests wait. */
  count: number
  /** Its place among those of whom as many wait; undefined where none waits. */
  place: Link<User> | undefined
  readonly uploads: Line
  readonly others: Line
}

/**
 * The connections of one upstream and their queue. Uploads of slow clients may take at most half of
 * the connections. Nothing is kept of a request or user that has left.
 */
export class ConnectionQueue {
  readonly #bounds: QueueBounds
  readonly #onWaited: (ms: number) => void
  readonly #maxUploads: number
  /** Only those of whom a request waits. */
  readonly #users = new Map<string, User>()
  /** In the order of their arrival, which is the order in which they give up. */
  readonly #all = new LinkedList<Waiting>()
  /** Users by the number of their waiting requests, so that the one with the most is at hand. */
  readonly #byCount: Array<LinkedList<User> | undefined> = []
  #maxCount = 0
  /** Turns of their own: an upload that may not start yet does not block other requests. */
  readonly #uploadTurns = new LinkedList<Turn>()
  readonly #otherTurns = new LinkedList<Turn>()
  #running = 0
  #runningUploads = 0
  #isStarting = false
  #waiting = 0
  #waitingBytes = 0
  #order = 0
  #timer: NodeJS.Timeout | undefined

  /** @param onWaited called for each request that leaves the queue, whatever became of it */
  constructor(bounds: QueueBounds, onWaited: (ms: number) => void = () => {}) {
    this.#bounds = bounds
    this.#onWaited = onWaited
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

  /** Users of whom a request waits. */
  get waitingUsers(): number {
    return this.#users.size
  }

  /** Takes a free connection. @returns whether there was one */
  tryTake(isUpload: boolean): boolean {
    if (this.#running >= this.#bounds.connections) return false
    if (isUpload && this.#runningUploads >= this.#maxUploads) return false
    this.#take(isUpload)
    return true
  }

  /**
   * Waits for a connection. Where the queue is full of another's burst, its last request gives way.
   * @returns a function that removes the request from the queue
   * @throws GatewayError `overloaded` if too many requests, or too many bytes, wait already
   */
  wait(applicant: Applicant): () => void {
    const { queue, queueBytes, queueTimeout } = this.#bounds
    if (this.#waitingBytes + applicant.bytes > queueBytes) {
      throw overloaded('the bodies of waiting requests are too large', 'queueBytes')
    }
    const user = this.#userOf(applicant.user)
    if (this.#waiting >= queue) this.#makeRoom(user)
    const waiting: Waiting = {
      applicant,
      user,
      order: this.#order++,
      giveUpAt: performance.now() + queueTimeout,
      isGone: false,
      inAll: undefined,
      inLine: undefined
    }
    const line = applicant.isUpload ? user.uploads : user.others
    waiting.inAll = this.#all.add(waiting)
    waiting.inLine = line.waiting.add(waiting)
    line.turn ??= this.#turnsOf(applicant.isUpload).add({ user, order: waiting.order })
    this.#waiting++
    this.#waitingBytes += applicant.bytes
    this.#count(user, 1)
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
    for (let next = this.#all.first; next !== undefined; next = this.#all.first) {
      this.#refuse(next, error)
    }
  }

  #userOf(key: string | undefined): User {
    const existing = key === undefined ? undefined : this.#users.get(key)
    if (existing !== undefined) return existing
    const line = (): Line => ({ waiting: new LinkedList<Waiting>(), turn: undefined })
    return { key, count: 0, place: undefined, uploads: line(), others: line() }
  }

  #count(user: User, by: 1 | -1): void {
    const { key } = user
    if (user.place !== undefined) this.#byCount[user.count]?.remove(user.place)
    user.count += by
    user.place = undefined
    if (user.count > 0) {
      user.place = (this.#byCount[user.count] ??= new LinkedList<User>()).add(user)
      if (key !== undefined && user.count === 1) this.#users.set(key, user)
    } else if (key !== undefined) this.#users.delete(key)
    this.#maxCount = Math.max(this.#maxCount, user.count)
    if (this.#byCount[this.#maxCount]?.first === undefined && by < 0) this.#maxCount--
  }

  /**
   * Refuses the newest request of the user with the most, unless the newcomer would then have more.
   * @throws GatewayError `overloaded` where no other user has more
   */
  #makeRoom(newcomer: User): void {
    const error = overloaded('too many requests wait for the upstream', 'queue')
    const greedy = this.#byCount[this.#maxCount]?.first
    if (greedy === undefined || greedy.count < newcomer.count + 2) throw error
    const newest = laterOf(greedy.uploads.waiting.last, greedy.others.waiting.last)
    if (newest === undefined) throw error
    this.#refuse(newest, error)
  }

  #turnsOf(isUpload: boolean): LinkedList<Turn> {
    return isUpload ? this.#uploadTurns : this.#otherTurns
  }

  #take(isUpload: boolean): void {
    this.#running++
    if (isUpload) this.#runningUploads++
  }

  #startNext(): void {
    // One that fails at once releases its connection within start(): the running loop goes on.
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
      const next = this.#next()
      if (next === undefined) return
      this.#remove(next)
      this.#endTurn(next.user)
      this.#take(next.applicant.isUpload)
      next.applicant.start()
    }
  }

  /** Of the user whose turn it is: the request that has waited longest and may start. */
  #next(): Waiting | undefined {
    const mayUpload = this.#runningUploads < this.#maxUploads
    const upload = mayUpload ? this.#uploadTurns.first : undefined
    const user = earlierOf(upload, this.#otherTurns.first)?.user
    if (user === undefined) return undefined
    return earlierOf(mayUpload ? user.uploads.waiting.first : undefined, user.others.waiting.first)
  }

  /** The user comes after all others, in both classes. */
  #endTurn(user: User): void {
    const order = this.#order++
    for (const isUpload of [true, false]) {
      const line = isUpload ? user.uploads : user.others
      if (line.turn === undefined) continue
      const schedule = this.#turnsOf(isUpload)
      schedule.remove(line.turn)
      line.turn = schedule.add({ user, order })
    }
  }

  #remove(waiting: Waiting): void {
    const { user, inAll, inLine } = waiting
    if (waiting.isGone || inAll === undefined || inLine === undefined) return
    waiting.isGone = true
    this.#onWaited(performance.now() - waiting.giveUpAt + this.#bounds.queueTimeout)
    const { isUpload, bytes } = waiting.applicant
    const line = isUpload ? user.uploads : user.others
    this.#all.remove(inAll)
    line.waiting.remove(inLine)
    if (line.waiting.first === undefined && line.turn !== undefined) {
      this.#turnsOf(isUpload).remove(line.turn)
      line.turn = undefined
    }
    this.#count(user, -1)
    this.#waiting--
    this.#waitingBytes -= bytes
    if (this.#waiting > 0) return
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #refuse(waiting: Waiting, error: GatewayError): void {
    this.#remove(waiting)
    waiting.applicant.refuse(error)
  }

  /** All wait equally long, so the first is the next to give up. */
  #expire(): void {
    this.#timer = undefined
    const now = performance.now()
    let next = this.#all.first
    while (next !== undefined && next.giveUpAt <= now) {
      const reason = 'no connection to the upstream was free in time'
      this.#refuse(next, overloaded(reason, 'queueTimeout'))
      next = this.#all.first
    }
    if (next === undefined) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#expire(), Math.ceil(next.giveUpAt - now)).unref()
  }
}

/** The user of a request; on public routes the client's address. */
export function queueUserOf(session: VouchedUser | undefined, address: string): string {
  return session === undefined ? address : identityKey(session)
}

function earlierOf<T extends { readonly order: number }>(
  first: T | undefined,
  second: T | undefined
): T | undefined {
  if (first === undefined) return second
  return second === undefined || first.order < second.order ? first : second
}

function laterOf<T extends { readonly order: number }>(
  first: T | undefined,
  second: T | undefined
): T | undefined {
  return second !== undefined && earlierOf(first, second) === first ? second : (first ?? second)
}

/** @param limit the key of the upstream's config that refused */
function overloaded(reason: string, limit: string): GatewayError {
  return new GatewayError('overloaded', { retryAfter: 1, cause: new Error(reason), limit })
}
