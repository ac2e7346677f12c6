/** Requests that somebody may ask about: in a stream of Redis, or while it is away in memory. */
import type { Cluster, Redis } from 'ioredis'
import { type FullRequestJson, fullRequestJson, isRemarkable } from './request-json.ts'
import type { Trail } from './trail.ts'

/** `user`: name or id. `status`: `404`, `4xx` or `failed`. `last`: the newest so many. */
type RequestQuery = {
  readonly [member in 'id' | 'user' | 'status' | 'route']?: string | undefined
} & { readonly last?: number }

export type KeptRequest = FullRequestJson & { readonly replica: string }

export type FoundRequests = Awaited<ReturnType<Failures['find']>>

interface Options {
  readonly replica: string
  readonly redis?: Redis | Cluster | undefined
  readonly prefix: string
  readonly seal: {
    readonly close: (key: string, value: unknown) => string
    readonly open: (key: string, sealed: string) => unknown
  }
  readonly onDropped: () => void
}

/** Of all replicas together; a stream holds a few more. */
const maxKept = 2000
/** Of one process in a second: a flood must not push out everything else. */
const maxPerSecond = 100
const defaultLast = 50
const everyMs = 250
/** A call that still runs, such as a sign-out at a back-end, is waited for so long. */
const settleMs = 5000
const pageSize = 200

/** They change nothing (RFC 9110 §9.2.1). */
export const safeMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE'])

const away = 'Redis cannot be asked: only requests of this replica since then are shown'

type Entry = [id: string, members: string[]]

export class Failures {
  readonly #options: Options
  readonly #key: string
  readonly #timer: NodeJS.Timeout | undefined
  /** Oldest first: all that are not in Redis. */
  #waiting: Trail[] = []
  #second = 0
  #inSecond = 0
  #writing: Promise<void> | undefined

  constructor(options: Options) {
    this.#options = options
    this.#key = `${options.prefix}failures`
    if (options.redis === undefined) return
    this.#timer = setInterval(() => void this.#write(), everyMs).unref()
  }

  add(trail: Trail): void {
    if (safeMethods.has(trail.method) && !isRemarkable(trail) && trail.status !== 101) return
    const second = Math.floor(performance.now() / 1000)
    if (second !== this.#second) this.#inSecond = 0
    this.#second = second
    if (++this.#inSecond > maxPerSecond) return this.#options.onDropped()
    this.#waiting.push(trail)
    if (this.#waiting.length > maxKept) this.#waiting.shift()
  }

  async find({ last = defaultLast, ...query }: RequestQuery) {
    const matches = (request: KeptRequest) => isWanted(request, query)
    await this.#write()
    const own = this.#waiting.map(trail => this.#json(trail)).filter(matches)
    const stored = await this.#read(matches, last + 1).catch(() => undefined)
    const requests = [...own, ...(stored?.requests ?? [])].toSorted(
      (a, b) => Date.parse(b.at) - Date.parse(a.at)
    )
    const oldest = stored?.oldest ?? this.#waiting[0]?.at
    return {
      requests: requests.slice(0, last),
      hasMore: requests.length > last,
      oldestAt: oldest === undefined ? undefined : new Date(oldest).toISOString(),
      /** Why those of other replicas are missing. */
      problem: stored === undefined ? away : undefined
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#writing
    await this.#write(0)
  }

  #json(trail: Trail): KeptRequest {
    return { ...fullRequestJson(trail), replica: this.#options.replica }
  }

  /** Requests whose calls still run stay for `waitMs`. */
  #write(waitMs = settleMs): Promise<void> {
    return (this.#writing ??= this.#writeSettled(waitMs).finally(() => (this.#writing = undefined)))
  }

  async #writeSettled(waitMs: number): Promise<void> {
    const { redis, seal } = this.#options
    if (redis === undefined) return
    for (const trail of this.#waiting) {
      const waitedMs = performance.now() - trail.startedAt - trail.ms
      const isCalling = trail.attempts?.some(({ ms }) => ms === undefined) === true
      if (isCalling && waitedMs < waitMs) continue
      const sealed = seal.close(this.#key, this.#json(trail))
      try {
        await redis.xadd(this.#key, 'MAXLEN', '~', maxKept, '*', 'r', sealed)
      } catch {
        // Redis is away, which its client logs: they wait.
        return
      }
      this.#waiting = this.#waiting.filter(each => each !== trail)
    }
  }

  /** @returns newest first, at most `count`, and when the oldest of all was written */
  async #read(matches: (request: KeptRequest) => boolean, count: number) {
    const { redis, seal } = this.#options
    const requests: KeptRequest[] = []
    if (redis === undefined) return { requests, oldest: undefined }
    const [first] = (await redis.xrange(this.#key, '-', '+', 'COUNT', 1)) as Entry[]
    let page: Entry[] = []
    do {
      const [lastId] = page.at(-1) ?? []
      const end = lastId === undefined ? '+' : `(${lastId}`
      page = (await redis.xrevrange(this.#key, end, '-', 'COUNT', pageSize)) as Entry[]
      // Nothing of what was sealed with another secret.
      const opened = page.flatMap(([, members]) => seal.open(this.#key, members[1] ?? '') ?? [])
      requests.push(...(opened as KeptRequest[]).filter(matches))
    } while (page.length === pageSize && requests.length < count)
    return { requests: requests.slice(0, count), oldest: first && Number(first[0].split('-')[0]) }
  }
}

function isWanted(request: KeptRequest, { id, user, status, route }: RequestQuery): boolean {
  return (
    (id === undefined || request.requestId === id) &&
    (user === undefined || request.user === user || request.userId === user) &&
    (route === undefined || request.route === route) &&
    (status === undefined || hasStatus(request, status))
  )
}

function hasStatus({ status, errorStatus, code }: KeptRequest, wanted: string): boolean {
  if (wanted === 'failed') return status >= 400 || code !== undefined
  return String(errorStatus ?? status).startsWith(wanted.replace('xx', ''))
}
