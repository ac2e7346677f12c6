import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { runProcess } from '../support/command.ts'
import { textFolder } from '../support/config-files.ts'
import { configFolder } from '../support/gateway.ts'
import { startGatewayProcess } from '../support/gateway-process.ts'
import { testUpstream } from '../support/upstream.ts'

/** A gateway that listens, as a process of its own. */
async function started(t: Test, gateway: Record<string, unknown>) {
  return await startGatewayProcess(t.after, await configFolder({ gateway }))
}

t.test('a gateway whose config is well writes nothing on standard error', async t => {
  const folder = await configFolder()
  const gateway = await startGatewayProcess(t.after, folder)
  t.same(gateway.complaints(), [])
})

t.test('a broken config is told in whole, and the exit code is 1', async t => {
  const folder = textFolder(t.after, {
    'gateway.yaml': 'server:\n  lisen: x\nsession:\n  secrets: [literal-secret]\n',
    'limits.yaml': 'limits: 5\n'
  })
  const { code, out, err } = await runProcess(['start', '--config', folder])
  t.same({ code, out }, { code: 1, out: '' })
  for (const line of [
    'gateway.yaml:2 server.lisen: unknown key "lisen". Did you mean "listen"?\n',
    'gateway.yaml:4 session.secrets.0: a secret never stands in the file itself',
    'limits.yaml:1 limits: expected a mapping, found 5\n'
  ]) {
    t.match(err, `${folder}/${line}`)
  }
  t.notMatch(err, /literal-secret|^ +at /m)
  const expecting = textFolder(t.after, {
    'routes.yaml': 'expect: { open: { request: GET /api/account/profile, status: 200 } }'
  })
  t.match(await runProcess(['start', '--config', expecting]), {
    code: 1,
    err: 'routes.yaml:1 expect.open.status: expected 200, got 401 session.none'
  })
})

t.test('an address that the machine does not have, or not free, gives one line', async t => {
  const { host } = new URL((await testUpstream(t.after)).url)
  const used = `${host} is in use by another process: see server.listen and ops.listen in gateway.yaml.`
  for (const [section, listen, line] of [
    ['server', '192.0.2.1:8080', '192.0.2.1:8080 is no address of this machine: see server.listen'],
    ['server', 'gateway.invalid:1', 'gateway.invalid is a name without an address: see server.li'],
    ['server', host, used],
    ['ops', host, used]
  ] as const) {
    const folder = await configFolder({ gateway: { [section]: { listen } } })
    const { code, err } = await runProcess(['start', '--config', folder])
    t.match({ code, err }, { code: 1, err: line }, line)
    t.equal(err.trim().split('\n').length, 1)
  }
})

t.test('a second SIGTERM ends it at once, and what is logged is JSON', async t => {
  const gateway = await started(t, { drain: { notice: '60s', grace: '60s' } })
  gateway.signal('SIGTERM')
  await gateway.says('stopping')
  gateway.signal('SIGTERM')
  t.same(await gateway.ended, { code: 1, signal: null })
  const lines = (await gateway.says('a second SIGTERM')).trim().split('\n')
  t.doesNotThrow(() => lines.map(line => JSON.parse(line) as unknown))
})

t.test('Ctrl+C does not wait for load balancers', async t => {
  const gateway = await started(t, { drain: { notice: '60s', grace: '2s' } })
  gateway.signal('SIGINT')
  t.same(await gateway.ended, { code: 0, signal: null })
})

t.test('SIGHUP reloads, and the process lives on', async t => {
  const folder = await configFolder()
  const gateway = await startGatewayProcess(t.after, folder)
  const file = join(folder, 'limits.yaml')
  writeFileSync(file, readFileSync(file, 'utf8').replace('max: 100000', 'max: 20'))
  gateway.signal('SIGHUP')
  await gateway.says('config reloaded: limits.signed-in.max 100000 → 20')
  gateway.signal('SIGHUP')
  await gateway.says('the config files are unchanged: nothing to reload')
  t.same(await gateway.stop(), { code: 0, signal: null })
})
