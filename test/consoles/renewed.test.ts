/** Tokens that a back-end renews or ends, and what the user of a console sees of it. */
import t from 'tap'
import { stopClock } from '../support/clock.ts'
import { directus } from './backends/directus.ts'
import { jsonApi } from './backends/json-api.ts'
import { yudao as yudaoBackend } from './backends/yudao.ts'
import { antDesignPro } from './consoles/ant-design-pro.ts'
import { jeecg } from './consoles/jeecg.ts'
import { ruoyi } from './consoles/ruoyi.ts'
import { vben } from './consoles/vben.ts'
import { yudao } from './consoles/yudao.ts'
import { OpenConsole } from './driver.ts'
import { startPair } from './pair.ts'

/** With the minutes that the back-end says its tokens are valid. */
const renewing = [
  [yudao, yudaoBackend, 30],
  [ruoyi, yudaoBackend, 30],
  [jeecg, yudaoBackend, 30],
  [antDesignPro, directus, 15],
  [yudao, directus, 15],
  [vben, jsonApi, 15]
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
