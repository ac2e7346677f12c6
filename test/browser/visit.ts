/** What browser tests do over and over: visit a page, sign in to the console, and let time pass. */
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'

interface Tap {
  readonly teardown: (undo: () => unknown) => void
  readonly fail: (message: string) => unknown
}

/** A fresh visitor; fails the test when a page throws, opens a dialog, or breaks its policy. */
export async function visit(
  t: Tap,
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {}
): Promise<Page> {
  const context = await browser.newContext({ locale: 'en-US', ...options })
  // Of a busy machine: it tells what is late from what never comes.
  context.setDefaultTimeout(90_000)
  t.teardown(() => context.close())
  const page = await context.newPage()
  page.on('pageerror', error => t.fail(`the page threw: ${error.message}`))
  page.on('dialog', dialog => {
    t.fail(`a dialog opened: ${dialog.message()}`)
    void dialog.dismiss()
  })
  page.on('console', message => {
    if (message.text().includes('Content Security Policy')) t.fail(message.text())
  })
  await page.goto(url)
  return page
}

export async function signIn(page: Page, username: string, password = 'ant.design'): Promise<void> {
  await page.getByTestId('username').fill(username)
  await page.getByTestId('password').fill(password)
  await page.getByTestId('sign-in').click()
}

/** Lets time pass at once, for the gateway, which lives in this process, and for pages; call it before the gateway starts. */
export function timeMachine(
  t: Pick<Tap, 'teardown'>
): (ms: number, ...pages: Page[]) => Promise<void> {
  const { now } = Date
  const ticks = performance.now.bind(performance)
  let passed = 0
  Date.now = () => now() + passed
  performance.now = () => ticks() + passed
  t.teardown(() => {
    Date.now = now
    performance.now = ticks
  })
  return async (ms, ...pages) => {
    passed += ms
    for (const page of pages) await page.clock.fastForward(ms)
  }
}
