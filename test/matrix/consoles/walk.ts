/** What every driver must do against the mock of its own console. */
import type { Test } from 'tap'
import type { Credentials, Driver } from '../driver.ts'
import { type FakePage, firstPage, secondPage } from './fake.ts'

interface Expected {
  /** Where the form of the console wants longer ones. */
  readonly credentials?: Credentials
  readonly wrongPassword: readonly string[]
  readonly saveMessages: readonly string[]
  readonly fieldErrors?: Readonly<Record<string, string>>
  readonly menu: readonly string[]
  readonly permissions: readonly string[]
  /** Default: `admin`. */
  readonly roles?: readonly string[]
  readonly beforeEnd?: () => void
  /** Requests from the first refused one to the sign-in page. */
  readonly afterEnd: readonly string[]
}

const right = { username: 'ada', password: 'right' }

/** Signs in, sees everything, loses the session, signs in again and signs out. */
export async function walk(t: Test, driver: Driver, page: FakePage, expected: Expected) {
  const credentials = expected.credentials ?? right
  const first = driver.open(page)
  t.match(await first.start(), { at: 'sign-in', content: undefined })
  t.match(await first.signIn({ ...credentials, password: 'wrong-one' }), {
    at: 'sign-in',
    messages: expected.wrongPassword,
    content: undefined
  })
  const user = { at: 'inside', content: { name: 'Ada', roles: expected.roles ?? ['admin'] } }
  t.match(await first.signIn(credentials), user)
  t.match(await first.menu(), {
    content: { entries: expected.menu, permissions: expected.permissions }
  })
  t.match(await first.list(1, 10), { content: { rows: firstPage, total: 25 } })
  t.match(await first.list(2, 10), { content: { rows: secondPage, total: 25 }, messages: [] })
  const refused = await first.save({ title: '' })
  t.strictSame(refused.messages, expected.saveMessages)
  t.equal(refused.content?.saved, false)
  t.strictSame(refused.content?.fieldErrors, expected.fieldErrors)
  t.match(await first.save({ title: 'New' }), { content: { saved: true }, messages: [] })
  const second = driver.open(page)
  t.match(await second.start(), user, 'still inside after a reload')
  page.endSession()
  page.requests.length = 0
  expected.beforeEnd?.()
  const refusal = await second.list(1, 10)
  const end = driver.noticesEndBy === 'reload' ? await second.start() : refusal
  t.equal(end.at, 'sign-in', 'a refused request leads to the sign-in page')
  t.strictSame(page.requests, expected.afterEnd)
  t.match(await second.signIn(credentials), user)
  t.match(await second.signOut(), { at: 'sign-in' })
  t.match(await driver.open(page).start(), { at: 'sign-in', content: undefined })
}
