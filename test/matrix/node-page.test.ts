import tap from 'tap'
import { createServer } from 'node:http'
import { listen } from '../support/ports.ts'
import { nodePage } from './node-page.ts'

void tap.test('a page keeps cookies as a browser does', async t => {
  const cookies: (string | undefined)[] = []
  const server = createServer((request, response) => {
    cookies.push(request.headers.cookie)
    if (request.url === '/in') {
      response.setHeader('set-cookie', [
        'sid=a=b; Path=/; HttpOnly; SameSite=Strict',
        'seen=1; Max-Age=10',
        'admin=1; Path=/admin'
      ])
    }
    if (request.url === '/out') response.setHeader('set-cookie', 'sid=; Max-Age=0; HttpOnly')
    response.end('{}')
  })
  t.teardown(() => server.close())
  let time = Date.now()
  const page = nodePage(`http://127.0.0.1:${await listen(server)}`, () => time)

  await page.fetch('/in', { method: 'POST' })
  t.equal(page.cookies.get('sid'), undefined, 'scripts do not see HttpOnly cookies')
  t.equal(page.cookies.get('seen'), '1')
  page.cookies.set('sid', 'forged')
  page.cookies.set('mine', '2', time + 5000)
  await page.fetch('/list')
  await page.fetch('/admin/list')
  time += 5000
  await page.fetch('/list')
  time += 5000
  await page.fetch('/out')
  await page.fetch('/list')

  t.strictSame(cookies, [
    undefined,
    'sid=a=b; seen=1; mine=2',
    'sid=a=b; seen=1; admin=1; mine=2',
    'sid=a=b; seen=1',
    'sid=a=b',
    undefined
  ])
  t.equal(page.requests.length, 6)
  t.match(page.requests[0], { method: 'POST', path: '/in', status: 200 })
})

void tap.test('a page says that its requests are of the same origin', async t => {
  const server = createServer((request, response) => {
    const { origin, 'sec-fetch-site': site } = request.headers
    response.end(JSON.stringify({ origin, site }))
  })
  t.teardown(() => server.close())
  const own = `http://127.0.0.1:${await listen(server)}`
  const page = nodePage(own)
  const post = await page.fetch('/save', { method: 'POST' })
  t.strictSame(JSON.parse(await post.text()), { origin: own, site: 'same-origin' })
  const get = await page.fetch('/list')
  t.strictSame(JSON.parse(await get.text()), { site: 'same-origin' })
  await t.rejects(page.fetch('http://elsewhere/'), { message: /Not a path of the origin/ })
})
