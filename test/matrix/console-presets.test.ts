/** Each preset of a console, in the hands of its driver. With back-ends: pairs.test.ts. */
import t from 'tap'
import { nodePage } from './node-page.ts'
import { alice, items, startPlain } from './plain-gateway.ts'
import { drivers, wrongPassword } from './preset-drivers.ts'

const day = 86_400_000
for (const [driver, expected] of drivers) {
  const { title = driver.name } = expected
  void t.test(`${title}: the user signs in, works, and signs out`, async t => {
    const { backend, gateway } = await startPlain(t, driver)
    const page = nodePage(gateway.url)
    const console = driver.open(page)
    t.match(await console.start(), { at: 'sign-in', content: undefined })

    const wrong = await console.signIn({ ...alice, password: 'wrong-one' })
    t.match(wrong, { at: 'sign-in', content: undefined })
    const words = [driver.ownWords?.wrongPassword ?? wrongPassword].flat()
    const [said = ''] = wrong.messages
    t.ok(
      words.some(each => said.includes(each)),
      said
    )

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
    t.match(await console.list(1, 10, 'nothing'), {
      content: { rows: [], total: 0 },
      messages: []
    })
    t.match(await console.save({ title: 'New' }), { content: { saved: true }, messages: [] })
    const refused = await console.save({ title: '' })
    t.match(refused.messages[0], driver.ownWords?.refused ?? 'No title.')
    t.equal(refused.content?.saved, false)
    const { fieldErrors } = refused.content ?? {}
    t.same(fieldErrors, expected.noFieldErrors === true ? undefined : { title: 'Needed.' })
    t.match(await driver.open(page).start(), inside, 'still inside after a reload')
    if (console.refresh !== undefined) {
      t.match(await console.refresh(), { at: 'inside', content: true })
    }
    t.match(await console.signOut(), { at: 'sign-in' })
    t.match(await driver.open(page).start(), { at: 'sign-in', content: undefined })
    const isOpen = 'console_sid' in page.allCookies()
    t.equal(isOpen, driver.signsOutSilently ?? false, 'the session ends with the sign-out')
    for (const { headers } of backend.seen) {
      t.notMatch(JSON.stringify(headers), /console-gateway|Bearer/, 'no token of the console')
    }
  })

  void t.test(`${title}: the end of a session leads to the sign-in page, once`, async t => {
    const { gateway } = await startPlain(t, driver)
    let passed = 0
    const page = nodePage(gateway.url, () => Date.now() + passed)
    const console = driver.open(page)
    await console.signIn(alice)
    if (driver.noticesEndBy === 'clock') passed = day
    await gateway.ops('/ops/api/sessions/close', { json: { user: '1' } })
    const before = page.requests.length
    const refusal = await console.list(1, 10)
    const end = driver.noticesEndBy === 'reload' ? await console.start() : refusal
    t.equal(end.at, 'sign-in')
    t.ok(page.requests.length - before <= 3, `${page.requests.length - before} requests`)
    passed = 0
    t.match(await console.signIn(alice), { at: 'inside' }, 'and in again')
  })
}
