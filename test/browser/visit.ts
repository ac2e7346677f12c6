/** What browser tests do over and over: visit a page, and sign in to the console. */
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import type { Test } from 'tap'

/** A fresh visitor; fails the test when a page throws, opens a dialog, or breaks its policy. */
export async function visit(
  t: Test,
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

export const shows = async (page: Page, testId: string, hasText: string | RegExp) =>
  await page.getByTestId(testId).filter({ hasText }).waitFor()
