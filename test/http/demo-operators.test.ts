/** The operators' page of the demo. */
import t from 'tap'
import { running } from '../support/command.ts'
import { callOps, signInToOps } from '../support/operator.ts'
import { freePorts } from '../support/ports.ts'

t.test(
  'case R12: the demo prints a link that opens the operators’ page by one click, and admin signs in',
  async t => {
    const [port, opsPort, backendPort] = await freePorts(3)
    const demo = running(t.after, process.execPath, ['examples/demo.js'], {
      LISTEN: `127.0.0.1:${port}`,
      OPS_LISTEN: `127.0.0.1:${opsPort}`,
      BACKEND_PORT: String(backendPort)
    })
    const printed = await demo.says('Stop with')
    const page = /Operators: +(http:\S+)/.exec(printed)?.[1] ?? ''
    const { origin, pathname } = new URL(page)
    t.equal(origin, `http://127.0.0.1:${opsPort}`)
    const opened = await callOps(origin, pathname, {})
    t.match(opened, { status: 303, headers: { location: '/ops/' } })
    const read = async (answer: typeof opened) => {
      const cookie = String(answer.headers['set-cookie']).split(';')[0] ?? ''
      const headers = { cookie, 'sec-fetch-site': 'same-origin' }
      return (await callOps(origin, '/ops/api/status', { headers })).status
    }
    t.equal(await read(opened), 200)
    const signIn = async (username: string) =>
      await signInToOps(origin, username, { password: 'ant.design' })
    const signedIn = await signIn('admin')
    t.equal(signedIn.status, 303)
    t.equal(await read(signedIn), 200)
    t.equal((await signIn('user')).status, 403, 'who has not the role is refused')
    demo.signal('SIGINT')
    t.match(await demo.ended, { code: 0 })
  }
)
