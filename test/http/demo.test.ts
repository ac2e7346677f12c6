/** The demo: each line that it prints does what it says. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { callOnce } from '../support/call.ts'
import { running } from '../support/command.ts'
import { callOps, signInToOps } from '../support/operator.ts'
import { freePorts } from '../support/ports.ts'
import { cookieIn } from '../support/sign-in.ts'

const [port, opsPort, backendPort] = await freePorts(3)
const demo = running(t.after, process.execPath, ['src/launch.js', 'demo'], {
  LISTEN: `127.0.0.1:${port}`,
  OPS_LISTEN: `127.0.0.1:${opsPort}`,
  BACKEND_PORT: String(backendPort)
})
const printed = await demo.says('Stop with')
const limitsFile = /\S+limits\.yaml/.exec(printed)?.[0] ?? ''
const url = `http://127.0.0.1:${port}`
const json = { username: 'user', password: 'ant.design' }
const signedIn = await callOnce(`${url}/api/auth/admin/login`, { json })
const cookie = cookieIn(signedIn.headers['set-cookie'])
const notices = async () => (await callOnce(`${url}/api/notices`, { headers: { cookie } })).status

t.test('case U14: it shows a call before and after', t => {
  t.match(printed, `The console: ${url}`)
  t.match(printed, /at the back-end: +\{"code":200,"result":\{"list":\[\{"noticeId":"N-2048"/)
  t.match(printed, /at the gateway: +\{"ok":true,.*"data":\[\{"id":"N-2048"/)
  t.end()
})

t.test('case R12: it prints a link to the operators’ page; admin signs in', async t => {
  const page = /Operators' page +(http:\S+)/.exec(printed)?.[1] ?? ''
  const { origin, pathname } = new URL(page)
  t.equal(origin, `http://127.0.0.1:${opsPort}`)
  const opened = await callOps(origin, pathname, {})
  t.match(opened, { status: 303, headers: { location: '/ops/' } })
  const signIn = async (username: string) =>
    await signInToOps(origin, username, { password: 'ant.design' })
  const admin = await signIn('admin')
  for (const answer of [opened, admin]) {
    t.equal(answer.status, 303)
    const mine = String(answer.headers['set-cookie']).split(';')[0] ?? ''
    const headers = { 'cookie': mine, 'sec-fetch-site': 'same-origin' }
    t.equal((await callOps(origin, '/ops/api/status', { headers })).status, 200)
  }
  t.equal((await signIn('user')).status, 403, 'who has not the role is refused')
})

t.test('case U14: the back-end stops and starts again', async t => {
  t.equal(await notices(), 200)
  demo.type('b\n')
  await demo.says('The back-end stops.')
  t.equal(await notices(), 502)
  demo.type('b\n')
  await demo.says('The back-end starts again.')
})

t.test('case U14: a limit is changed while it runs', async t => {
  const limits = readFileSync(limitsFile, 'utf8')
  writeFileSync(limitsFile, limits.replace('max: 30', 'max: 3'))
  await demo.says('limits.notices.max')
  const statuses = [await notices(), await notices(), await notices(), await notices()]
  t.ok(statuses.includes(429), String(statuses))
})

t.test('it ends by a signal, and leaves nothing', async t => {
  demo.signal('SIGINT')
  t.match(await demo.ended, { code: 0 })
  t.notOk(existsSync(limitsFile))
})
