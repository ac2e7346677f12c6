/** Each preset of a console, in the hands of its console. With back-ends: pairs.test.ts. */
import t from 'tap'
import { consoles } from './consoles.ts'
import { vbenRefreshing } from './consoles/vben.ts'
import { OpenConsole } from './driver.ts'
import { nodePage } from './page.ts'
import { wrongPassword } from './pair.ts'
import { alice, items, startPlain } from './plain.ts'

interface Shown {
  readonly menu?: readonly string[]
  readonly permissions?: readonly string[]
  readonly roles?: readonly string[]
}

const permissions = ['*', 'read']

const shown: Readonly<Record<string, Shown>> = {
  'ant-design-pro': { permissions: ['canAdmin'] },
  'base-response': { permissions: ['canAdmin'], roles: ['Admin'] },
  'gin-vue-admin': { menu: ['仪表盘'] },
  'jeecg': { permissions },
  'ruoyi': { permissions },
  'soybean': { menu: ['home'], permissions },
  'vben': { permissions },
  'vue-pure-admin': { permissions },
  'yudao': { permissions }
}

const day = 86_400_000

for (const spec of [...consoles, vbenRefreshing]) {
  const { name, fieldErrors, calls, ownWords, noticesEndBy } = spec
  const title = spec === vbenRefreshing ? 'vben with enableRefreshToken' : name

  void t.test(`${title}: the user signs in, works, and signs out`, async t => {
    const { backend, gateway } = await startPlain(t, spec)
    const page = nodePage(gateway.url)
    const reload = () => new OpenConsole(spec, page).start()
    const console = new OpenConsole(spec, page)
    const out = { at: 'sign-in', content: undefined }
    t.match(await console.start(), out)

    const wrong = await console.signIn({ ...alice, password: 'wrong-one' })
    t.match(wrong, out)
    const [said = ''] = wrong.messages
    const words = [ownWords?.wrongPassword ?? wrongPassword].flat()
    t.equal(words.filter(each => said.includes(each)).length, 1, said)

    const { roles = ['admin'], menu = [], permissions = [] } = shown[name] ?? {}
    const inside = { at: 'inside', content: { name: 'Alice Admin', roles } }
    t.match(await console.signIn(alice), inside)
    t.same((await console.menu()).content, { entries: menu, permissions })
    const second = { rows: items.slice(10, 20), total: 25 }
    t.match(await console.list(2, 10), { content: second, messages: [] })
    const none = { rows: [], total: 0 }
    t.match(await console.list(1, 10, 'nothing'), { content: none, messages: [] })
    t.match(await console.save({ title: 'New' }), { content: { saved: true }, messages: [] })
    const refused = await console.save({ title: '' })
    t.match(refused.messages[0], ownWords?.refused ?? 'No title.')
    const field = fieldErrors && { fieldErrors: { title: 'Needed.' } }
    t.same(refused.content, { saved: false, ...field })
    t.match(await reload(), inside, 'still inside after a reload')
    if (calls['refresh'] !== undefined) {
      t.match(await console.refresh(), { at: 'inside', content: true })
    }
    t.match(await console.signOut(), { at: 'sign-in' })
    t.match(await reload(), out)
    const isOpen = page.cookieNames().includes('console_sid')
    t.equal(isOpen, calls['signOut'] === undefined, 'the session ends with the sign-out')
    for (const { headers } of backend.seen) {
      t.notMatch(JSON.stringify(headers), /console-gateway|Bearer/, 'no token of the console')
    }
  })

  void t.test(`${title}: the end of a session leads to the sign-in page, once`, async t => {
    const { gateway } = await startPlain(t, spec)
    let passed = 0
    const page = nodePage(gateway.url, () => Date.now() + passed)
    const console = new OpenConsole(spec, page)
    await console.signIn(alice)
    if (noticesEndBy === 'clock') passed = day
    await gateway.ops('/ops/api/sessions/close', { json: { user: '1' } })
    const before = page.sent.length
    const refusal = await console.list(1, 10)
    const end = noticesEndBy === 'reload' ? await console.start() : refusal
    t.equal(end.at, 'sign-in')
    t.ok(page.sent.length - before <= 3, page.sent.slice(before).join(', '))
    passed = 0
    t.match(await console.signIn(alice), { at: 'inside' }, 'and in again')
  })
}
