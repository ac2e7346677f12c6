/** Tokens that a back-end renews or ends, and what the user of a console sees of it. */
import t from 'tap'
import { stopClock } from '../support/clock.ts'
import type { BackendSpec } from './backend.ts'
import { directus } from './backends/directus.ts'
import { jsonApi } from './backends/json-api.ts'
import { yudao as yudaoBackend } from './backends/yudao.ts'
import type { ConsoleSpec } from './console.ts'
import { antDesignPro } from './consoles/ant-design-pro.ts'
import { jeecg } from './consoles/jeecg.ts'
import { ruoyi } from './consoles/ruoyi.ts'
import { vben } from './consoles/vben.ts'
import { yudao } from './consoles/yudao.ts'
import { OpenConsole } from './driver.ts'
import { startPair } from './pair.ts'

const minute = 60_000

/** With the time that the back-end says its tokens are valid. */
const renewing: ReadonlyArray<readonly [ConsoleSpec, BackendSpec, tokenLifetimeMs: number]> = [
  [yudao, yudaoBackend, 30 * minute],
  [ruoyi, yudaoBackend, 30 * minute],
  [jeecg, yudaoBackend, 30 * minute],
  [antDesignPro, directus, 15 * minute],
  [yudao, directus, 15 * minute],
  [vben, jsonApi, 15 * minute]
]

for (const [spec, family, tokenLifetimeMs] of renewing) {
  const title = `${spec.name} × ${family.name}`
  void t.test(
    `${title}: an expired token is renewed, a refused renewal leads out once`,
    async t => {
      const passTime = stopClock(t.after)
      const { backend, page, expected } = await startPair(t.after, spec, family)
      const console = new OpenConsole(spec, page)
      const grow = async () => {
        passTime(tokenLifetimeMs / 2)
        t.match(await console.list(1, 10), { at: 'inside', content: { total: 25 } })
        passTime(tokenLifetimeMs / 2)
      }
      await console.signIn(expected)
      await grow()
      backend.expireTokens()
      const before = page.sent.length
      const list = await console.list(2, 10)
      t.match(list, { at: 'inside', content: { total: 25 }, messages: [] }, 'the user sees nothing')
      t.equal(page.sent.length - before, 1, 'the console sends its request once')
      t.match(await console.save({ title: 'New' }), { at: 'inside', content: { saved: true } })
      t.match(
        await new OpenConsole(spec, page).start(),
        { at: 'inside' },
        'still inside after a reload'
      )

      await grow()
      backend.endAllSessions()
      const refusedAt = page.sent.length
      t.match(await console.list(2, 10), { at: 'sign-in', content: undefined })
      const sent = page.sent.slice(refusedAt)
      t.ok(sent.length <= 3, sent.join(', '))
      t.match(await new OpenConsole(spec, page).start(), { at: 'sign-in' }, 'after a reload, too')
      t.match(await console.signIn(expected), { at: 'inside' }, 'and in again')
      t.match(await console.list(2, 10), { content: { total: 25 }, messages: [] })
    }
  )
}
