import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import t from 'tap'
import { running, runProcess, start } from '../support/command.ts'
import { textFolder } from '../support/config-files.ts'
import { configFolder } from '../support/gateway.ts'
import { startGatewayProcess } from '../support/gateway-process.ts'

const ready = async (
  cleanUp: (undo: () => unknown) => void,
  gateway: Record<string, unknown> = {}
) => {
  const folder = await configFolder({ gateway })
  cleanUp(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

t.test('a gateway whose config is well writes nothing on standard error', async t => {
  const folder = await ready(t.after)
  const gateway = await startGatewayProcess(t.after, { checkout: '.', folder })
  t.same(gateway.complaints(), [])
})

t.test('a broken config is told in whole, and the exit code is 1', async t => {
  const folder = textFolder(t.after, {
    'gateway.yaml': 'server:\n  lisen: x\nsession:\n  secrets: [literal-secret]\n',
    'limits.yaml': 'limits: 5\n'
  })
  const { code, out, err } = await runProcess(['start', '--config', folder])
  t.same({ code, out }, { code: 1, out: '' })
  t.match(
    err,
    `${folder}/gateway.yaml:2 server.lisen: unknown key "lisen". Did you mean "listen"?\n`
  )
  t.match(
    err,
    `${folder}/gateway.yaml:4 session.secrets.0: a secret never stands in the file itself`
  )
  t.match(err, `${folder}/limits.yaml:1 limits: expected a mapping, found 5\n`)
  t.notMatch(err, 'literal-secret')
  t.notMatch(err, /^ +at /m)
  const expecting = textFolder(t.after, {
    'routes.yaml': 'expect: { open: { request: GET /api/account/profile, status: 200 } }'
  })
  t.match(await runProcess(['start', '--config', expecting]), {
    code: 1,
    err: 'routes.yaml:1 expect.open.status: expected 200, got 401 session.none'
  })
})

t.test('an address that the machine does not have gives one line', async t => {
  for (const [listen, line] of [
    ['192.0.2.1:8080', '192.0.2.1:8080 is no address of this machine: see server.listen'],
    ['gateway.invalid:8080', 'gateway.invalid is a name without an address: see server.listen']
  ] as const) {
    const folder = await ready(t.after, { server: { listen } })
    const { code, err } = await runProcess(['start', '--config', folder])
    t.equal(code, 1, listen)
    t.match(err, line)
    t.equal(err.trim().split('\n').length, 1)
  }
})

t.test('a port in use gives a clear line, for either listener, and ends the process', async t => {
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  t.after(() => other.close())
  const address = `127.0.0.1:${(other.address() as AddressInfo).port}`
  for (const section of ['server', 'ops']) {
    const { code, err } = await runProcess([
      'start',
      '--config',
      await ready(t.after, { [section]: { listen: address } })
    ])
    t.equal(code, 1, section)
    t.equal(
      err,
      `${address} is in use by another process: see server.listen and ops.listen in gateway.yaml.\n`
    )
  }
})

t.test(
  'start is what runs without a command; SIGTERM ends it with 0, and what was logged is JSON',
  async t => {
    const folder = await ready(t.after)
    const gateway = running(t.after, process.execPath, ['src/launch.js', '--config', folder])
    const written = await gateway.says('listening on http://127.0.0.1:')
    const { url } =
      written
        .trim()
        .split('\n')
        .map(line => JSON.parse(line) as { url?: string })
        .find(line => line.url !== undefined) ?? {}
    t.equal((await fetch(`${url}/api/account/profile`)).status, 401)
    gateway.signal('SIGTERM')
    t.same(await gateway.ended, { code: 0, signal: null })
    t.match(await gateway.says('stopped'), 'stopping')
  }
)

t.test('a second SIGTERM ends it at once, and what is logged is JSON', async t => {
  const gateway = start(t.after, await ready(t.after, { drain: { notice: '60s', grace: '60s' } }))
  await gateway.says('listening on')
  gateway.signal('SIGTERM')
  await gateway.says('stopping')
  gateway.signal('SIGTERM')
  t.same(await gateway.ended, { code: 1, signal: null })
  const lines = (await gateway.says('a second SIGTERM')).trim().split('\n')
  t.doesNotThrow(() => lines.map(line => JSON.parse(line) as unknown))
})

t.test('Ctrl+C does not wait for load balancers', async t => {
  const gateway = start(t.after, await ready(t.after, { drain: { notice: '60s', grace: '2s' } }))
  await gateway.says('listening on')
  gateway.signal('SIGINT')
  t.same(await gateway.ended, { code: 0, signal: null })
})

t.test('it starts without Redis being there, and says that it is away', async t => {
  const gateway = start(
    t.after,
    await ready(t.after, {
      redis: { url: 'redis://127.0.0.1:1' },
      session: { secrets: ['${S}'], cookie: { secure: false } }
    }),
    { S: 'x'.repeat(32) }
  )
  await gateway.says('listening on')
  await gateway.says('Redis unavailable')
  gateway.signal('SIGTERM')
  t.same(await gateway.ended, { code: 0, signal: null })
})
