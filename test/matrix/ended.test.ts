/** Tokens that a back-end renews or ends, and what the user of a console sees of it. */
import t from 'tap'
import { stopClock } from '../support/clock.ts'
import { backends } from './backend-families.ts'
import type { BackendFamily } from './backend.ts'
import { backend as directus } from './backends/directus.ts'
import { backend as jsonApi } from './backends/json-api.ts'
import { backend as yudaoBackend } from './backends/yudao.ts'
import { consoles } from './consoles.ts'
import { antDesignPro } from './consoles/ant-design-pro.ts'
import { jeecg } from './consoles/jeecg.ts'
import { ruoyi } from './consoles/ruoyi.ts'
import { vben } from './consoles/vben.ts'
import { yudao } from './consoles/yudao.ts'
import type { Driver } from './driver.ts'
import { startPair } from './pair.ts'

const minute = 60_000
const day = 24 * 60 * minute

/** With the time that the back-end says its tokens are valid. */
const renewing: ReadonlyArray<readonly [console: Driver, family: BackendFamily, ms: number]> = [
  [yudao, yudaoBackend, 30 * minute],
  [ruoyi, yudaoBackend, 30 * minute],
  [jeecg, yudaoBackend, 30 * minute],
  [antDesignPro, directus, 15 * minute],
  [yudao, directus, 15 * minute],
  [vben, jsonApi, 15 * minute]
]

for (const [driver, family, tokenLifetimeMs] of renewing) {
  const title = `${driver.name} × ${family.name}`
  void t.test(
    `${title}: an expired token is renewed, a refused renewal leads out once`,
    async t => {
      const passTime = stopClock(t.after)
      const { backend, page, expected } = await startPair(t.after, driver, family)
      const console = driver.open(page)
      const grow = async () => {
        passTime(tokenLifetimeMs / 2)
        t.match(await console.list(1, 10), { at: 'inside', content: { total: 25 } })
        passTime(tokenLifetimeMs / 2)
      }
      await console.signIn(expected)
      await grow()
      backend.expireTokens()
      const before = page.requests.length
      const list = await console.list(2, 10)
      t.match(list, { at: 'inside', content: { total: 25 }, messages: [] }, 'the user sees nothing')
      t.equal(page.requests.length - before, 1, 'the console sends its request once')
      t.match(await console.save({ title: 'New' }), { at: 'inside', content: { saved: true } })
      t.match(await driver.open(page).start(), { at: 'inside' }, 'still inside after a reload')

      await grow()
      backend.endAllSessions()
      const refusedAt = page.requests.length
      t.match(await console.list(2, 10), { at: 'sign-in', content: undefined })
      const sent = page.requests.slice(refusedAt).map(({ method, path }) => `${method} ${path}`)
      t.ok(sent.length <= 3, sent.join(', '))
      t.match(await driver.open(page).start(), { at: 'sign-in' }, 'after a reload, too')
      t.match(await console.signIn(expected), { at: 'inside' }, 'and in again')
      t.match(await console.list(2, 10), { content: { total: 25 }, messages: [] })
    }
  )
}

for (const driver of consoles) {
  for (const family of backends) {
    const title = `${driver.name} × ${family.name}`
    const name = `case 8: ${title}: a session that the back-end ended leads to the sign-in page`
    void t.test(name, async t => {
      const { backend, page, expected } = await startPair(t.after, driver, family)
      const console = driver.open(page)
      await console.signIn(expected)
      t.match(await console.list(1, 10), { at: 'inside', content: { total: 25 } })
      backend.endAllSessions()
      const before = page.requests.length
      const list = await console.list(2, 10)
      t.equal(list.content, undefined)
      const sent = page.requests.slice(before).map(({ method, path }) => `${method} ${path}`)
      // Some consoles show the failure first, and leave with the next step.
      const isOut = list.at === 'sign-in'
      if (isOut) t.ok(sent.length <= 3, sent.join(', '))
      const byClock = driver.noticesEndBy === 'clock'
      if (byClock) expected.passTime(day)
      if (!isOut && driver.noticesEndBy !== 'reload') {
        t.match(await console.list(2, 10), { at: 'sign-in', content: undefined })
      }
      t.match(await driver.open(page).start(), { at: 'sign-in' }, 'after a reload')
      if (byClock) expected.passTime(-day)
      const again = driver.open(page)
      t.match(await again.signIn(expected), { at: 'inside' }, 'and in again')
      t.match(await again.list(2, 10), { content: { total: 25 }, messages: [] })
    })
  }
}
