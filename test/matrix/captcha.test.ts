/** Consoles with the captchas of their own back-ends, through the gateway. */
import t from 'tap'
import { type BackendFamily, captchaText, users } from './backend.ts'
import { backend as ginVueAdminBackend } from './backends/gin-vue-admin.ts'
import { backend as jeecgBackend } from './backends/jeecg.ts'
import { backend as ruoyiBackend } from './backends/ruoyi.ts'
import { backend as yudaoBackend } from './backends/yudao.ts'
import { ginVueAdmin } from './consoles/gin-vue-admin.ts'
import { jeecg } from './consoles/jeecg.ts'
import { ruoyi } from './consoles/ruoyi.ts'
import { yudao } from './consoles/yudao.ts'
import type { Driver } from './driver.ts'
import { startPair } from './pair.ts'

interface Captcha {
  readonly console: Driver
  readonly family: BackendFamily
  /** As the page of the console's preset says. */
  readonly routes: Readonly<Record<string, object>>
  /** The call of the back-end with the picture. */
  readonly picture: string
  /** What the console shows for a wrong text; default: the message of the back-end's sign-in. */
  readonly wrongCaptcha?: string
}

const yudaoRoute = (name: string) => ({
  path: `/admin-api/system/captcha/${name}`,
  methods: ['POST'],
  access: 'public',
  upstream: 'backend'
})

const captchas: readonly Captcha[] = [
  {
    console: ruoyi,
    family: ruoyiBackend,
    routes: {
      'ruoyi-captcha': { upstream: 'backend', rewrite: '/captchaImage', answer: null }
    },
    picture: '/captchaImage'
  },
  {
    console: jeecg,
    family: jeecgBackend,
    routes: {
      'jeecg-captcha': {
        upstream: 'backend',
        rewrite: '/jeecg-boot/sys/randomImage/*',
        answer: null
      }
    },
    picture: '/jeecg-boot/sys/randomImage/'
  },
  {
    console: yudao,
    family: yudaoBackend,
    routes: { 'captcha-get': yudaoRoute('get'), 'captcha-check': yudaoRoute('check') },
    picture: '/admin-api/system/captcha/get',
    // The slider's own words: its check refuses before anything is sent to the sign-in.
    wrongCaptcha: '验证失败'
  },
  {
    console: ginVueAdmin,
    family: ginVueAdminBackend,
    routes: {
      'gin-vue-admin-captcha': { upstream: 'backend', rewrite: '/base/captcha', answer: null }
    },
    picture: '/base/captcha'
  }
]

const { username, password } = users.admin
/** One refused password locks the account. */
const limits = {
  lockout: { accountAndAddress: { failures: 1 }, address: 'off', knownBrowser: false }
}

for (const { console: driver, family, routes, picture, wrongCaptcha } of captchas) {
  const options = { backend: { captcha: true }, routes, limits }
  const title = `${driver.name} × ${family.name}`
  void t.test(`${title}: a wrong captcha locks nobody, and the right one lets in`, async t => {
    const { backend, page } = await startPair(t.after, driver, family, options)
    const console = driver.open(page)
    for (const attempt of [1, 2, 3]) {
      const wrong = await console.signIn({ username, password, captcha: '000000' })
      t.match(wrong, { at: 'sign-in', content: undefined }, `attempt ${attempt}`)
      t.strictSame(wrong.messages, [wrongCaptcha ?? family.wrongCaptcha])
    }
    const pictures = backend.calls.filter(({ path }) => path.startsWith(picture))
    t.equal(pictures.length, 3, 'each attempt has a picture of the back-end')
    const right = await console.signIn({ username, password, captcha: captchaText })
    t.match(right, { at: 'inside', content: { name: users.admin.name }, messages: [] })
    t.match(await console.list(2, 10), { content: { total: 25 }, messages: [] })
  })

  void t.test(`${title}: a wrong password beside a right captcha counts`, async t => {
    const { page } = await startPair(t.after, driver, family, options)
    const console = driver.open(page)
    const attempt = () => console.signIn({ username, password: 'wrong-one', captcha: captchaText })
    t.strictSame((await attempt()).messages, [family.wrongPassword])
    const locked = await console.signIn({ username, password, captcha: captchaText })
    t.match(locked, { at: 'sign-in', content: undefined }, 'the account is locked')
  })
}

void t.test(
  'yudao × yudao: a sign-in without a captcha gets the message, and locks nobody',
  async t => {
    const options = { backend: { captcha: true }, limits }
    const { page } = await startPair(t.after, yudao, yudaoBackend, options)
    const console = yudao.open(page)
    for (const attempt of [1, 2, 3]) {
      const refused = await console.signIn({ username, password })
      t.match(refused, { at: 'sign-in', content: undefined }, `attempt ${attempt}`)
      t.strictSame(refused.messages, [yudaoBackend.wrongCaptcha])
    }
  }
)
