/** The units of deploy/systemd, and sockets that systemd hands over. */
import { spawnSync } from 'node:child_process'
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import t from 'tap'
import { running } from '../support/command.ts'
import { configFolder } from '../support/gateway.ts'
import { freePorts } from '../support/ports.ts'
import { temporaryFolder } from '../support/temporary.ts'
import { until } from '../support/until.ts'

t.test('systemd-analyze finds no fault in the units', async t => {
  const folder = temporaryFolder()
  cpSync(resolve('deploy/systemd'), folder, { recursive: true })
  const service = join(folder, 'console-gateway@.service')
  const text = readFileSync(service, 'utf8')
  t.match(text, 'ExecStart=/usr/bin/console-gateway start')
  writeFileSync(service, text.replace('/usr/bin/console-gateway', '/bin/true'))
  const units = readdirSync(folder).map(name => join(folder, name.replace('@', '@1')))
  for (const name of readdirSync(folder)) {
    cpSync(join(folder, name), join(folder, name.replace('@', '@1')))
  }
  const { status, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', ...units], {
    encoding: 'utf8',
    env: { ...process.env, SYSTEMD_UNIT_PATH: `${folder}:` }
  })
  t.equal(status, 0, stderr)
  t.notMatch(stderr, 'console-gateway')
})

t.test('names and descriptors fit those of systemd', async t => {
  const [port = 0, opsPort = 0] = await freePorts(2)
  const folder = await configFolder({
    gateway: { server: { listen: '127.0.0.1:1' }, ops: { listen: '127.0.0.1:2' } }
  })
  const words = ['-l', `127.0.0.1:${port}`, '-l', `127.0.0.1:${opsPort}`, '--fdname=console:ops']
  const start = [process.execPath, resolve('src/launch.js'), 'start', '-c', folder]
  // It becomes the gateway, which ends with the test.
  running(t.after, 'systemd-socket-activate', [...words, ...start])
  const statusOf = async (url: string) => (await fetch(url)).status
  await until('the console’s port answers', async () => {
    return (await statusOf(`http://127.0.0.1:${port}/api/account/profile`)) === 401
  })
  t.equal(await statusOf(`http://127.0.0.1:${opsPort}/readyz`), 200)
})
