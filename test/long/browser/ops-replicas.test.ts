/**
 * The ops page on two replicas with one Redis, and real traffic.
 * A session of an operator is the page's on both: they share the host, and cookies know no ports.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { join } from 'node:path'
import type { Locator, Page } from 'playwright-core'
import t from 'tap'
import { testBrowser } from '../../support/chromium.ts'
import { start } from '../../support/command.ts'
import { configFolder, testGateway } from '../../support/gateway.ts'
import { standstill } from '../../support/machine.ts'
import { askOps } from '../../support/ops.ts'
import { freePort } from '../../support/ports.ts'
import { testRedis } from '../../support/redis.ts'
import { cookieIn, password } from '../../support/sign-in.ts'
import { json, testUpstream } from '../../support/upstream.ts'
import { until } from '../../support/until.ts'
import { axeFindings, openPanel, visitOps } from '../../browser/ops-page.ts'

const environment = { SESSION_SECRET: 's'.repeat(32), AUDIT_KEY: 'a'.repeat(40) }
const cleanUp = (undo: () => unknown) => t.teardown(undo)

const [port, opsPort, pooledPort] = [await freePort(), await freePort(), await freePort()]
const urlA = `http://127.0.0.1:${port}`
const opsA = `http://127.0.0.1:${opsPort}`
const { folder, b } = await startReplicas()
let a = start(cleanUp, folder, environment)
const isUp = async () => (await fetch(`${opsA}/readyz`)).status === 200
await until('A is ready', isUp)
const pageA = await visitOps(t, await testBrowser(cleanUp), `${opsA}/ops/`)
const pageB = await openBoth()

async function startReplicas() {
  const redis = await testRedis(cleanUp)
  const upstream = await testUpstream(cleanUp, json(200, { ok: 1 }))
  const common = {
    redis: { url: redis.url, commandTimeout: '20s', connectTimeout: '20s' },
    session: { secrets: ['${SESSION_SECRET}'] },
    audit: { key: '${AUDIT_KEY}' },
    ops: { role: 'admin' }
  }
  const files = {
    routes: {
      upstreams: {
        backend: { url: upstream.url },
        pool: { urls: [upstream.url, `http://127.0.0.1:${pooledPort}`] }
      },
      routes: {
        orders: { path: '/api/orders', upstream: 'backend' },
        admins: { path: '/api/admins', upstream: 'backend', access: { roles: ['admin'] } },
        pooled: { path: '/api/pooled', upstream: 'pool' }
      }
    },
    limits: { limits: { 'signed-in': { by: 'user', max: 5000, window: '1m' } } }
  }
  const gateway = {
    ...common,
    server: { listen: `127.0.0.1:${port}` },
    reload: { watch: true },
    ops: { ...common.ops, listen: `127.0.0.1:${opsPort}` }
  }
  const ofA = await configFolder({ ...files, gateway })
  const ofB = await configFolder({ ...files, gateway: common })
  return { folder: ofA, b: await testGateway(cleanUp, ofB, environment) }
}

/** Signs in at A; the page of B then asks for no password. */
async function openBoth(): Promise<Page> {
  await pageA.getByLabel('User name').fill('alice')
  await pageA.getByLabel('Password').fill(password)
  await pageA.keyboard.press('Enter')
  await pageA.getByRole('heading', { level: 1, name: 'Now' }).waitFor()
  const page = await pageA.context().newPage()
  page.on('pageerror', error => t.fail(`the page threw: ${error.message}`))
  await page.goto(`${b.opsUrl}/ops/`)
  await page.getByRole('heading', { level: 1, name: 'Now' }).waitFor()
  return page
}

async function callA(path: string, cookie: string) {
  const response = await fetch(urlA + path, { headers: { cookie } })
  return { status: response.status, headers: response.headers, text: await response.text() }
}

async function signInA(): Promise<string> {
  const response = await fetch(`${urlA}/api/auth/admin/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ username: 'bob', password })
  })
  await response.text()
  return cookieIn(response.headers.getSetCookie())
}

const isOpenAtA = async (cookie: string) => (await callA('/api/orders', cookie)).status === 200
const isOpenAtB = async (cookie: string) => (await b.call('/api/orders', { cookie })).status === 200

/** Confirms an act once the dialog has said its effect. */
async function confirm(page: Page, effect: string, name: string): Promise<void> {
  const dialog = page.getByRole('dialog')
  await dialog.getByText(effect).waitFor()
  await dialog.getByRole('button', { name }).click()
}

/**
 * Whether an act is in force less than a second after the page said that it is done. What is asked
 * before that may be late; what the machine itself was late by is not the gateway's.
 */
async function withinASecond(act: string, condition: () => Promise<boolean>, page = pageA) {
  await page.getByText(`${act}: Done.`).waitFor()
  const doneAt = performance.now()
  const stoodStillMs = standstill()
  let notYetMs = 0
  await until(`${act} is in force`, async () => {
    const askedMs = performance.now() - doneAt
    if (await condition()) return true
    notYetMs = askedMs
    return false
  })
  t.comment(`${act}: not in force after ${Math.round(notYetMs)} ms, but then`)
  return notYetMs < 1000 + stoodStillMs()
}

const rowsOf = (page: Page, table: string): Locator =>
  page.getByRole('table', { name: table }).locator('tbody tr:not(.spacer)')

t.test('Now: charts move with the traffic; the process and the replicas are shown', async t => {
  const cookie = await signInA()
  const traffic = new AbortController()
  t.teardown(() => traffic.abort())
  const send = async (call: () => Promise<unknown>) => {
    while (!traffic.signal.aborted) await call()
  }
  const sending = [callA, callA].map(call => send(() => call('/api/orders', cookie)))
  sending.push(send(() => b.call('/api/orders', { cookie })))
  for (const page of [pageA, pageB]) {
    const rate = async () => {
      const text = await page.locator('.plot').first().getAttribute('aria-label')
      const [, now = '0', highest = '0'] =
        /^all: now ([\d.,]+), highest ([\d.,]+)/.exec(text ?? '') ?? []
      return { now: Number(now.replaceAll(',', '')), highest: Number(highest.replaceAll(',', '')) }
    }
    await until('the chart rises', async () => (await rate()).now > 1)
    const before = await rate()
    await until('the chart moves on', async () => (await rate()).now !== before.now)
    await page.getByRole('button', { name: 'orders' }).waitFor()
  }
  for (const [page, opsUrl] of [
    [pageA, opsA],
    [pageB, b.opsUrl]
  ] as const) {
    const now = (await (await askOps(opsUrl, '/ops/api/now')).json()) as {
      readonly process: { readonly pid: number }
    }
    const row = rowsOf(page, 'Process of this replica')
    await row.filter({ hasText: String(now.process.pid) }).waitFor()
  }
  for (const page of [pageA, pageB]) {
    const replicas = rowsOf(page, 'Replicas')
    await until('both replicas are ready', async () => {
      const texts = await replicas.allTextContents()
      return texts.length === 2 && texts.every(text => /ready/.test(text))
    })
    t.equal(await replicas.filter({ hasText: 'this one' }).count(), 1)
    t.same(await axeFindings(page), [])
  }
  traffic.abort()
  await Promise.all(sending)
  const rate = pageA.locator('.plot').first()
  await until('the chart falls, and knows the highest', async () =>
    /^all: now 0, highest [1-9]/.test((await rate.getAttribute('aria-label')) ?? '')
  )
})

t.test('Requests: a failed one is found by its id, from either replica', async t => {
  const cookie = await signInA()
  const found: string[] = []
  for (const call of [
    () => callA('/api/admins', cookie),
    () => b.call('/api/admins', { cookie })
  ]) {
    const { status, headers } = await call()
    t.equal(status, 403)
    found.push(headers.get('x-request-id') ?? '')
  }
  for (const page of [pageA, pageB]) {
    await openPanel(page, 'requests')
    for (const id of found) {
      await page.getByLabel('Request id').fill('no-such-request')
      await page.getByText('No request fits.').waitFor()
      await page.getByLabel('Request id').fill(id)
      await page.locator('tbody .link').click()
      const timeline = page.getByRole('complementary', { name: 'Timeline' })
      await timeline.getByText(id).waitFor()
      await timeline.getByText('route.forbidden').waitFor()
      await timeline.getByText('What to do:').waitFor()
      await timeline.getByText('bob').waitFor()
      await page.getByRole('button', { name: 'Close' }).click()
    }
  }
})

t.test('Sessions: one that is closed on the page of A is refused at B', async t => {
  const cookie = await signInA()
  t.ok(await isOpenAtB(cookie), 'B has it in its cache')
  await openPanel(pageA, 'sessions')
  await pageA.getByRole('button', { name: 'Close all sessions of bob' }).first().click()
  await confirm(pageA, '1 user is affected', 'Close all of the user')
  t.ok(await withinASecond('Close all of the user', async () => !(await isOpenAtB(cookie))))
  t.equal((await callA('/api/orders', cookie)).status, 401)
  await pageA.getByText('Nobody is signed in.').waitFor()
})

t.test('Config: a broken file shows its fault, and mended it is gone', async t => {
  await openPanel(pageA, 'config')
  await pageA.getByText('The files hold what runs.').waitFor()
  const file = join(folder, 'limits.yaml')
  const sound = readFileSync(file, 'utf8')
  writeFileSync(file, `${sound}lemons: {}\n`)
  const line = sound.split('\n').length
  const fault = pageA.getByRole('alert').getByText(new RegExp(`limits\\.yaml:${line}.*lemons`))
  await fault.first().waitFor()
  t.same(await axeFindings(pageA), [])
  writeFileSync(file, sound)
  await pageA.getByText('The files hold what runs.').waitFor()
  t.equal(await fault.count(), 0)
})

t.test('an address that does not work is said in words and turns red, until it does', async t => {
  const cookie = await signInA()
  await openPanel(pageA, 'now')
  const address = rowsOf(pageA, 'Upstreams').filter({ hasText: `127.0.0.1:${pooledPort}` })
  const open = address.locator('.pill.bad').getByText('failing', { exact: true })
  await until('it is open', async () => {
    t.equal((await callA('/api/pooled', cookie)).status, 200, 'the other address answers')
    return (await open.count()) === 1
  })
  t.same(await axeFindings(pageA), [])
  await listenAgain(pooledPort)
  await until('it works again', async () => {
    await callA('/api/pooled', cookie)
    return (await address.locator('.pill.ok').getByText('up', { exact: true }).count()) === 1
  })
  t.equal(await open.count(), 0)
})

async function listenAgain(pooled: number): Promise<Server> {
  const server = createServer((_request, response) => response.end('{}'))
  await new Promise<void>(resolve => server.listen(pooled, '127.0.0.1', resolve))
  cleanUp(() => {
    server.closeAllConnections()
    server.close()
  })
  return server
}

t.test('Maintenance: begun on A it is in force at B, after a restart too; ended on B', async t => {
  const cookie = await signInA()
  await openPanel(pageA, 'maintenance')
  await openPanel(pageB, 'maintenance')
  await pageA.getByLabel('Message for users').fill('Back at noon.')
  await pageA.getByRole('button', { name: 'Begin maintenance' }).click()
  await confirm(pageA, '2 replicas', 'Begin maintenance')
  t.ok(await withinASecond('Begin maintenance', async () => !(await isOpenAtB(cookie))))
  t.equal(await isOpenAtA(cookie), false)
  for (const page of [pageA, pageB]) {
    const card = page.getByRole('region', { name: 'Begun by operators' })
    await card.getByText('Back at noon.').waitFor()
    await card.getByText('alice').waitFor()
  }
  const hashOf = async () =>
    ((await (await askOps(opsA, '/ops/api/config')).json()) as { hash: string }).hash
  const hash = await hashOf()
  const file = join(folder, 'limits.yaml')
  writeFileSync(file, readFileSync(file, 'utf8').replace(/max: \d+/, 'max: 4000'))
  await until('A runs the new config', async () => (await hashOf()) !== hash)
  t.equal(await isOpenAtA(cookie), false, 'after a reload')

  a.signal('SIGTERM')
  await a.ended
  a = start(cleanUp, folder, environment)
  await until('A is ready', isUp)
  const closed = await callA('/api/orders', cookie)
  t.equal(closed.status, 503, 'after a restart')
  t.match(closed.text, 'Back at noon.')
  await pageA.reload()
  await pageA.getByText('Back at noon.').waitFor()

  await pageB.getByRole('button', { name: 'End maintenance' }).click()
  await confirm(pageB, '2 replicas', 'End maintenance')
  t.ok(await withinASecond('End maintenance', async () => await isOpenAtA(cookie), pageB))
  t.ok(await isOpenAtB(cookie))
  for (const page of [pageA, pageB]) await page.getByText('Operators closed nothing.').waitFor()
})
