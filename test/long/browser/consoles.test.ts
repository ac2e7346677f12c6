/** Each console once in a real browser: its cookies, its storage, its requests. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build, type PluginBuild } from 'esbuild-wasm'
import type { Page as Tab } from 'playwright-core'
import t, { type Test } from 'tap'
import type { ConsoleSpec } from '../../consoles/console.ts'
import { consoles } from '../../consoles/consoles.ts'
import type { OpenConsole } from '../../consoles/driver.ts'
import { alice, startPlain } from '../../consoles/plain.ts'
import { notices } from '../../consoles/server.ts'
import { testBrowser } from '../../support/chromium.ts'
import { temporaryFolder } from '../../support/temporary.ts'
import { visit } from '../../browser/visit.ts'

const root = temporaryFolder()
writeFileSync(join(root, 'index.html'), '<!doctype html><script src="/drivers.js"></script>')
await build({
  entryPoints: ['test/long/browser/page.ts'],
  outfile: join(root, 'drivers.js'),
  bundle: true,
  plugins: [{ name: 'no-crypto', setup: leaveOutCrypto }],
  logLevel: 'warning'
})
/** Browsers have no MD5 and no such cipher without a library: see `excluded`. */
function leaveOutCrypto({ onResolve, onLoad }: PluginBuild): void {
  const namespace = 'left-out'
  onResolve({ filter: /^node:crypto$/ }, ({ path }) => ({ path, namespace }))
  const contents = 'export const createHash = undefined, createCipheriv = undefined'
  onLoad({ filter: /./, namespace }, () => ({ contents }))
}

/** It encrypts its passwords, so that no users file can check them. */
const excluded = ['jeecg']

const browser = await testBrowser(t.after)

interface Window {
  readonly openConsole: (name: string) => OpenConsole
}

/** The console of the page that is loaded now. */
const openIn = (tab: Tab, { name }: ConsoleSpec) =>
  tab.evaluateHandle(console => (globalThis as unknown as Window).openConsole(console), name)

async function useConsole(t: Test, spec: ConsoleSpec): Promise<void> {
  const { gateway, backend } = await startPlain(t, spec, { console: { root } })
  const tab = await visit(t, browser, gateway.url)
  const first = await openIn(tab, spec)
  t.match(await first.evaluate(console => console.start()), { at: 'sign-in' })
  const user = { at: 'inside', content: { name: 'Alice Admin' } }
  t.match(await first.evaluate((console, credentials) => console.signIn(credentials), alice), user)
  const list = { content: { rows: notices.slice(10, 20), total: 25 } }
  t.match(await first.evaluate(console => console.list(2, 10)), list)
  t.match(await first.evaluate(console => console.save({ title: 'New' })), {
    content: { saved: true }
  })
  await tab.reload()
  const second = await openIn(tab, spec)
  t.match(await second.evaluate(console => console.start()), user, 'still inside after a reload')
  t.match(await second.evaluate(console => console.signOut()), { at: 'sign-in' })
  await tab.reload()
  const third = await openIn(tab, spec)
  t.match(await third.evaluate(console => console.start()), { at: 'sign-in' })
  for (const { headers } of backend.seen) t.notMatch(JSON.stringify(headers), 'console-gateway')
}

for (const spec of consoles.filter(({ name }) => !excluded.includes(name))) {
  void t.test(`${spec.name}: in and out of a real browser`, t => useConsole(t, spec))
}
