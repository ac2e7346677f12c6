/** `init` with presets: the short form, checked, started and signed in to. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ruoyi } from '../../consoles/backends/ruoyi.ts'
import { admin, startBackend } from '../../consoles/server.ts'
import { run } from '../../support/command.ts'
import { gatewayOn, runInit } from '../../support/init.ts'
import { cookieIn } from '../../support/sign-in.ts'

t.test(
  'with presets of both sides the written files are short, and the console signs in',
  async t => {
    const { username, password } = admin
    const backend = await startBackend(t.after, ruoyi)
    const presets = ['--console', 'vben', '--backend', 'ruoyi', '--backend-url', backend.url]
    const words = [...presets, '--route', ruoyi.list.path]
    const { code, out, err, folder } = await runInit(t.after, words, '')
    t.same({ code, err }, { code: 0, err: '' })
    t.equal(backend.calls.length, 0, 'no account is needed')
    t.match(out, /Guessed: lists/)
    const text = readFileSync(join(folder, 'gateway.yaml'), 'utf8')
    t.match(text, /^extends: vben\n\n?backend: ruoyi$/m)
    t.notMatch(readFileSync(join(folder, 'routes.yaml'), 'utf8'), /^shapes:|credential:/m)
    t.match(await run(['check', '--config', folder]), { code: 0 })
    const gateway = await gatewayOn(t.after, folder)
    const { status, headers } = await gateway.call('/api/auth/login', {
      json: { username, password }
    })
    t.equal(status, 200)
    const cookie = cookieIn(headers.getSetCookie())
    const list = await gateway.call(`/api${ruoyi.list.path}?page=2&pageSize=10`, { cookie })
    t.match(list.json, { code: 0, data: { total: 25, items: [{ noticeId: 11 }] } })
  }
)

t.test(
  'with a preset of the back-end alone, lists have a shape for a console of no family',
  async t => {
    const { username, password } = admin
    const backend = await startBackend(t.after, ruoyi)
    const words = ['--backend', 'ruoyi', '--backend-url', backend.url, '--route', ruoyi.list.path]
    const { code, folder } = await runInit(t.after, words, '')
    t.equal(code, 0)
    const gateway = await gatewayOn(t.after, folder)
    const signedIn = await gateway.call('/api/auth/admin/login', { json: { username, password } })
    const cookie = cookieIn(signedIn.headers.getSetCookie())
    const list = await gateway.call(`/api${ruoyi.list.path}?current=2&pageSize=10`, { cookie })
    t.match(list.json, { success: true, total: 25, data: [{ noticeId: 11 }] })
  }
)
