/** The session store in Redis: a string for each session, and a sorted set for each user. */
import type { Cluster, Redis } from 'ioredis'
import { blocks, blocksOf } from './blocked-users.ts'
import { Journal } from './journal.ts'
import { noEpoch, scripts } from './redis-scripts.ts'
import { type Follower, type Opening, type SessionStore, StoreUnavailable } from './store.ts'
import type { Tracking } from './tracking.ts'
import {
  digestIn,
  type EndReason,
  isKey,
  keptReasons,
  type SignedIn,
  userDigest,
  type UserId
} from './types.ts'

interface Options {
  readonly redis: Redis | Cluster
  readonly prefix: string
  readonly tracking: Pick<Tracking, 'follow' | 'isFollowed'>
}

function createNames(prefix: string) {
  // Changes of what begins so are announced, the epoch among them.
  const record = (key: string) => `${prefix}s:${key}`
  return {
    record,
    epoch: record('epoch'),
    /** @param key of a session, or the digest of its user */
    list: (key: string) => `${prefix}u:${digestIn(key)}`,
    users: `${prefix}users`,
    keys: `${prefix}keys`,
    listFor: (user?: SignedIn) => prefix + (user && isKey(user) ? 'keys' : 'users'),
    set: (name: string) => `${prefix}set:${name}`
  }
}

type Script = keyof typeof scripts
type Arguments = ReadonlyArray<string | number>
type Call = readonly [script: Script, keys: readonly string[], args: Arguments]
type Commands = Record<Script, (...args: Arguments) => Promise<unknown>>

const unbounded = 1_000_000

/** A set that ends within this time, as a lock does, is not written anew to a new primary. */
const shortMs = 15_000

/** Redis looks through so many in a millisecond, and other commands wait. */
const scannedAtOnce = 2000

/** A process follows to another server so much later than this one, at most. */
const othersFollowMs = 2000

export class RedisStore implements SessionStore {
  readonly #redis: Redis | Cluster
  readonly #names: ReturnType<typeof createNames>
  readonly #tracking: Options['tracking']
  readonly #journal = new Journal()
  /** Until then other processes may have to write again what they opened. */
  #othersFollowUntil = -Infinity

  constructor({ redis, prefix, tracking }: Options) {
    for (const [name, lua] of Object.entries(scripts)) redis.defineCommand(name, { lua })
    this.#redis = redis
    this.#names = createNames(prefix)
    this.#tracking = tracking
  }

  async #run(...[script, keys, args]: Call): Promise<unknown> {
    const commands = this.#redis as unknown as Commands
    return await orUnavailable(commands[script](keys.length, ...keys, ...args))
  }

  async #runAgain(...[script, keys, args]: Call): Promise<void> {
    await this.#redis.eval(scripts[script], keys.length, ...keys, ...args)
  }

  /** Writes again what a new primary may not have received; to be called before it is asked. */
  replay(isOther: boolean): void {
    if (isOther) this.#othersFollowUntil = performance.now() + othersFollowMs
    this.#journal.replay(isOther)
  }

  async open(opening: Opening) {
    const { key, user, former, stored } = opening
    const listed = await this.keysOf(user)
    const reply = await this.#run(...this.#opening(opening, listed))
    if (reply === 'full' || reply === 'blocked') return reply
    const [epoch, ...gone] = reply as [number, ...string[]]
    if (typeof epoch !== 'number') throw nonsense()
    const ended = pairsOf(gone)
    const openAgain = async (ageMs: number) => {
      const left = { ...stored, absoluteMs: stored.absoluteMs - ageMs }
      const again = { ...opening, stored: left, max: unbounded, former: undefined }
      await this.#runAgain(...this.#opening(again, [], epoch))
    }
    this.#journal.add(key, openAgain, true)
    for (const each of ended.keys()) this.#noteEnd(each, 'replaced')
    // Opened a moment ago: the script could not name their records.
    const unnamed = [...ended.keys()].filter(each => !listed.includes(each))
    for (const each of unnamed) {
      const found = await this.read(each)
      ended.set(each, found && 'sealed' in found ? found.sealed : '')
    }
    if (unnamed.length > 0) await this.#run(...this.#ending(user, unnamed, 'replaced', true))
    if (former === undefined || digestIn(former.key) === digestIn(key)) return ended
    return new Map([...(await this.end(former.user, [former.key], 'replaced')), ...ended])
  }

  #opening(opening: Opening, listed: readonly string[], epoch?: number): Call {
    const { key, stored, user, max, refuse, former } = opening
    const { sealed, idleMs, absoluteMs } = stored
    const { epoch: current, list, record, listFor, set } = this.#names
    const keys = [current, list(key), record(key), listFor(user), set(blocks)]
    const times = [Math.ceil(idleMs), Math.ceil(absoluteMs)]
    const args = [key, sealed, ...times, max, Number(refuse), memberOf(user), former?.key ?? '']
    return [
      'sessionOpen',
      [...keys, ...listed.map(record)],
      [...args, ...blocksOf(user), isKey(user) ? noEpoch : (epoch ?? ''), ...listed]
    ]
  }

  async read(key: string) {
    const { epoch, list, record } = this.#names
    const reply = await this.#run('sessionRead', [epoch, list(key), record(key)], [key])
    if (reply === null && performance.now() < this.#othersFollowUntil) {
      // Who signed in just before a failover must not be told that they did not.
      throw new StoreUnavailable(new Error('Another server of Redis: the session may still come'))
    }
    if (reply === null) return undefined
    const [sealed, idleMs, absoluteMs] = Array.isArray(reply) ? (reply as unknown[]) : []
    if (typeof sealed !== 'string') throw nonsense()
    if (sealed.startsWith('!')) {
      // One that a later version wrote says that somebody ended it.
      return { ended: keptReasons.find(each => sealed === `!${each}`) ?? 'revoked' }
    }
    if (typeof idleMs !== 'number' || typeof absoluteMs !== 'number') throw nonsense()
    return { sealed, idleMs, absoluteMs }
  }

  async touch(key: string, idleMs: number, user: SignedIn): Promise<boolean> {
    const { epoch, list, listFor, record } = this.#names
    const keys = [epoch, list(key), listFor(user), record(key)]
    const args = [key, Math.ceil(idleMs), memberOf(user)]
    return (await this.#run('sessionTouch', keys, args)) === 1
  }

  async replace(key: string, from: string, to: string): Promise<boolean> {
    return (await this.#run('sessionReplace', [this.#names.record(key)], [from, to])) === 1
  }

  async end(user: SignedIn | undefined, keys: readonly string[], reason: EndReason) {
    if (keys.length === 0) return new Map<string, string>()
    for (const key of keys) this.#noteEnd(key, reason)
    return pairsOf(listOf(await this.#run(...this.#ending(user, keys, reason, false))))
  }

  #noteEnd(key: string, reason: EndReason): void {
    const call = this.#ending(undefined, [key], reason, true)
    this.#journal.add(key, async () => await this.#runAgain(...call))
  }

  /** @param isForced whether the reason is written though the session is not alive */
  #ending(
    user: SignedIn | undefined,
    keys: readonly string[],
    reason: EndReason,
    isForced: boolean
  ): Call {
    const { epoch, list, listFor, record } = this.#names
    const member = user === undefined ? '' : memberOf(user)
    return [
      'sessionEnd',
      [epoch, list(keys[0] ?? ''), listFor(user), ...keys.map(record)],
      [reason, member, Number(isForced), ...keys]
    ]
  }

  async keysOf(user: UserId): Promise<readonly string[]> {
    const list = this.#names.list(userDigest(user))
    return listOf(await orUnavailable(this.#redis.zrange(list, '0', '-1')))
  }

  async endAll(): Promise<void> {
    const keys = [this.#names.epoch, this.#names.users]
    const epoch = Number(await this.#run('sessionEndAll', keys, [0, 1]))
    this.#journal.add('epoch', async () => await this.#runAgain('sessionEndAll', keys, [epoch, 0]))
  }

  async signedIn(max: number, of: 'users' | 'keys' = 'users') {
    const reply = await this.#run('sessionUsers', [this.#names[of]], [max])
    if (!Array.isArray(reply) || typeof reply[0] !== 'number') throw nonsense()
    return { total: reply[0], users: listOf(reply[1]).map(readMember) }
  }

  async *scan(text: string) {
    // What has ended must not be found.
    await this.signedIn(0)
    const match = ['MATCH', patternOf(text), 'COUNT', scannedAtOnce] as const
    let cursor = '0'
    do {
      const page = this.#redis.zscan(this.#names.users, cursor, ...match)
      const [next, found] = await orUnavailable(page)
      yield Array.from(numbersOf(found).keys(), readMember)
      cursor = next
    } while (cursor !== '0')
  }

  async addTo(set: string, member: string, ttlMs: number) {
    const key = this.#names.set(set)
    const callFor = (ms: number): Call => ['sessionSet', [key], [member, Math.ceil(ms)]]
    const reply = await this.#run(...callFor(ttlMs))
    if (ttlMs <= shortMs) return numbersOf(reply)
    this.#journal.add(`${key} ${member}`, async ageMs => {
      if (ttlMs > ageMs) await this.#runAgain(...callFor(ttlMs - ageMs))
    })
    return numbersOf(reply)
  }

  async removeFrom(set: string, member: string): Promise<boolean> {
    const key = this.#names.set(set)
    const remove = async () => await this.#redis.zrem(key, member)
    const removed = await orUnavailable(remove())
    this.#journal.add(`${key} ${member}`, remove)
    return removed === 1
  }

  async membersOf(set: string) {
    return numbersOf(await this.#run('sessionSet', [this.#names.set(set)], []))
  }

  follow(follower: Follower): void {
    this.#tracking.follow(follower, this.#names.record(''))
  }

  isFollowed(): boolean {
    return this.#tracking.isFollowed()
  }
}

function memberOf({ source, id, username }: SignedIn): string {
  return JSON.stringify([source, id, username])
}

function readMember(member: string): SignedIn {
  const [source, id, username] = JSON.parse(member) as [string, string, string]
  return { source, id, username }
}

/** Finds the longest part in either case: of letters with two, globs of Redis know ASCII alone. */
function patternOf(text: string): string {
  const parts = text.match(/[\w.@\p{Lo}-]+/gu) ?? ['']
  const [longest = ''] = parts.toSorted((a, b) => b.length - a.length)
  const signs = Array.from(longest, sign => {
    const [lower, upper] = [sign.toLowerCase(), sign.toUpperCase()]
    return lower === upper ? sign : `[${lower}${upper}]`
  })
  return `*","*${signs.join('')}*`
}

async function orUnavailable<T>(command: Promise<T>): Promise<T> {
  try {
    return await command
  } catch (error) {
    // ioredis speaks of its own queue then.
    const isUnconnected = (error as Error).message.startsWith("Stream isn't writeable")
    throw new StoreUnavailable(isUnconnected ? new Error('no connection to Redis') : error)
  }
}

/** A reply of the wrong form: the connection's replies are probably out of step. */
function nonsense(): StoreUnavailable {
  return new StoreUnavailable(new Error('Redis gave an answer that makes no sense'))
}

/** By member what follows it in the reply. */
function pairsOf(list: readonly string[]): Map<string, string> {
  return new Map(
    list.flatMap((member, at) => (at % 2 === 0 ? [[member, list[at + 1] ?? ''] as const] : []))
  )
}

function numbersOf(reply: unknown): Map<string, number> {
  const pairs = pairsOf(listOf(reply))
  return new Map(Array.from(pairs, ([member, number]) => [member, Number(number)] as const))
}

function listOf(reply: unknown): string[] {
  if (Array.isArray(reply) && reply.every(each => typeof each === 'string')) return reply
  throw nonsense()
}
