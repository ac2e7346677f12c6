/** The ops page stays small with 1,000 routes, 50 upstreams and 10,000 sessions. */
import type { Page } from 'playwright-core'
import t from 'tap'
import { testBrowser } from '../../support/chromium.ts'
import { until } from '../../support/until.ts'
import { fakeOps } from './ops-fake.ts'
import { openPanel, visitOps } from '../../browser/ops-page.ts'

const browser = await testBrowser(undo => t.teardown(undo))
const many = { routes: 1000, upstreams: 50, sessions: 10_000 }

/** 16 rows in view, one of them in parts, 12 above and below, and what stands for the others. */
const maxRowsOfTable = 45

/** The most rows that one table has in the document. */
async function mostRows(page: Page): Promise<number> {
  const text = 'Math.max(...[...document.querySelectorAll("table")].map(each => each.rows.length))'
  return (await page.evaluate(text)) as number
}

/** @returns the most rows on the way to the end of the first table */
async function scrollThrough(page: Page): Promise<number> {
  return (await page.evaluate(`new Promise(resolve => {
    const table = document.querySelector('.table')
    let most = 0
    const scroll = () => {
      most = Math.max(most, table.querySelectorAll('tr').length)
      const before = table.scrollTop
      table.scrollTop += 1500
      if (table.scrollTop === before) resolve(most)
      else requestAnimationFrame(scroll)
    }
    scroll()
  })`)) as number
}

t.test('tables of any length have few rows in the document', async t => {
  const fake = await fakeOps(undo => t.teardown(undo), many)
  const page = await visitOps(t, browser, `${fake.url}/ops/`)
  await page.locator('.figure').first().waitFor()
  t.ok((await mostRows(page)) <= maxRowsOfTable, 'Now')
  t.ok((await scrollThrough(page)) <= maxRowsOfTable, 'Now, scrolled through 1,000 routes')
  await openPanel(page, 'sessions')
  const table = page.getByRole('table', { name: 'Signed in' })
  await table.locator('.row-acts').first().waitFor()
  for (const rows of [201, 1201, 2201]) {
    await until(`${rows} rows`, async () => {
      return (await table.getAttribute('aria-rowcount')) === String(rows)
    })
    t.ok((await scrollThrough(page)) <= maxRowsOfTable, `${rows} rows, scrolled`)
    await page.getByRole('button', { name: 'Show more' }).click()
  }
})

t.test('of 10,000 sessions any is found by name, and "Show more" ends with the last', async t => {
  const fake = await fakeOps(undo => t.teardown(undo), many)
  const page = await visitOps(t, browser, `${fake.url}/ops/#/sessions`)
  const card = page.getByRole('region', { name: 'Signed in' })
  await card.getByRole('heading').getByText('10000').waitFor()
  await card.getByText('The first 200 sessions of 10,000 users, by name').waitFor()
  await page.getByRole('searchbox').fill('li.na9999')
  await card.getByRole('row').filter({ hasText: 'li.na9999' }).waitFor()
  t.equal(await card.getByRole('table').getAttribute('aria-rowcount'), '2')
  await page.getByRole('searchbox').fill('li.na')
  await card.getByText('The first 200 sessions of 1,000 users, by name').waitFor()
  await page.getByRole('searchbox').fill('nobody at all')
  await card.getByText('No session matches').waitFor()
  await page.getByRole('searchbox').fill('')
  for (let shown = 200; shown < 10_000; shown += 1000) {
    await card.getByText(`The first ${shown.toLocaleString('en')} sessions`).waitFor()
    await card.getByRole('button', { name: 'Show more' }).click()
  }
  await card.getByRole('button', { name: 'Show more' }).waitFor({ state: 'detached' })
  t.equal(await card.getByRole('table').getAttribute('aria-rowcount'), '10001')
})

t.test('an answer that is slower than the refreshing of its panel arrives', async t => {
  const fake = await fakeOps(undo => t.teardown(undo))
  const page = await visitOps(t, browser, `${fake.url}/ops/`)
  await page.getByText('Live', { exact: true }).waitFor()
  let asked = 0
  let answer = () => {}
  const wait = new Promise<void>(resolve => {
    answer = resolve
  })
  await page.route('**/ops/api/requests?*', async route => {
    asked++
    await wait
    await route.continue()
  })
  await page.clock.install()
  await openPanel(page, 'requests')
  await until('it is asked', () => asked === 1)
  await page.clock.runFor(10_000)
  t.equal(asked, 1, 'the call goes on')
  answer()
  await page.getByRole('table', { name: 'Requests' }).getByRole('row').nth(2).waitFor()
})

t.test('the page from its sources transfers less than 150 KB', async t => {
  const fake = await fakeOps(undo => t.teardown(undo), many)
  const page = await visitOps(t, browser, `${fake.url}/ops/#/sessions`)
  await page.locator('.row-acts').first().waitFor()
  const sizes = (await page.evaluate(`
    ['navigation', 'resource'].flatMap(type => performance.getEntriesByType(type))
      .filter(({ name }) => !name.includes('/ops/api/'))
      .map(({ transferSize }) => transferSize)
  `)) as number[]
  const bytes = sizes.reduce((sum, size) => sum + size, 0)
  t.comment(`${sizes.length} files, ${bytes} bytes`)
  t.ok(sizes.length > 1 && sizes.every(size => size > 0))
  t.ok(bytes < 150_000, `${bytes} bytes`)
})
