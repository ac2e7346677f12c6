/** Pages of 10,000 sessions: complete, searchable, and bounded. */
import t from 'tap'
import { sessionPage, type SessionPage } from '../../src/admin/session-pages.ts'
import { testGateway } from '../support/gateway.ts'
import { newSession, sharedMemory, signIn } from '../support/sessions.ts'

async function withSessions(users: number, each: number) {
  const sessions = sharedMemory().replica()
  for (let index = 0; index < users; index++) {
    const username = `user-${String(index % 5000).padStart(5, '0')}`
    const identity = { ...newSession().identity, id: `i${index}`, username }
    for (let n = 0; n < each; n++) await signIn(sessions, newSession('u', { identity }))
  }
  return sessions
}

t.test('pages hold each of 10,000 sessions once, users with one name included', async t => {
  const sessions = await withSessions(5500, 2)
  const seen = new Set<string>()
  let count = 0
  let page: SessionPage | undefined
  do {
    page = await sessionPage(sessions, { size: 999, ...(page?.next && { after: page.next }) })
    t.equal(page.users, 5500)
    t.equal(page.isWhole, false)
    for (const { id } of page.sessions) seen.add(id)
    count += page.sessions.length
  } while (page.next !== undefined)
  t.equal(count, 11_000)
  t.equal(seen.size, 11_000)
  const before = process.cpuUsage()
  await sessionPage(sessions, { size: 100 })
  const { user, system } = process.cpuUsage(before)
  const ms = (user + system) / 1000
  t.comment(`a page of 100 of 11,000 sessions takes ${ms.toFixed(1)} ms of CPU`)
})

t.test('a search finds a part of a name or id in either case', async t => {
  const sessions = await withSessions(120, 1)
  const found = await sessionPage(sessions, { search: 'USER-0001' })
  t.equal(found.users, 10)
  t.ok(found.sessions.every(({ user }) => user.startsWith('user-0001')))
  t.equal(found.isWhole, true)
  t.equal((await sessionPage(sessions, { search: 'i119' })).sessions[0]?.user, 'user-00119')
  t.match(await sessionPage(sessions, { search: 'nobody' }), { sessions: [], users: 0 })
})

t.test('a user whose sessions ended takes no place, and the page is filled', async t => {
  const sessions = await withSessions(30, 1)
  await sessions.endOf({ source: 's', id: 'i0', username: 'user-00000' })
  const page = await sessionPage(sessions, { size: 5 })
  t.equal(page.sessions.length, 5)
})

t.test('the API has the pages; a page that is no page is refused', async t => {
  const gateway = await testGateway(t.after)
  for (const user of ['alice', 'alice', 'bob']) await gateway.signIn(user)
  const read = async (query: string) =>
    (await (await gateway.ops(`/ops/api/sessions?${query}`)).json()) as SessionPage
  const first = await read('size=1')
  t.match(
    first.sessions.map(({ user }) => user),
    ['alice', 'alice'],
    'the sessions of one user stay together'
  )
  const second = await read(`size=1&after=${encodeURIComponent(first.next ?? '')}`)
  t.match(second.sessions, [{ user: 'bob', source: 'users-file', address: '127.0.0.1' }])
  t.equal(second.next, undefined)
  t.equal((await read('search=BO')).users, 1)
  for (const query of ['size=0', 'size=1001', 'size=x']) {
    t.equal((await gateway.ops(`/ops/api/sessions?${query}`)).status, 400, query)
  }
})
