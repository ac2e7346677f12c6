/** Reloads: the transcripts beside this file, and what only files and streams show. */
import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { loadConfig } from '../../../src/config/read/load.ts'
import { startGateway } from '../../../src/process/gateway.ts'
import { createLogger } from '../../../src/services/services.ts'
import { casesIn } from '../../support/config-cases.ts'
import {
  configFolder,
  noLockout,
  password,
  testGateway,
  writeConfig
} from '../../support/gateway.ts'
import { play, type Scene } from '../../support/transcript.ts'
import { until } from '../../support/until.ts'
import { json, testUpstream } from '../../support/upstream.ts'
import { hashOf } from '../../support/users.ts'

for (const scene of casesIn<Scene>('test/process/reload/reload.transcript.yaml')) {
  t.test(scene.title, async t => await play(t, scene))
}

type Tree = Record<string, unknown>

const { url } = await testUpstream(t.teardown)
const watching = { reload: { watch: true } }
const event = (name: string) => (line: Tree) => line['event'] === name
const limits = (max: number) => ({
  lockout: noLockout,
  limits: { 'signed-in': { by: 'user', max, window: '1h' } }
})
const routesTo = (upstream: string, paths: readonly string[]) => ({
  upstreams: { b: { url: upstream } },
  routes: Object.fromEntries(
    paths.map(path => [path, { path: `/api/${path}`, access: 'public', upstream: 'b' }])
  )
})

t.test('files that change, are renamed over another or swapped by a link are taken', async t => {
  const folder = await configFolder({ gateway: watching, limits: limits(5) })
  // As Kubernetes mounts it: each file a link through ..data, which is swapped as a whole.
  const version = (name: string, paths: readonly string[]) => {
    mkdirSync(join(folder, name))
    writeConfig(folder, `${name}/routes.yaml`, routesTo(url, paths))
    symlinkSync(name, join(folder, '..data_tmp'))
    renameSync(join(folder, '..data_tmp'), join(folder, '..data'))
  }
  version('..1', ['a'])
  rmSync(join(folder, 'routes.yaml'))
  symlinkSync('..data/routes.yaml', join(folder, 'routes.yaml'))
  const gateway = await testGateway(t.after, folder)
  const reloaded = async (generation: number) =>
    (await gateway.logged(line => line['generation'] === generation))['msg']
  version('..2', ['a', 'b'])
  t.equal(await reloaded(2), 'config reloaded: routes.b added')
  t.equal(await gateway.status('/api/b'), 200)
  version('..3', ['a', 'b', 'c'])
  await reloaded(3)
  t.equal(await gateway.status('/api/c'), 200)
  writeConfig(folder, 'limits.yaml', limits(10))
  t.equal(await reloaded(4), 'config reloaded: limits.signed-in.max 5 → 10')
  writeConfig(folder, 'limits.yaml~', limits(7))
  renameSync(join(folder, 'limits.yaml~'), join(folder, 'limits.yaml'))
  t.equal(await reloaded(5), 'config reloaded: limits.signed-in.max 10 → 7')
  t.match(await gateway.opsJson('status'), {
    generation: 5,
    files: { state: 'running' },
    taken: { by: 'files changed', changes: ['limits.signed-in.max 10 → 7'] }
  })

  rmSync(join(folder, 'limits.yaml'))
  t.match(await gateway.logged(event('config.refused')), {
    faults: [/limits\.yaml there is no such file/]
  })
  writeConfig(folder, 'limits.yaml', limits(8))
  t.equal(await reloaded(6), 'config reloaded: limits.signed-in.max 7 → 8')
})

t.test('a fault is told once, however often the same files are saved', async t => {
  const gateway = await testGateway(t.after, { gateway: watching, limits: limits(5) })
  const { folder } = gateway
  const refusals = () => gateway.log.filter(event('config.refused')).length
  const since = async () => (await gateway.opsJson('status')).files.since
  writeConfig(folder, 'limits.yaml', 'limits: no\n')
  await until('the fault is told', () => refusals() === 1)
  const first = await since()
  for (const save of [1, 2, 3]) {
    writeConfig(folder, 'limits.yaml', `limits: no\n${'\n'.repeat(save)}`)
    await gateway.reload('files changed')
  }
  t.equal(refusals(), 1)
  t.equal(await since(), first, 'and it says since when')
  writeConfig(folder, 'limits.yaml', 'limits: 7\n')
  await until('another fault is told', () => refusals() === 2)
})

t.test('a bad file changes nothing, and is told wherever operators look', async t => {
  const bad = [
    ['routes.yaml', ''],
    ['routes.yaml', 'routes: ['],
    ['routes.yaml', 'upstreams: { b: { url: x } }\nroutes: { a: { path: /api/a, upstream: c } }'],
    ['limits.yaml', 'limits: { x: { by: user, max: -1, window: 1m } }'],
    ['users.yaml', 'users: { alice: { password: plain } }']
  ] as const
  const gateway = await testGateway(t.after, { routes: routesTo(url, ['a']) })
  const { folder, ops, opsJson } = gateway
  const refused = async () =>
    /^console_gateway_config_refused (\d)$/m.exec(await (await ops('/metrics')).text())?.[1]
  for (const [name, text] of bad) {
    const fault = new RegExp(name)
    const good = readFileSync(join(folder, name), 'utf8')
    writeConfig(folder, name, text)
    const answer = await gateway.reload('operator')
    t.match(answer, { outcome: 'refused', faults: [fault] }, JSON.stringify(text))
    t.equal(await gateway.status('/api/a'), 200)
    const readiness = await ops('/readyz')
    t.equal(readiness.status, 200)
    const { config } = (await readiness.json()) as Tree
    t.match(config, /generation \d+ runs; the files were refused at .*yaml/)
    t.match(await opsJson('status'), { files: { state: 'refused', faults: [fault] } })
    t.equal(await refused(), '1')
    writeConfig(folder, name, good)
    await gateway.reload('operator')
    t.notOk('config' in ((await (await ops('/readyz')).json()) as Tree))
    t.equal(await refused(), '0')
  }
})

t.test('users come, go and change without a restart; the log tells no hash', async t => {
  const gateway = await testGateway(t.after, { gateway: watching })
  const put = (text: string) => {
    const carol = { password: hashOf(text), roles: ['admin'] }
    writeConfig(gateway.folder, 'users.yaml', { users: { carol } })
  }
  const signIn = async (username: string, typed: string) =>
    (await gateway.attempt(username, { password: typed })).status
  put('another password')
  await gateway.logged(event('config.reloaded'))
  t.equal(await signIn('carol', 'another password'), 200)
  t.equal(await signIn('alice', password), 401)
  put('a third one')
  const { msg } = await gateway.logged(({ generation }) => generation === 3)
  t.match(msg, 'users users.yaml.users.carol.password changed')
  t.notMatch(JSON.stringify(gateway.log), 'argon2id')
})

t.test('what began before a reload finishes as it began, and lets its upstream go', async t => {
  let finish = () => {}
  const old = await testUpstream(t.after, (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: one\n\n')
    finish = () => response.end('data: two\n\n')
  })
  const young = await testUpstream(t.after, json(200, { young: true }))
  const gateway = await testGateway(t.after, { routes: routesTo(old.url, ['a']) })
  const draining = async () => (await gateway.opsJson('status')).draining
  const stream = await fetch(`${gateway.url}/api/a`)
  const reader = stream.body?.getReader()
  const text = async () => new TextDecoder().decode((await reader?.read())?.value)
  t.equal(await text(), 'data: one\n\n')
  writeConfig(gateway.folder, 'routes.yaml', routesTo(young.url, ['a']))
  t.match(await gateway.reload('operator'), {
    outcome: 'reloaded',
    changes: [`upstreams.b.url ${old.url} → ${young.url}`]
  })
  t.match((await gateway.call('/api/a')).json, { young: true })
  t.same(await draining(), [{ generation: 1, requests: 1 }])
  finish()
  t.equal(await text(), 'data: two\n\n')
  t.equal(await text(), '')
  await old.idle()
  await until('nothing drains', async () => String(await draining()) === '')
})

t.test('connections to an upstream are kept while it stays as it is', async t => {
  const backend = await testUpstream(t.after)
  const gateway = await testGateway(t.after, { routes: routesTo(backend.url, ['a']) })
  const connectionsOf = async () => {
    t.equal(await gateway.status('/api/a'), 200)
    return backend.connections()
  }
  t.equal(await connectionsOf(), 1)
  for (const [expected, what, name, more, timeout] of [
    [1, 'another route', 'b', {}, '11s'],
    [1, 'and after two reloads', 'b', {}, '12s'],
    [2, 'another config', 'b', { connections: 1 }, '12s'],
    [3, 'another name', 'c', { connections: 1 }, '12s'],
    [4, 'it was closed', 'b', { connections: 1 }, '12s']
  ] as const) {
    writeConfig(gateway.folder, 'routes.yaml', {
      upstreams: { [name]: { url: backend.url, ...more } },
      routes: { a: { path: '/api/a', access: 'public', upstream: name, timeout } }
    })
    t.match(await gateway.reload('operator'), { outcome: 'reloaded' })
    t.equal(await connectionsOf(), expected, what)
  }
})

t.test('files that changed between being read and being watched are taken up too', async t => {
  const folder = await configFolder({ gateway: watching, limits: limits(5) })
  const config = loadConfig(folder, {})
  writeConfig(folder, 'limits.yaml', limits(6))
  const reloaded = Promise.withResolvers<void>()
  const log = createLogger(
    { level: 'info', format: 'json' },
    { write: line => void (line.includes('limits.signed-in.max 5 → 6') && reloaded.resolve()) }
  )
  const gateway = await startGateway(config, log, {})
  t.after(() => gateway.stop({ noticeMs: 0 }))
  await reloaded.promise
})
