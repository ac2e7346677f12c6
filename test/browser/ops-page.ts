/** What tests of the operators' pages do over and over: visit one, and ask axe-core for findings. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import type { Tap } from './visit.ts'

const axe = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8')

/** A visitor of the page; fails the test when the page throws, opens a dialog, or breaks its policy. */
export async function visitOps(
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

interface Finding {
  readonly id: string
  readonly help: string
  readonly nodes: ReadonlyArray<{ readonly html: string; readonly failureSummary?: string }>
}

/** Findings of axe-core, all rules, of which best practices are part. */
export async function axeFindings(page: Page): Promise<string[]> {
  // The policy of the page forbids inline scripts; evaluate() is no part of the page.
  await page.evaluate(`${axe}; 0`)
  const { violations } = (await page.evaluate('axe.run(document)')) as {
    readonly violations: readonly Finding[]
  }
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ html, failureSummary = '' }) => `${id}: ${help}: ${html} ${failureSummary}`)
  )
}
