/** jeecg's console signs the parameters of its requests over the public URL; its back-end checks. */
import t from 'tap'
import { jeecg as backendSpec } from './backends/jeecg.ts'
import { jeecg, sign } from './consoles/jeecg.ts'
import { OpenConsole } from './driver.ts'
import type { Page } from './page.ts'
import { startPair } from './pair.ts'
import { admin } from './server.ts'

const signed = { signUrls: ['/sys/annountCement/list'] }

for (const query of [undefined, { paging: false }]) {
  const how = query === undefined ? 'paging of both presets' : 'paging: false'
  void t.test(`jeecg × jeecg: X-Sign of a list fits the unchanged query, ${how}`, async t => {
    const routes = { list: { ...(query !== undefined && { query }) } }
    const { backend, page } = await startPair(t.after, jeecg, backendSpec, {
      backend: signed,
      routes
    })
    const console = new OpenConsole(jeecg, page)
    await console.signIn(admin)
    const list = await console.list(2, 10)
    t.match(list, { content: { total: 25 }, messages: [] })
    t.equal(list.content?.rows[0]?.['title'], 'Notice 11')
    const sent = page.sent.find(each => each.includes('/list?'))
    const received = backend.calls.find(({ path }) => path.endsWith('/list'))
    t.equal(received?.query.toString(), sent?.split('?')[1], 'the query is as it was sent')
  })
}

void t.test('jeecg × jeecg: a changed query does not fit X-Sign', async t => {
  const routes = { list: { query: { set: { column: 'id' } } } }
  const options = { backend: signed, routes }
  const { page } = await startPair(t.after, jeecg, backendSpec, options)
  const console = new OpenConsole(jeecg, page)
  await console.signIn(admin)
  const list = await console.list(2, 10)
  t.equal(list.content, undefined)
  t.strictSame(list.messages, ['Sign签名校验失败！'], 'the console shows the back-end’s message')
})

void t.test('jeecg × jeecg: X-Sign of a dictionary fits its path', async t => {
  const dictionaries = {
    path: '/jeecgboot/sys/dict/getDictItems/*',
    upstream: 'backend',
    rewrite: '/jeecg-boot/sys/dict/getDictItems/*',
    query: { paging: false },
    shape: 'record'
  }
  const { page } = await startPair(t.after, jeecg, backendSpec, { routes: { dictionaries } })
  await new OpenConsole(jeecg, page).signIn(admin)
  const fetched = await Promise.all(
    [
      'sys_user,realname,username',
      encodeURIComponent('sys_user,realname,username'),
      "sys_user,realname,id,username!='admin'%20order%20by%20create_time",
      'notice_state'
    ].map(name => dictionary(page, name))
  )
  for (const body of fetched) t.match(body, { code: 200, result: [{ value: '1', text: 'One' }] })
  t.match(await dictionary(page, 'a,b', 'a,c'), { code: 500, message: 'Sign签名校验失败！' })
  t.match(await dictionary(page, 'a,b', 'a,b', 300_001), {
    code: 500,
    message: '签名验证失败，请求时效性验证失败！'
  })
})

async function dictionary(page: Page, name: string, signedName = name, ageMs = 0) {
  const path = '/jeecgboot/sys/dict/getDictItems/'
  const headers = {
    'X-TIMESTAMP': String(page.now() - ageMs),
    'X-Sign': sign(`${path}${signedName}`, {})
  }
  const response = await page.fetch(`${path}${name}`, { headers })
  return JSON.parse(await response.text()) as unknown
}
