/** What every session store promises; run once for each adapter. */
import type { Test } from 'tap'
import {
  lock,
  type Opening,
  type SessionStore,
  type Stored,
  tombstoneMs
} from '../../src/session/store.ts'
import { createSecretId, keyOf, type SignedIn } from '../../src/session/types.ts'
import { hour, minute } from '../support/sessions.ts'
import { until } from '../support/until.ts'

let users = 0
function someone(): SignedIn {
  const id = `u${++users}`
  return { source: 's', id, username: `name of ${id}` }
}

const lifeTime = { sealed: 'sealed ü\n💡', idleMs: minute, absoluteMs: hour }

/** @param pass lets so much time pass for the store */
export function sessionStoreContract(
  t: Test,
  store: SessionStore,
  pass: (ms: number) => Promise<void>
): void {
  const changed: string[] = []
  store.follow({ onChanged: key => changed.push(key), onReset: () => changed.push('all') })

  async function open(user: SignedIn, more: Partial<Opening & Stored> = {}) {
    const key = keyOf(createSecretId(user))
    const stored = { ...lifeTime, ...more }
    const gone = await store.open({ key, stored, user, max: 3, refuse: false, ...more })
    if (typeof gone === 'string') return { key, ended: gone, sealed: [] }
    return { key, ended: [...gone.keys()], sealed: [...gone.values()] }
  }
  const opened = async (user: SignedIn, more?: Partial<Opening & Stored>) =>
    (await open(user, more)).key
  const idleMs = async (key: string) => ((await store.read(key)) as Stored).idleMs
  const isAlive = async (key: string) => {
    const found = await store.read(key)
    return found !== undefined && 'sealed' in found && found.idleMs > 0 && found.absoluteMs > 0
  }
  const alive = async (keys: readonly string[]) => {
    const are = await Promise.all(keys.map(isAlive))
    return keys.filter((_, at) => are[at])
  }

  t.test('a session is read as it was written, with the time it has left', async t => {
    const key = await opened(someone())
    const found = (await store.read(key)) as Stored
    t.equal(found.sealed, lifeTime.sealed)
    t.ok(found.idleMs > minute - 10_000 && found.idleMs <= minute, 'idle')
    t.ok(found.absoluteMs > hour - 10_000 && found.absoluteMs <= hour, 'absolute')
    t.equal(await store.read(keyOf(createSecretId(someone()))), undefined, 'never opened')
  })

  t.test('use prolongs a session up to its absolute end, and revives none', async t => {
    const user = someone()
    const [used, idle] = [await opened(user), await opened(user)]
    await pass(40_000)
    t.equal(await store.touch(used, minute, user), true)
    await pass(40_000)
    t.same(await alive([used, idle]), [used])
    t.equal(await store.touch(idle, minute, user), false)
    t.equal(await isAlive(idle), false)
    t.equal(await store.touch(used, 2 * hour, user), true)
    await pass(hour)
    const { idleMs: left, absoluteMs } = (await store.read(used)) as Stored
    t.ok(left > 0 && absoluteMs <= 0, 'its reason is the absolute end')
    t.equal(await store.touch(used, minute, user), false)
  })

  t.test('a record is replaced by who knows it, and keeps its times', async t => {
    const user = someone()
    const key = await opened(user)
    await pass(10_000)
    const both = ['a', 'b'].map(async to => await store.replace(key, lifeTime.sealed, to))
    t.same((await Promise.all(both)).toSorted(), [false, true])
    const found = (await store.read(key)) as Stored
    t.match(found.sealed, /^[ab]$/)
    t.ok(found.idleMs <= minute - 10_000 && found.absoluteMs <= hour - 10_000)
    await store.end(user, [key], 'revoked')
    t.equal(await store.replace(key, found.sealed, 'late'), false)
  })

  t.test('an end tells who was alive, stays, and has its reason for ten minutes', async t => {
    const user = someone()
    const idle = await opened(user)
    await pass(minute)
    const [first, second, third] = [await opened(user), await opened(user), await opened(user)]
    const ended = await store.end(user, [idle, first, second], 'upstream')
    t.same([...ended.keys()], [first, second])
    t.same([...ended.values()], [lifeTime.sealed, lifeTime.sealed])
    t.equal((await store.end(user, [first], 'revoked')).size, 0, 'only once')
    t.equal(await store.touch(first, minute, user), false)
    t.same(await store.read(first), { ended: 'upstream' })
    await store.open({ key: first, stored: lifeTime, user, max: 9, refuse: false })
    t.same(await store.read(first), { ended: 'upstream' }, 'no key is opened again')
    t.ok((await idleMs(idle)) <= 0, 'an idle one keeps its reason')
    t.equal(await isAlive(third), true)
    t.notOk((await store.keysOf(user)).includes(first))
    await pass(tombstoneMs + 1)
    t.equal(await store.read(first), undefined)
  })

  t.test('of a session too many, the one that would be idle first gives way', async t => {
    const user = someone()
    const keys: string[] = []
    for (const idle of [30_000, 20_000, 10_000]) keys.push(await opened(user, { idleMs: idle }))
    const [first = '', second = '', third = ''] = keys
    await store.touch(third, minute, user)
    const { key, ended, sealed } = await open(user)
    t.same([ended, sealed], [[second], [lifeTime.sealed]])
    t.same(await store.read(second), { ended: 'replaced' })
    t.same(await alive([...keys, key]), [first, third, key])
    t.same((await store.keysOf(user)).toSorted(), [first, third, key].toSorted())
  })

  t.test('R8: only an opening that worked replaces the former session', async t => {
    const [user, other] = [someone(), someone()]
    const keys = [await opened(user), await opened(user), await opened(user)]
    const former = { key: await opened(other), user: other }
    t.equal((await open(user, { refuse: true, former })).ended, 'full')
    t.same(await alive([...keys, former.key]), [...keys, former.key])
    const [key = ''] = keys
    const own = { key, user }
    t.same((await open(user, { refuse: true, former: own })).ended, [key], 'it frees a place')
    t.same(await store.read(key), { ended: 'replaced' })
    t.same((await open(user, { former })).ended, [former.key, keys[1]], 'of another user')
    t.same(await store.read(former.key), { ended: 'replaced' })
    t.notOk((await store.signedIn(1000)).users.some(({ id }) => id === other.id))
    t.same((await open(other, { former })).ended, [], 'it has ended already')
  })

  t.test('sessions that are over take nobody’s place', async t => {
    const over = {
      idle: async () => await pass(minute),
      absolute: async (user: SignedIn, keys: readonly string[]) => {
        for (const key of keys) await store.touch(key, 3 * hour, user)
        await pass(hour)
      },
      everyone: async () => await store.endAll()
    }
    for (const [how, end] of Object.entries(over)) {
      const user = someone()
      await end(user, [await opened(user), await opened(user)])
      const keys: string[] = []
      for (let n = 0; n < 3; n++) {
        const { key, ended } = await open(user, { refuse: true, max: 3 })
        t.same(ended, [], how)
        keys.push(key)
      }
      t.same(await alive(keys), keys, how)
      t.equal((await open(user, { refuse: true })).ended, 'full', how)
    }
  })

  t.test('everyone is out, and late requests bring nobody back', async t => {
    const [user, other] = [someone(), someone()]
    const keys = [await opened(user), await opened(user), await opened(other)]
    await store.endAll()
    t.equal(await store.touch(keys[0] ?? '', minute, user), false)
    await store.replace(keys[1] ?? '', lifeTime.sealed, 'late')
    for (const key of keys) t.same(await store.read(key), { ended: 'revoked' })
    t.equal((await store.end(user, keys.slice(0, 2), 'replaced')).size, 0)
    t.same(await store.signedIn(9), { total: 0, users: [] })
    t.equal(await isAlive(await opened(user)), true)
  })

  t.test('keys for scripts are listed apart, and live on when everyone is out', async t => {
    await store.endAll()
    const user = { ...someone(), source: 'keys' }
    const key = await opened(user)
    t.equal((await open(user, { max: 1, refuse: true })).ended, 'full')
    await store.endAll()
    t.equal(await isAlive(key), true)
    t.equal(await store.touch(key, minute, user), true)
    t.same(await store.signedIn(9), { total: 0, users: [] })
    t.same(await store.signedIn(9, 'keys'), { total: 1, users: [user] })
    t.equal(await isAlive(await opened(someone())), true, 'everyone may sign in')
    t.same([...(await store.end(user, [key], 'revoked')).keys()], [key])
    t.same(await store.signedIn(9, 'keys'), { total: 0, users: [] })
  })

  t.test('users are signed in as long as one of their sessions lives', async t => {
    await store.endAll()
    const [one, two] = [someone(), someone()]
    const remembered = await opened(one, { idleMs: 2 * hour, absoluteMs: 3 * hour })
    for (const user of [one, two]) await opened(user)
    t.equal((await store.signedIn(0)).total, 2)
    t.equal((await store.signedIn(1)).users.length, 1)
    const { users: listed } = await store.signedIn(9)
    t.same(
      listed.toSorted((a, b) => a.id.localeCompare(b.id, 'en', { numeric: true })),
      [one, two]
    )
    await store.end(two, await store.keysOf(two), 'revoked')
    t.same((await store.signedIn(9)).users, [one])
    await store.end(one, [remembered], 'revoked')
    t.same((await store.signedIn(9)).users, [one], 'by the other session')
    await pass(minute + 1)
    t.same(await store.signedIn(9), { total: 0, users: [] })
  })

  t.test('users are found by a part of their name or id, in either case', async t => {
    await store.endAll()
    const names = ['José "x" O’Neil', 'ALICE', 'a*[b]\\c', '李雷', 'x-y_z.w@v']
    const all = names.map(username => ({ ...someone(), source: 'name', username }))
    for (const user of all) await opened(user)
    const gone = someone()
    await store.end(gone, [await opened(gone)], 'revoked')
    const idsFor = async (text: string) => {
      const found: SignedIn[] = []
      for await (const users of store.scan(text)) found.push(...users)
      return new Set(found.map(({ id }) => id))
    }
    t.same(await idsFor(''), new Set(all.map(({ id }) => id)))
    for (const [index, text] of ['josé "X"', 'lic', '*[B]\\', '雷', 'X-Y_Z.W@'].entries()) {
      t.ok((await idsFor(text)).has(all[index]?.id ?? ''), text)
    }
    for (const { id } of all) t.ok((await idsFor(id)).has(id))
  })

  t.test('changes are announced, use is not', async t => {
    const user = someone()
    const keys = [await opened(user), await opened(user), await opened(user)]
    const [first = '', second = '', third = ''] = keys
    t.equal(store.isFollowed(), true)
    await store.replace(third, lifeTime.sealed, 'new')
    // Announced after all that was changed before it.
    const last = someone()
    const marker = await opened(last)
    await store.end(last, [marker], 'revoked')
    await until('what came before is announced', () => changed.includes(marker))
    changed.length = 0
    const others = () => changed.filter(key => key !== marker)
    t.equal(await store.touch(first, 2 * minute, user), true)
    await store.end(user, [second], 'revoked')
    await store.replace(third, 'new', 'newer')
    await until('both have come', () => others().length >= 2)
    t.same(others(), [second, third])
    await open(user, { former: { key: third, user }, max: 1 })
    await until('those that gave way', () => changed.includes(first))
    t.ok(changed.includes(third))
    changed.length = 0
    await store.endAll()
    await until('everyone', () => others().length > 0)
  })

  t.test('a set has its members, each for its own time', async t => {
    const add = async (member: string, ms = minute, set = 'one') => {
      return [...(await store.addTo(set, member, ms)).keys()].toSorted()
    }
    const both = ['a', 'b'].map(async each => await add(each))
    t.same((await Promise.all(both)).map(({ length }) => length).toSorted(), [1, 2])
    t.same(await add('a', minute, 'other'), ['a'])
    await pass(40_000)
    t.same(await add('b'), ['a', 'b'])
    t.same(await add('c', 10_000), ['a', 'b', 'c'])
    await pass(30_000)
    t.same(await add('d'), ['b', 'd'])
    const left = (await store.membersOf('one')).get('b') ?? 0
    t.ok(left > 25_000 && left <= 30_000, `${left} ms are left`)
    t.same(await Promise.all(['b', 'b'].map(async each => await store.removeFrom('one', each))), [
      true,
      false
    ])
    await pass(2 * minute)
    t.same(await add('e'), ['e'])
  })

  t.test('a lock has one owner, who frees it, and ends by itself', async t => {
    const take = async (owner: string) => await lock(store, 'l', minute, owner)
    t.same(await Promise.all(['a', 'b'].map(take)), [true, false])
    t.equal(await take('b'), false)
    await store.addTo('l', 'a', 0)
    t.equal(await take('b'), true)
    await pass(minute + 1)
    t.equal(await take('a'), true)
  })
}
