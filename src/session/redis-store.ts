/**
 * The session store in Redis: one string for each session, and one sorted set for each user. All
 * keys begin with a prefix that is one hash tag, so that a Cluster has them in one slot.
 */
import type { Cluster, Redis } from 'ioredis'
import { type Block, type BlockedName, blockOf, blocksOf, readBlock } from './blocked-users.ts'
import { Journal } from './journal.ts'
import { scripts } from './redis-scripts.ts'
import {
  endReasonOf,
  type Follower,
  type Opening,
  type SessionStore,
  type Stored,
  StoreUnavailable
} from './store.ts'
import {
  type Ended,
  type EndReason,
  type SignedIn,
  splitKey,
  userDigest,
  type UserId
} from './types.ts'

interface Options {
  readonly redis: Redis | Cluster
  /** The beginning of every key. */
  readonly prefix: string
  /** Brings the announcements of changes of records; without it there are none. */
  readonly tracking?: Pick<SessionStore, 'isFollowed'> & {
    readonly follow: (follower: Follower, records: string) => void
  }
}

type Script = keyof typeof scripts
type Arguments = ReadonlyArray<string | number>
type Call = [keys: readonly string[], args: Arguments]
type Commands = Record<Script, (...args: Arguments) => Promise<unknown>>

/** More than any user has: what the journal opens again takes nobody's place. */
const unbounded = 1_000_000

/** Names a user in the list of those who are signed in. */
const memberOf = ({ source, id, username }: SignedIn) => JSON.stringify([source, id, username])

/** The store does not own the client: whoever made it closes it. */
export class RedisStore implements SessionStore {
  readonly #redis: Redis | Cluster
  readonly #names: Names
  readonly #tracking: Options['tracking']
  readonly #journal = new Journal()

  constructor({ redis, prefix, tracking }: Options) {
    for (const [name, lua] of Object.entries(scripts)) redis.defineCommand(name, { lua })
    this.#redis = redis
    this.#names = createNames(prefix)
    this.#tracking = tracking
  }

  async #run(script: Script, [keys, args]: Call): Promise<unknown> {
    const commands = this.#redis as unknown as Commands
    return await orUnavailable(commands[script](keys.length, ...keys, ...args))
  }

  /** As a whole script: one that Redis has to load first would run after what is sent next. */
  async #runAgain(script: Script, [keys, args]: Call): Promise<void> {
    await this.#redis.eval(scripts[script], keys.length, ...keys, ...args)
  }

  /** Writes again what a new primary may not have received; to be called before it is asked. */
  replay(isOther: boolean): void {
    this.#journal.replay(isOther)
  }

  async open(opening: Opening): Promise<readonly string[] | 'full' | 'blocked'> {
    const { key, user, former, stored } = opening
    const listed = await this.keysOf(user)
    const reply = await this.#run('sessionOpen', openingOf(this.#names, opening, { listed }))
    if (reply === 'full' || reply === 'blocked') return reply
    const [epoch, formerId, ...ids] = reply as [number, ...string[]]
    if (typeof epoch !== 'number' || typeof formerId !== 'string') throw nonsense()
    const openAgain = async (ageMs: number) => {
      const absoluteMs = Math.ceil(stored.absoluteMs - ageMs)
      if (absoluteMs <= 0) return
      const again = { ...opening, stored: { ...stored, absoluteMs }, max: unbounded, former: '' }
      await this.#runAgain('sessionOpen', openingOf(this.#names, again, { epoch }))
    }
    this.#journal.add(key, openAgain, true)
    const evicted = listOf(ids).map(id => userDigest(user) + id)
    const ended = former === undefined || formerId === '' ? evicted : [former, ...evicted]
    for (const each of ended) this.#noteEnd(each, 'replaced')
    // Opened a moment ago: the script could not name their records.
    const unnamed = evicted.filter(each => !listed.includes(each))
    await this.#end(user, unnamed, { reason: 'replaced', isForced: true })
    return ended
  }

  async read(key: string): Promise<Stored | Ended | undefined> {
    const [user, id] = splitKey(key)
    const { epoch, list, record } = this.#names
    return storedOf(await this.#run('sessionRead', [[epoch, list(user), record(key)], [id]]))
  }

  async touch(key: string, idleMs: number, user: SignedIn): Promise<boolean> {
    const [digest, id] = splitKey(key)
    const { epoch, list, users, record } = this.#names
    const keys = [epoch, list(digest), users, record(key)]
    return (await this.#run('sessionTouch', [keys, [id, Math.ceil(idleMs), memberOf(user)]])) === 1
  }

  async replace(key: string, from: string, to: string): Promise<boolean> {
    return (await this.#run('sessionReplace', [[this.#names.record(key)], [from, to]])) === 1
  }

  async end(
    user: SignedIn,
    keys: readonly string[],
    reason: EndReason
  ): Promise<readonly string[]> {
    return await this.#end(user, keys, { reason, isForced: false })
  }

  async #end(
    user: SignedIn,
    keys: readonly string[],
    { reason, isForced }: Omit<Ending, 'member'>
  ): Promise<readonly string[]> {
    if (keys.length === 0) return []
    for (const key of keys) this.#noteEnd(key, reason)
    const ending = { reason, isForced, member: memberOf(user) }
    const alive = listOf(await this.#run('sessionEnd', endingOf(this.#names, keys, ending)))
    return alive.map(id => userDigest(user) + id)
  }

  async endUnknown(key: string): Promise<void> {
    await this.#run('sessionEnd', this.#noteEnd(key, 'revoked'))
  }

  /** @returns what is written again */
  #noteEnd(key: string, reason: EndReason): Call {
    const ending = { reason, isForced: true, member: '' }
    const call = endingOf(this.#names, [key], ending)
    this.#journal.add(key, async () => await this.#runAgain('sessionEnd', call))
    return call
  }

  async keysOf(user: UserId): Promise<readonly string[]> {
    const digest = userDigest(user)
    const ids = await orUnavailable(this.#redis.zrange(this.#names.list(digest), '0', '-1'))
    return listOf(ids).map(id => digest + id)
  }

  async endAll(): Promise<void> {
    const keys = [this.#names.epoch, this.#names.users]
    const epoch = Number(await this.#run('sessionEndAll', [keys, [0, 1]]))
    const call: Call = [keys, [epoch, 0]]
    this.#journal.add('epoch', async () => await this.#runAgain('sessionEndAll', call))
  }

  async signedIn(max: number): ReturnType<SessionStore['signedIn']> {
    const reply = await this.#run('sessionUsers', [[this.#names.users], [max]])
    if (!Array.isArray(reply) || typeof reply[0] !== 'number') throw nonsense()
    return { total: reply[0], users: listOf(reply[1]).flatMap(readMember) }
  }

  async block(name: BlockedName, forMs: number | undefined): Promise<void> {
    const block = blockOf(name)
    const callFor = (ms: number | ''): Call => [[this.#names.blocks], [block, ms]]
    await this.#run('sessionBlock', callFor(forMs ?? ''))
    this.#journal.add(block, async ageMs => {
      const leftMs = forMs === undefined ? '' : Math.ceil(forMs - ageMs)
      if (leftMs === '' || leftMs > 0) await this.#runAgain('sessionBlock', callFor(leftMs))
    })
  }

  async unblock(name: BlockedName): Promise<boolean> {
    const block = blockOf(name)
    const lift = async () => await this.#redis.zrem(this.#names.blocks, block)
    const lifted = await orUnavailable(lift())
    this.#journal.add(block, lift)
    return lifted === 1
  }

  async blocked(): Promise<Block[]> {
    const found = listOf(await this.#run('sessionBlocked', [[this.#names.blocks], []]))
    return found.flatMap((block, index) => {
      const left = found[index + 1]
      return index % 2 === 0 ? readBlock(block, left === 'inf' ? undefined : Number(left)) : []
    })
  }

  async lock(name: string, owner: string, ttlMs: number): Promise<boolean> {
    const taken = this.#redis.set(this.#names.lock(name), owner, 'PX', ttlMs, 'NX')
    return (await orUnavailable(taken)) === 'OK'
  }

  async unlock(name: string, owner: string): Promise<void> {
    await this.#run('sessionUnlock', [[this.#names.lock(name)], [owner]])
  }

  follow(follower: Follower): void {
    this.#tracking?.follow(follower, this.#names.record(''))
  }

  isFollowed(): boolean {
    return this.#tracking?.isFollowed() ?? false
  }

  close(): void {
    // The connections are closed by their owner.
  }
}

type Names = ReturnType<typeof createNames>

function createNames(prefix: string) {
  // Changes of what begins so are announced, the epoch among them.
  const record = (key: string) => `${prefix}s:${key}`
  return {
    record,
    epoch: record('epoch'),
    list: (user: string) => `${prefix}u:${user}`,
    users: `${prefix}users`,
    blocks: `${prefix}blocked`,
    lock: (name: string) => `${prefix}lock:${name}`
  }
}

interface Circumstances {
  /** The keys of the user's sessions. */
  readonly listed?: readonly string[]
  /** Of an opening that is repeated. */
  readonly epoch?: number
}

function openingOf(names: Names, opening: Opening, { listed = [], epoch }: Circumstances): Call {
  const { key, stored, user, max, refuse, former = '' } = opening
  const [digest, id] = splitKey(key)
  const [formerUser, formerId] = splitKey(former)
  const { sealed, idleMs, absoluteMs } = stored
  const keys = [names.epoch, names.list(digest), names.record(key), names.users]
  const args = [id, sealed, idleMs, absoluteMs, max, Number(refuse), memberOf(user), formerId]
  return [
    [
      ...keys,
      names.record(former),
      names.list(formerUser),
      names.blocks,
      ...listed.map(names.record)
    ],
    [...args, ...blocksOf(user), epoch ?? '', ...listed.map(each => splitKey(each)[1])]
  ]
}

interface Ending {
  readonly reason: EndReason
  readonly member: string
  /** Whether the reason is written though the session is not alive. */
  readonly isForced: boolean
}

/** @param keys sessions of one user */
function endingOf(
  names: Names,
  keys: readonly string[],
  { reason, member, isForced }: Ending
): Call {
  const [user] = splitKey(keys[0] ?? '')
  const ids = keys.map(key => splitKey(key)[1])
  return [
    [names.epoch, names.list(user), names.users, ...keys.map(names.record)],
    [reason, member, Number(isForced), ...ids]
  ]
}

/** A member that we did not write names nobody. */
function readMember(member: string): SignedIn[] {
  try {
    const [source, id, username] = JSON.parse(member) as unknown[]
    const texts = [source, id, username]
    if (!texts.every(text => typeof text === 'string')) return []
    return [{ source, id, username } as SignedIn]
  } catch {
    return []
  }
}

function storedOf(reply: unknown): Stored | Ended | undefined {
  if (reply === null) return undefined
  if (!Array.isArray(reply)) throw nonsense()
  const [sealed, idleMs, absoluteMs] = reply as unknown[]
  if (typeof sealed !== 'string') throw nonsense()
  if (sealed.startsWith('!')) return { ended: endReasonOf(sealed.slice(1)) }
  if (typeof idleMs !== 'number' || typeof absoluteMs !== 'number') throw nonsense()
  return { sealed, idleMs, absoluteMs }
}

async function orUnavailable<T>(command: Promise<T>): Promise<T> {
  try {
    return await command
  } catch (error) {
    throw new StoreUnavailable(error)
  }
}

/** A reply of the wrong form: the connection's replies are probably out of step. */
function nonsense(): StoreUnavailable {
  return new StoreUnavailable(new Error('Redis gave an answer that makes no sense'))
}

function listOf(reply: unknown): string[] {
  if (Array.isArray(reply) && reply.every(each => typeof each === 'string')) return reply
  throw nonsense()
}
