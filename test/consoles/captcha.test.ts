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
