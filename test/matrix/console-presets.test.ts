/**
 * Each preset of a console, with users of a file and a back-end that speaks the neutral forms, so
 * that what is seen is the preset's doing alone. Pairs with back-end presets: matrix.test.ts.
 */
import t, { type Test } from 'tap'
import { testGateway } from '../support/gateway.ts'
import { password } from '../support/sign-in.ts'
import { json, testUpstream } from '../support/upstream.ts'
import { antDesignPro } from './consoles/ant-design-pro.ts'
import { baseResponse } from './consoles/base-response.ts'
import type { Driver } from './driver.ts'
import { nodePage } from './node-page.ts'

interface Expected {
  readonly menu?: readonly string[]
  readonly permissions?: readonly string[]
  readonly roles?: readonly string[]
  /** Where the console shows the end only when its page is loaded again. */
  readonly reloadsAtEnd?: boolean
  /** The sign-out sends nothing, so that the session goes on without the console. */
  readonly silentSignOut?: boolean
  readonly maxRequestsAfterEnd?: number
}

const drivers: ReadonlyArray<readonly [Driver, Expected]> = [
  [antDesignPro, { permissions: ['canAdmin'] }],
  [baseResponse, { permissions: ['canAdmin'], roles: ['Admin'], reloadsAtEnd: true }]
]

const wrongPassword = 'The user name or the password is wrong.'
const alice = { username: 'alice', password }
const items = Array.from({ length: 25 }, (_, index) => ({ id: index + 1 }))

/** `{ rows, total }` by page and size, and a refusal of an empty title. */
const neutralBackend = (t: Test) =>
  testUpstream(t.after, (request, response, seen) => {
    const answer = request.method === 'POST' ? saveOf(seen.body.toString()) : pageOf(seen.url)
    answer(request, response, seen)
  })

function saveOf(body: string) {
  if (!body.includes('"title":""')) return json(200, { id: 26 })
  return json(422, { message: 'No title.', errors: { title: ['Needed.'] } })
}

function pageOf(url: string) {
  const { searchParams } = new URL(url, 'http://back-end')
  const [page, size] = [Number(searchParams.get('p')), Number(searchParams.get('s'))]
  return json(200, { rows: items.slice((page - 1) * size, page * size), total: items.length })
}

async function startGateway(t: Test, { name, calls }: Driver) {
  const backend = await neutralBackend(t)
  const upstream = { url: backend.url, paging: { page: 'p', size: 's' } }
  const route = ({ method, path }: { method: string; path: string }, shape: string) => ({
    path,
    methods: [method],
    upstream: 'backend',
    shape
  })
  const gateway = await testGateway(t.after, {
    gateway: { extends: name },
    routes: {
      upstreams: { backend: upstream },
      permissions: { admin: ['*'], user: ['read'] },
      routes: { list: route(calls.list, 'list'), save: route(calls.save, 'record') }
    }
  })
  return { backend, gateway }
}

for (const [driver, expected] of drivers) {
  void t.test(`${driver.name}: the user signs in, works, and signs out`, async t => {
    const { backend, gateway } = await startGateway(t, driver)
    const page = nodePage(gateway.url)
    const console = driver.open(page)
    t.match(await console.start(), { at: 'sign-in', content: undefined })

    const wrong = await console.signIn({ ...alice, password: 'wrong' })
    t.match(wrong, { at: 'sign-in', content: undefined })
    t.has(wrong.messages, [driver.ownWords?.wrongPassword ?? wrongPassword])

    const inside = {
      at: 'inside',
      content: { name: 'Alice Admin', roles: expected.roles ?? ['admin'] }
    }
    t.match(await console.signIn(alice), inside)
    t.match(await console.menu(), {
      content: { entries: expected.menu ?? [], permissions: expected.permissions ?? [] }
    })
    t.match(await console.list(2, 10), {
      content: { rows: items.slice(10, 20), total: 25 },
      messages: []
    })
    t.match(await console.save({ title: 'New' }), { content: { saved: true }, messages: [] })
    t.match(await driver.open(page).start(), inside, 'still inside after a reload')
    if (console.refresh !== undefined) {
      t.match(await console.refresh(), { at: 'inside', content: true })
    }
    t.match(await console.signOut(), { at: 'sign-in' })
    t.match(await driver.open(page).start(), { at: 'sign-in', content: undefined })
    for (const { headers } of backend.seen) {
      t.notMatch(JSON.stringify(headers), /console-gateway|Bearer/, 'no token of the console')
    }
  })

  void t.test(`${driver.name}: the end of a session leads to the sign-in page, once`, async t => {
    const { gateway } = await startGateway(t, driver)
    const page = nodePage(gateway.url)
    const console = driver.open(page)
    await console.signIn(alice)
    await gateway.ops('/sessions/close', { json: { user: '1' } })
    const before = page.requests.length
    const refusal = await console.list(1, 10)
    const end = expected.reloadsAtEnd === true ? await console.start() : refusal
    t.equal(end.at, 'sign-in')
    t.ok(page.requests.length - before <= 3, `${page.requests.length - before} requests`)
    t.match(await console.signIn(alice), { at: 'inside' }, 'and in again')
  })
}
