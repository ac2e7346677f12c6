/** What families have of their own: captchas, signed requests, tokens that are renewed. */
import t, { type Test } from 'tap'
import { stopClock } from '../support/clock.ts'
import { directus } from './backends/directus.ts'
import { drf } from './backends/drf.ts'
import { ginVueAdmin as ginVueAdminBackend } from './backends/gin-vue-admin.ts'
import { jeecg as jeecgBackend } from './backends/jeecg.ts'
import { jsonApi } from './backends/json-api.ts'
import { ruoyi as ruoyiBackend } from './backends/ruoyi.ts'
import { yudao as yudaoBackend } from './backends/yudao.ts'
import { antDesignPro } from './consoles/ant-design-pro.ts'
import { ginVueAdmin } from './consoles/gin-vue-admin.ts'
import { jeecg, sign } from './consoles/jeecg.ts'
import { ruoyi } from './consoles/ruoyi.ts'
import { vben } from './consoles/vben.ts'
import { yudao } from './consoles/yudao.ts'
import { OpenConsole } from './driver.ts'
import type { Page } from './page.ts'
import { startPair } from './pair.ts'
import { admin, captchaText } from './server.ts'

/** Of the back-end's picture, as the page of the preset says; otherwise it is a constant. */
const rewritten = (name: string, rewrite: string) => ({
  [`${name}-captcha`]: { upstream: 'backend', rewrite, answer: null }
})
const ofYudao = (name: string) => ({
  path: `/admin-api/system/captcha/${name}`,
  methods: ['POST'],
  access: 'public',
  upstream: 'backend'
})
const slider = { 'captcha-get': ofYudao('get'), 'captcha-check': ofYudao('check') }

/** The last is the call of the picture. */
const captchas = [
  [ruoyi, ruoyiBackend, rewritten('ruoyi', '/captchaImage'), '/captchaImage'],
  [
    jeecg,
    jeecgBackend,
    rewritten('jeecg', '/jeecg-boot/sys/randomImage/*'),
    '/jeecg-boot/sys/rand'
  ],
  [yudao, yudaoBackend, slider, '/admin-api/system/captcha/get'],
  [ginVueAdmin, ginVueAdminBackend, rewritten('gin-vue-admin', '/base/captcha'), '/base/captcha']
] as const
/** The slider's own words: its check refuses before anything is sent to the sign-in. */
const ownWords: Readonly<Record<string, string>> = { yudao: '验证失败' }

const { username, password } = admin
const out = { at: 'sign-in', content: undefined }
/** One refused password locks the account. */
const lockout = { accountAndAddress: { failures: 1 }, address: 'off', knownBrowser: false }

for (const [spec, family, routes, picture] of captchas) {
  void t.test(`${spec.name} × ${family.name}: only a wrong password counts`, async t => {
    const options = { backend: { captcha: true }, routes, lockout }
    const { backend, page } = await startPair(t.after, spec, family, options)
    const console = new OpenConsole(spec, page)
    const signIn = async (typed: string, captcha?: string) =>
      await console.signIn({ username, password: typed, ...(captcha && { captcha }) })
    for (const attempt of [1, 2, 3]) {
      const wrong = await signIn(password, '000000')
      t.match(wrong, out, `a wrong captcha, attempt ${attempt}`)
      t.strictSame(wrong.messages, [ownWords[spec.name] ?? family.wrongCaptcha])
      const pictures = backend.calls.filter(({ path }) => path.startsWith(picture))
      t.equal(pictures.length, attempt, 'each attempt has a picture of the back-end')
      if (spec !== yudao) continue
      const without = await signIn(password)
      t.match(without, out, 'a slider that is switched off')
      t.strictSame(without.messages, [family.wrongCaptcha])
    }
    const right = await signIn(password, captchaText)
    t.match(right, { at: 'inside', content: { name: admin.name } })
    const list = await console.list(2, 10)
    t.match(list, { content: { total: 25 } })
    t.strictSame([...right.messages, ...list.messages], [])
    await console.signOut()
    t.strictSame((await signIn('wrong-one', captchaText)).messages, [family.wrongPassword])
    t.match(await signIn(password, captchaText), out, 'the account is locked')
  })
}

/** jeecg’s console signs the parameters of its requests over the public URL; its back-end checks. */
const signUrls = ['/sys/annountCement/list']
const wrongSign = 'Sign签名校验失败！'

async function signedIn(t: Test, routes: Readonly<Record<string, object>>, backend = {}) {
  const pair = await startPair(t.after, jeecg, jeecgBackend, { backend, routes })
  const console = new OpenConsole(jeecg, pair.page)
  await console.signIn(admin)
  return { ...pair, console }
}

for (const [how, list, isSame] of [
  ['with the paging of both presets', {}, true],
  ['with paging: false', { query: { paging: false } }, true],
  ['not one that is changed', { query: { set: { column: 'id' } } }, false]
] as const) {
  void t.test(`jeecg × jeecg: X-Sign of a list fits the unchanged query: ${how}`, async t => {
    const { backend, page, console } = await signedIn(t, { list }, { signUrls })
    const { content, messages } = await console.list(2, 10)
    const shown = [content?.total, content?.rows[0]?.['title'], messages]
    t.strictSame(shown, isSame ? [25, 'Notice 11', []] : [undefined, undefined, [wrongSign]])
    const sent = page.sent.find(each => each.includes('/list?'))
    const received = backend.calls.find(({ path }) => path.endsWith('/list'))
    t.equal(received?.query.toString() === sent?.split('?')[1], isSame)
  })
}

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

/** With the minutes that the back-end says its tokens are valid. */
const renewing = [
  [yudao, yudaoBackend, 30],
  [ruoyi, yudaoBackend, 30],
  [jeecg, yudaoBackend, 30],
  [antDesignPro, directus, 15],
  [yudao, directus, 15],
  [vben, jsonApi, 15],
  [antDesignPro, drf, 5]
] as const

for (const [spec, family, minutes] of renewing) {
  const title = `${spec.name} × ${family.name}`
  void t.test(`${title}: a token is renewed, and a refused renewal leads out once`, async t => {
    const passTime = stopClock(t.after)
    const { backend, page, expected } = await startPair(t.after, spec, family)
    const console = new OpenConsole(spec, page)
    const reloaded = async () => await new OpenConsole(spec, page).start()
    const grow = async () => {
      passTime(minutes * 30_000)
      t.match(await console.list(1, 10), { at: 'inside', content: { total: 25 } })
      passTime(minutes * 30_000)
    }
    await console.signIn(expected)
    await grow()
    backend.tokens.expireAccess()
    const before = page.sent.length
    const { messages, ...list } = await console.list(2, 10)
    t.match(list, { at: 'inside', content: { total: 25 } })
    t.same(messages, [], 'the user sees nothing')
    t.equal(page.sent.length - before, 1, 'the console sends its request once')
    t.match(await console.save({ title: 'New' }), { at: 'inside', content: { saved: true } })
    t.match(await reloaded(), { at: 'inside' }, 'still inside after a reload')

    await grow()
    backend.tokens.endAll()
    const refusedAt = page.sent.length
    t.match(await console.list(2, 10), { at: 'sign-in', content: undefined })
    const sent = page.sent.slice(refusedAt)
    t.ok(sent.length <= 3, sent.join(', '))
    t.match(await reloaded(), { at: 'sign-in' }, 'after a reload, too')
    t.match(await console.signIn(expected), { at: 'inside' }, 'and in again')
    t.match(await console.list(2, 10), { content: { total: 25 } })
  })
}
