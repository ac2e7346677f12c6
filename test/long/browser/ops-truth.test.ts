/** The ops page says and does no more than what it was told: previews, files, and the ledger. */
import t from 'tap'
import { testBrowser } from '../../support/chromium.ts'
import { fakeOps } from './ops-fake.ts'
import { openPanel, visitOps } from '../../browser/ops-page.ts'

const browser = await testBrowser(undo => t.teardown(undo))

for (const [sessions, accepted] of [
  [0, {}],
  [3, { yes: true }]
] as const) {
  t.test(`a reload agrees to the end of sessions as its preview said: ${sessions}`, async t => {
    const fake = await fakeOps(undo => t.teardown(undo), { effect: { changes: 1, sessions } })
    const page = await visitOps(t, browser, `${fake.url}/ops/#/config`)
    const name = 'Reload the files'
    await page.getByRole('button', { name }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('sessions end').waitFor()
    await dialog.getByRole('button', { name }).click()
    await dialog.waitFor({ state: 'detached' })
    t.same(fake.acts, [{ path: 'reload', body: accepted }])
  })
}

t.test('the files hold what runs only once they were read', async t => {
  const fake = await fakeOps(undo => t.teardown(undo))
  const page = await visitOps(t, browser, `${fake.url}/ops/`)
  await page.route('**/ops/api/config', async route => {
    const config = (await (await route.fetch()).json()) as object
    await route.fulfill({ json: { ...config, files: { state: 'running' }, restartNeeded: [] } })
  })
  const read = Promise.withResolvers<void>()
  await page.route('**/ops/api/config/files', async route => {
    await read.promise
    const same = { state: 'same', reload: [], restart: [], risks: [], faults: [], files: [] }
    await route.fulfill({ json: same })
  })
  await openPanel(page, 'config')
  const card = page.getByRole('region', { name: 'The files' })
  await card.locator('.pill').waitFor()
  const same = card.getByText('The files hold what runs.')
  t.equal(await same.count(), 0)
  t.equal(await card.getByText('Loading').count(), 1)
  read.resolve()
  await same.waitFor()
})
