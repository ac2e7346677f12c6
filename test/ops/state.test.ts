/** The state as operators see it: changes, faults with places, and never a secret. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { parse, stringify } from 'yaml'
import type { PlanAnswer, Status } from '../../src/ops/state-schemas.ts'
import { allSecrets } from '../support/all-secrets.ts'
import { type TestGateway, testGateway } from '../support/gateway.ts'

type Tree = Record<string, unknown>

async function read<T>(gateway: TestGateway, path: string): Promise<T> {
  const response = await gateway.ops(`/ops/api/${path}`)
  if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`)
  return (await response.json()) as T
}

function change(gateway: TestGateway, file: string, edit: (content: any) => void): void {
  const name = join(gateway.folder, file)
  const content = (parse(readFileSync(name, 'utf8')) ?? {}) as Tree
  edit(content)
  writeFileSync(name, stringify(content))
}

const route = { path: '/api/a', upstream: 'b', access: 'public' }

t.test('the files differ in words; a reload says what it changed', async t => {
  const gateway = await testGateway(
    t.after,
    { routes: { upstreams: { b: { url: '${BACKEND}' } }, routes: { a: route } } },
    { BACKEND: 'http://127.0.0.1:9' }
  )
  change(gateway, 'routes.yaml', content => {
    content.routes.a.timeout = '3s'
  })
  const ahead = await read<PlanAnswer>(gateway, 'plan')
  t.match(ahead, { changes: [{ text: /routes\.a\.timeout 3s/, restart: false }] })
  t.match(await gateway.reload('operator'), { outcome: 'reloaded' })
  const now = await read<Status>(gateway, 'status')
  t.match(now, {
    generation: 2,
    taken: { by: 'operator', changes: [/routes\.a\.timeout 3s/] },
    files: { state: 'running' },
    restartNeeded: []
  })
})

t.test(
  'a refused config shows its faults with file and line; a restart says what it brings',
  async t => {
    const gateway = await testGateway(t.after)
    const before = await read<Status>(gateway, 'status')
    writeFileSync(join(gateway.folder, 'routes.yaml'), 'routes:\n  a: { path: 7, answer: {} }\n')
    await gateway.reload('operator')
    const refused = await read<Status>(gateway, 'status')
    t.match(refused, {
      files: { state: 'refused', faults: [/routes\.yaml:2 routes\.a\.path/] }
    })
    t.equal(refused.hash, before.hash)
    t.match(await read<PlanAnswer>(gateway, 'plan'), { changes: [], faults: [/:2 /] })
    writeFileSync(join(gateway.folder, 'routes.yaml'), '{}')
    change(gateway, 'gateway.yaml', content => {
      content.log = { level: 'debug' }
    })
    await gateway.reload('operator')
    t.match(await read<Status>(gateway, 'status'), {
      files: { state: 'running' },
      restartNeeded: ['log.level']
    })
    const files = await read<PlanAnswer>(gateway, 'plan')
    t.match(files.changes, [{ text: /log\.level info → debug/, restart: true }])
  }
)

t.test('no answer holds a secret, whatever changes about secrets', async t => {
  const sslFolder = mkdtempSync(join(tmpdir(), 'ssl-'))
  t.after(() => rmSync(sslFolder, { recursive: true, force: true }))
  const { gateway: install, upstream, environment, values } = allSecrets(t.after, sslFolder, false)
  const { server: _, ...withoutTls } = install
  const gateway = await testGateway(
    t.after,
    { gateway: { ...withoutTls, ops: {} }, routes: { upstreams: { b: upstream } } },
    environment
  )
  const texts: string[] = []
  const look = async () => {
    const paths = ['status', 'plan', 'replicas', 'openapi.json']
    for (const path of paths) texts.push(await (await gateway.ops(`/ops/api/${path}`)).text())
  }
  await look()
  change(gateway, 'routes.yaml', content => {
    content.upstreams.b.headers['x-second'] = '${SESSION_2}'
    delete content.upstreams.b.headers['x-api-key']
    content.upstreams.b.tls.key = `file:${join(sslFolder, 'server.key')}`
  })
  change(gateway, 'gateway.yaml', content => {
    content.session.secrets = ['${SESSION_2}']
    content.ops.secret = '${OPS}'
  })
  await look()
  t.match(await gateway.reload('operator'), { outcome: 'reloaded' })
  await look()
  change(gateway, 'routes.yaml', content => {
    content.upstreams.b.headers['x-list'] = [values[1]]
    content.upstreams.b.tls.key = readFileSync(join(sslFolder, 'client.key'), 'utf8')
  })
  t.match(await gateway.reload('operator'), { outcome: 'refused' })
  await look()
  const all = texts.join('\n')
  for (const what of ['headers.x-second set', 'session.secrets changed']) {
    t.ok(all.includes(what), what)
  }
  for (const value of values) t.notOk(all.includes(value), value.slice(0, 20))
  const logged = JSON.stringify(gateway.log)
  for (const value of values) t.notOk(logged.includes(value), value.slice(0, 20))
})
