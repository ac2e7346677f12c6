import { join } from 'node:path'
import t from 'tap'
import { programOf, refusalOf } from '../../src/cli/program.ts'
import { running } from '../support/command.ts'
import { testGateway } from '../support/gateway.ts'
import { freePorts } from '../support/ports.ts'

const first = { pidFile: undefined, isSuccessor: false }
const host = { pid: 40, ppid: 30, env: {}, init: 'systemd' }

t.test('the first process of a container is not replaced, nor one that it started', async t => {
  t.match(refusalOf(first, { ...host, pid: 1, ppid: 0 }), /this is process 1.*rolling update/)
  const ofInit = refusalOf({ ...first, pidFile: '/run/pid' }, { ...host, ppid: 1, init: 'sh' })
  t.match(ofInit, /started by process 1 \(sh\).*rolling update/)
})

t.test('a service of systemd needs a PID file, by which systemd follows', async t => {
  const env = { SYSTEMD_EXEC_PID: '40' }
  for (const place of [
    { ...host, ppid: 1 },
    { ...host, ppid: 20, env },
    { ...host, pid: 41, ppid: 40, env }
  ]) {
    t.match(refusalOf(first, place), /--pid-file FILE.*PIDFile=FILE/)
    t.equal(refusalOf({ ...first, pidFile: '/run/pid' }, place), undefined)
  }
  // Every program of a desktop session inherits the variable.
  t.equal(refusalOf(first, { ...host, env: { SYSTEMD_EXEC_PID: '7' } }), undefined)
})

t.test('a process that has replaced another is replaced too, whoever adopted it', async t => {
  t.equal(refusalOf({ ...first, isSuccessor: true }, { ...host, ppid: 1 }), undefined)
})

t.test('the program is run by the path that was typed', async t => {
  const { argv } = process
  t.teardown(() => {
    process.argv = argv
  })
  const link = join(t.testdir({ current: t.fixture('symlink', '.') }), 'current/launch.js')
  process.argv = [process.execPath, link, 'start', '--config', 'x']
  const { words, folder } = programOf(first)
  t.same(words.slice(-4), [link, 'start', '--config', 'x'])
  t.equal(folder, process.cwd())
})

t.test('a gateway within another program is not restarted', async t => {
  const gateway = await testGateway(t.after)
  const answer = await gateway.ops('/ops/api/restart', { method: 'POST', json: {} })
  t.match(await answer.json(), { outcome: 'refused', reason: /a part of another program/ })
  const preview = await gateway.ops('/ops/api/restart', { method: 'POST', json: { preview: true } })
  t.match(await preview.json(), { act: 'gateway.restart', effect: { requests: 0 } })
})

t.test('the demo says that it cannot be restarted, and goes on', async t => {
  const [port, opsPort, backendPort] = await freePorts(3)
  const demo = running(t.after, process.execPath, ['examples/demo.js'], {
    LISTEN: `127.0.0.1:${port}`,
    OPS_LISTEN: `127.0.0.1:${opsPort}`,
    BACKEND_PORT: String(backendPort)
  })
  await demo.says('The console:')
  demo.signal('SIGUSR2')
  const written = await demo.says('"event":"restart.refused"')
  t.match(written, 'Stop it with Ctrl+C and start it again')
  t.equal((await fetch(`http://127.0.0.1:${port}/`)).status, 200)
  demo.signal('SIGINT')
  t.match(await demo.ended, { code: 0 })
})
