/** The ops page: its first paint, and frames while it is live, scrolled and searched. */
import type { Page } from 'playwright-core'
import { fakeOps } from '../test/long/browser/ops-fake.ts'
import { testBrowser } from '../test/support/chromium.ts'

const many = { routes: 1000, upstreams: 50, sessions: 10_000 }
const paints = 5
const liveMs = 8000
/** Longer frames are felt. */
const longMs = 50

const cleanups: Array<() => unknown> = []
const cleanUp = (undo: () => unknown) => void cleanups.push(undo)

/** Counts frames while something happens. */
async function countFrames(page: Page, act: () => Promise<unknown>): Promise<string> {
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
  const long = frames.filter(ms => ms > longMs).length
  return `${frames.length} | ${long} | ${Math.round(Math.max(...frames))}`
}

/** At the speed of a fast wheel. */
async function scroll(page: Page): Promise<void> {
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

async function firstPaints(page: Page): Promise<number[]> {
  const times: number[] = []
  for (let round = 0; round < paints; round++) {
    await page.reload()
    await page.locator('.figure').first().waitFor()
    const entry = 'performance.getEntriesByName("first-contentful-paint")[0].startTime'
    times.push(Math.round((await page.evaluate(entry)) as number))
  }
  return times.toSorted((a, b) => a - b)
}

try {
  const browser = await testBrowser(cleanUp)
  const { url } = await fakeOps(cleanUp, many)
  const page = await (await browser.newContext({ locale: 'en-US' })).newPage()
  await page.goto(`${url}/ops/`)
  const times = await firstPaints(page)
  const rows: Array<[what: string, figures: string]> = []
  rows.push(['Now, live', await countFrames(page, () => page.waitForTimeout(liveMs))])
  rows.push(['Now, 1,000 routes scrolled', await countFrames(page, () => scroll(page))])
  await page.locator('nav a[href="#/sessions"]').click()
  await page.locator('.row-acts').first().waitFor()
  await page.getByRole('button', { name: 'Show more' }).click()
  await page.locator('table[aria-rowcount="1201"]').waitFor()
  rows.push(['Sessions, 1,200 listed, scrolled', await countFrames(page, () => scroll(page))])
  const search = page.getByRole('searchbox')
  const type = () => search.pressSequentially('alice1', { delay: 120 })
  rows.push(['Sessions, typed into the search', await countFrames(page, type)])
  const lines = rows.map(([what, figures]) => `| ${what} | ${figures} |`)
  process.stdout.write(
    `First contentful paint, ms, of ${paints}: ${times.join(', ')}\n\n` +
      `| | Frames | Over ${longMs} ms | Longest, ms |\n|---|---|---|---|\n${lines.join('\n')}\n`
  )
} finally {
  for (const undo of cleanups.toReversed()) await undo()
}
