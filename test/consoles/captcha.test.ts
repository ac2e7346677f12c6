/** Consoles with the captchas of their own back-ends, through the gateway. */
import t from 'tap'
import { ginVueAdmin as ginVueAdminBackend } from './backends/gin-vue-admin.ts'
import { jeecg as jeecgBackend } from './backends/jeecg.ts'
import { ruoyi as ruoyiBackend } from './backends/ruoyi.ts'
import { yudao as yudaoBackend } from './backends/yudao.ts'
import { ginVueAdmin } from './consoles/gin-vue-admin.ts'
import { jeecg } from './consoles/jeecg.ts'
import { ruoyi } from './consoles/ruoyi.ts'
import { yudao } from './consoles/yudao.ts'
import { OpenConsole } from './driver.ts'
import { startPair } from './pair.ts'
import { admin, captchaText } from './server.ts'

/** Of the back-end's picture; otherwise the console gets a constant. */
const rewritten = (rewrite: string) => ({ upstream: 'backend', rewrite, answer: null })
const yudaoRoute = (name: string) => ({
  ...{ path: `/admin-api/system/captcha/${name}`, methods: ['POST'] },
  ...{ access: 'public', upstream: 'backend' }
})

/** The routes are as the page of the console's preset says. */
const captchas = [
  {
    console: ruoyi,
    backend: ruoyiBackend,
    routes: { 'ruoyi-captcha': rewritten('/captchaImage') },
    picture: '/captchaImage'
  },
  {
    console: jeecg,
    backend: jeecgBackend,
    routes: { 'jeecg-captcha': rewritten('/jeecg-boot/sys/randomImage/*') },
    picture: '/jeecg-boot/sys/randomImage/'
  },
  {
    console: yudao,
    backend: yudaoBackend,
    routes: { 'captcha-get': yudaoRoute('get'), 'captcha-check': yudaoRoute('check') },
    picture: '/admin-api/system/captcha/get',
    // The slider's own words: its check refuses before anything is sent to the sign-in.
    wrongCaptcha: '验证失败'
  },
  {
    console: ginVueAdmin,
    backend: ginVueAdminBackend,
    routes: { 'gin-vue-admin-captcha': rewritten('/base/captcha') },
    picture: '/base/captcha'
  }
]

const { username, password } = admin
const out = { at: 'sign-in', content: undefined }
/** One refused password locks the account. */
const lockout = { accountAndAddress: { failures: 1 }, address: 'off', knownBrowser: false }

for (const { console: spec, backend: family, routes, picture, wrongCaptcha } of captchas) {
  const options = { backend: { captcha: true }, routes, lockout }
  const title = `${spec.name} × ${family.name}`
  void t.test(`${title}: a wrong captcha locks nobody, and the right one lets in`, async t => {
    const { backend, page } = await startPair(t.after, spec, family, options)
    const console = new OpenConsole(spec, page)
    for (const attempt of [1, 2, 3]) {
      const wrong = await console.signIn({ username, password, captcha: '000000' })
      t.match(wrong, out, `attempt ${attempt}`)
      t.strictSame(wrong.messages, [wrongCaptcha ?? family.wrongCaptcha])
    }
    const pictures = backend.calls.filter(({ path }) => path.startsWith(picture))
    t.equal(pictures.length, 3, 'each attempt has a picture of the back-end')
    const right = await console.signIn({ username, password, captcha: captchaText })
    t.match(right, { at: 'inside', content: { name: admin.name }, messages: [] })
    t.match(await console.list(2, 10), { content: { total: 25 }, messages: [] })
  })

  void t.test(`${title}: a wrong password beside a right captcha counts`, async t => {
    const { page } = await startPair(t.after, spec, family, options)
    const console = new OpenConsole(spec, page)
    const attempt = () => console.signIn({ username, password: 'wrong-one', captcha: captchaText })
    t.strictSame((await attempt()).messages, [family.wrongPassword])
    const locked = await console.signIn({ username, password, captcha: captchaText })
    t.match(locked, out, 'the account is locked')
  })
}

void t.test(
  'yudao × yudao: a sign-in without a captcha gets the message, and locks nobody',
  async t => {
    const options = { backend: { captcha: true }, lockout }
    const { page } = await startPair(t.after, yudao, yudaoBackend, options)
    const console = new OpenConsole(yudao, page)
    for (const attempt of [1, 2, 3]) {
      const refused = await console.signIn({ username, password })
      t.match(refused, out, `attempt ${attempt}`)
      t.strictSame(refused.messages, [yudaoBackend.wrongCaptcha])
    }
  }
)
