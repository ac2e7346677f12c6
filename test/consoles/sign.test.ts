/** jeecg's console signs the parameters of its requests over the public URL; its back-end checks. */
import t, { type Test } from 'tap'
import { jeecg as backendSpec } from './backends/jeecg.ts'
import { jeecg, sign } from './consoles/jeecg.ts'
import { OpenConsole } from './driver.ts'
import type { Page } from './page.ts'
import { startPair } from './pair.ts'
import { admin } from './server.ts'

const signUrls = ['/sys/annountCement/list']
const wrongSign = 'Sign签名校验失败！'

async function signedIn(t: Test, routes: Readonly<Record<string, object>>, backend = {}) {
  const pair = await startPair(t.after, jeecg, backendSpec, { backend, routes })
  const console = new OpenConsole(jeecg, pair.page)
  await console.signIn(admin)
  return { ...pair, console }
}

for (const [how, list] of [
  ['paging of both presets', {}],
  ['paging: false', { query: { paging: false } }]
] as const) {
  void t.test(`jeecg × jeecg: X-Sign of a list fits the unchanged query, ${how}`, async t => {
    const { backend, page, console } = await signedIn(t, { list }, { signUrls })
    const { content, messages } = await console.list(2, 10)
    const shown = [content?.total, content?.rows[0]?.['title'], messages]
    t.strictSame(shown, [25, 'Notice 11', []])
    const sent = page.sent.find(each => each.includes('/list?'))
    const received = backend.calls.find(({ path }) => path.endsWith('/list'))
    t.equal(received?.query.toString(), sent?.split('?')[1], 'the query is as it was sent')
  })
}

void t.test('jeecg × jeecg: a changed query does not fit X-Sign', async t => {
  const list = { query: { set: { column: 'id' } } }
  const { console } = await signedIn(t, { list }, { signUrls })
  const { content, messages } = await console.list(2, 10)
  t.same([content, messages], [undefined, [wrongSign]], 'with the back-end’s message')
})

void t.test('jeecg × jeecg: X-Sign of a dictionary fits its path', async t => {
  const dictionaries = {
    path: '/jeecgboot/sys/dict/getDictItems/*',
    upstream: 'backend',
    rewrite: '/jeecg-boot/sys/dict/getDictItems/*',
    query: { paging: false },
    shape: 'record'
  }
  const { page } = await signedIn(t, { dictionaries })
  for (const name of [
    'sys_user,realname,username',
    encodeURIComponent('sys_user,realname,username'),
    "sys_user,realname,id,username!='admin'%20order%20by%20create_time",
    'notice_state'
  ]) {
    const one = { code: 200, result: [{ value: '1', text: 'One' }] }
    t.match(await dictionary(page, name), one)
  }
  t.match(await dictionary(page, 'a,b', 'a,c'), { code: 500, message: wrongSign })
  const late = { code: 500, message: '签名验证失败，请求时效性验证失败！' }
  t.match(await dictionary(page, 'a,b', 'a,b', 300_001), late)
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
