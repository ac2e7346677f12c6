/** The ops page stays fluent with 1,000 routes, 50 upstreams and 10,000 sessions. */
import type { Page } from 'playwright-core'
import t from 'tap'
import { testBrowser } from '../support/chromium.ts'
import { fakeOps } from './ops-fake.ts'
import { openPanel, visitOps } from './ops-page.ts'

const browser = await testBrowser(undo => t.teardown(undo))

/** Counts frames while something happens: `long` are those over 50 ms. */
async function countFrames(page: Page, act: () => Promise<unknown>) {
  await page.evaluate(`
    globalThis.frames = []
    globalThis.counting = true
    let last = performance.now()
    const next = now => {
      frames.push(now - last)
      last = now
      if (counting) requestAnimationFrame(next)
    }
    requestAnimationFrame(next)
  `)
  await act()
  const frames = (await page.evaluate('counting = false; globalThis.frames')) as number[]
  const long = frames.filter(ms => ms > 50)
  return { frames: frames.length, long: long.length, longestMs: Math.round(Math.max(...frames)) }
}

async function scrollThrough(page: Page): Promise<void> {
  await page.evaluate(`new Promise(resolve => {
    const table = document.querySelector('.table')
    let step = 0
    const scroll = () => {
      table.scrollTop += 150
      if (++step < 120) requestAnimationFrame(scroll)
      else resolve()
    }
    scroll()
  })`)
}

t.test('few frames take over 50 ms, and the document stays small', async t => {
  const many = { routes: 1000, upstreams: 50, sessions: 10_000 }
  const fake = await fakeOps(undo => t.teardown(undo), many)
  const page = await visitOps(t, browser, `${fake.url}/ops/`)
  await page.locator('.figure').first().waitFor()
  const rows = async () => await page.locator('tbody tr').count()

  const live = await countFrames(page, async () => await page.waitForTimeout(8000))
  t.comment(`Now, 8 s of live frames: ${JSON.stringify(live)}`)
  t.ok(live.long <= live.frames * 0.05, 'live frames')
  t.ok((await rows()) < 200, 'rows in the document')

  const scrolled = await countFrames(page, async () => await scrollThrough(page))
  t.comment(`Now, scrolled through 1,000 routes: ${JSON.stringify(scrolled)}`)
  t.ok(scrolled.long <= scrolled.frames * 0.1, 'scrolled routes')

  await openPanel(page, 'sessions')
  await page.locator('.row-acts').first().waitFor()
  t.ok((await rows()) < 200, 'rows in the document')
  const sessions = await countFrames(page, async () => await scrollThrough(page))
  t.comment(`Sessions, scrolled through those listed of 10,000: ${JSON.stringify(sessions)}`)
  t.ok(sessions.long <= sessions.frames * 0.1, 'scrolled sessions')

  const typed = await countFrames(page, async () => {
    await page.getByRole('searchbox').pressSequentially('alice1', { delay: 120 })
  })
  t.comment(`Sessions, typed into the search: ${JSON.stringify(typed)}`)
  t.ok(typed.long <= typed.frames * 0.25, 'typed')
})
