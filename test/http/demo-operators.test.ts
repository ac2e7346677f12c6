/** The operators' page of the demo. */
import t from 'tap'
import { running } from '../support/command.ts'
import { callOps } from '../support/operator.ts'
import { freePorts } from '../support/ports.ts'

t.test(
  'case R12: the demo prints the address of the operators’ page, and admin opens it',
  async t => {
    const [port, opsPort, backendPort] = await freePorts(3)
    const demo = running(t.after, process.execPath, ['examples/demo.js'], {
      LISTEN: `127.0.0.1:${port}`,
      OPS_LISTEN: `127.0.0.1:${opsPort}`,
      BACKEND_PORT: String(backendPort)
    })
    const printed = await demo.says('Stop with')
    const page = /Operators: +(http:\S+)/.exec(printed)?.[1] ?? ''
    t.equal(page, `http://127.0.0.1:${opsPort}/ops/`)
    t.equal((await fetch(page)).status, 200)
    const { origin } = new URL(page)
    const signIn = async (username: string) =>
      await callOps(origin, '/ops/api/sign-in', { json: { username, password: 'ant.design' } })
    const signedIn = await signIn('admin')
    t.equal(signedIn.status, 200)
    const cookie = String(signedIn.headers['set-cookie']).split(';')[0] ?? ''
    const now = await callOps(origin, '/ops/api/now', {
      headers: { cookie, 'sec-fetch-site': 'same-origin' }
    })
    t.equal(now.status, 200)
    t.equal((await signIn('user')).status, 403, 'who has not the role is refused')
    demo.signal('SIGINT')
    t.match(await demo.ended, { code: 0 })
  }
)
