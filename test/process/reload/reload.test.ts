import {
  copyFileSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { stringify } from 'yaml'
import { hashOf } from '../../support/users.ts'
import {
  configFolder,
  cookieOf,
  noLockout,
  password,
  type TestGateway,
  testGateway
} from '../../support/gateway.ts'
import { testAuthority } from '../../support/authority.ts'
import { testRedis } from '../../support/redis.ts'
import { json, testUpstream } from '../../support/upstream.ts'
import { until } from '../../support/until.ts'

type Tree = Record<string, unknown>

const write = (gateway: { readonly folder: string }, name: string, content: Tree | string) =>
  writeFileSync(
    join(gateway.folder, name),
    typeof content === 'string' ? content : stringify(content)
  )
const event = (name: string) => (line: Tree) => line['event'] === name
const status = async (gateway: TestGateway) =>
  (await (await gateway.ops('/ops/api/status')).json()) as any
const ready = async (gateway: TestGateway) => (await (await gateway.ops('/readyz')).json()) as Tree
const routesTo = (url: string, paths: readonly string[]) => ({
  upstreams: { b: { url } },
  routes: Object.fromEntries(
    paths.map(path => [path, { path: `/api/${path}`, access: 'public', upstream: 'b' }])
  )
})
const watching = { reload: { watch: true } }
const limits = (max: number) => ({
  lockout: noLockout,
  limits: {
    'signed-in': { by: 'user', max, window: '1h' },
    'sign-in-address': {
      by: 'address',
      max: 100,
      window: '1h',
      routes: ['login']
    }
  }
})

t.test('a change of the files is taken up by itself, and said in words', async t => {
  const backend = await testUpstream(t.after)
  const gateway = await testGateway(t.after, {
    gateway: watching,
    routes: routesTo(backend.url, ['a']),
    limits: limits(5)
  })
  t.equal((await gateway.call('/api/b')).status, 404)
  write(gateway, 'routes.yaml', routesTo(backend.url, ['a', 'b']))
  t.equal(
    (await gateway.logged(event('config.reloaded')))['msg'],
    'config reloaded: routes.b added'
  )
  t.equal((await gateway.call('/api/b')).status, 200)
  write(gateway, 'limits.yaml', limits(10))
  t.equal(
    (await gateway.logged(({ generation }) => generation === 3))['msg'],
    'config reloaded: limits.signed-in.max 5 → 10'
  )
  t.match(await status(gateway), {
    generation: 3,
    files: { state: 'running' },
    taken: { by: 'files changed', changes: ['limits.signed-in.max 5 → 10'] }
  })
})

t.test(
  'a file that is renamed over another, and a mounted ConfigMap whose link is swapped, are seen',
  async t => {
    const backend = await testUpstream(t.after)
    const folder = await configFolder({ gateway: watching, routes: routesTo(backend.url, ['a']) })
    // As Kubernetes mounts it: each file a link through ..data, which is swapped as a whole.
    const version = (name: string, paths: readonly string[]) => {
      mkdirSync(join(folder, name))
      writeFileSync(join(folder, name, 'routes.yaml'), stringify(routesTo(backend.url, paths)))
      symlinkSync(name, join(folder, '..data_tmp'))
      renameSync(join(folder, '..data_tmp'), join(folder, '..data'))
    }
    version('..1', ['a'])
    rmSync(join(folder, 'routes.yaml'))
    symlinkSync('..data/routes.yaml', join(folder, 'routes.yaml'))
    const gateway = await testGateway(t.after, folder)
    version('..2', ['a', 'b'])
    await gateway.logged(event('config.reloaded'))
    t.equal((await gateway.call('/api/b')).status, 200)
    version('..3', ['a', 'b', 'c'])
    await gateway.logged(({ generation }) => generation === 3)
    t.equal((await gateway.call('/api/c')).status, 200)

    writeFileSync(join(folder, 'limits.yaml~'), stringify(limits(7)))
    renameSync(join(folder, 'limits.yaml~'), join(folder, 'limits.yaml'))
    await gateway.logged(
      ({ generation, msg }) => generation === 4 && String(msg).includes('limits.signed-in.max')
    )
  }
)

t.test('a fault is told once, however often the same files are saved', async t => {
  const gateway = await testGateway(t.after, {
    gateway: { reload: { watch: true } },
    limits: limits(5)
  })
  const refusals = () => gateway.log.filter(event('config.refused')).length
  write(gateway, 'limits.yaml', 'limits: no\n')
  await until('the fault is told', () => refusals() === 1)
  const since = (await status(gateway)).files.since as string
  for (const save of [1, 2, 3]) {
    write(gateway, 'limits.yaml', `limits: no\n${'\n'.repeat(save)}`)
    await gateway.reload('files changed')
  }
  t.equal(refusals(), 1)
  t.equal((await status(gateway)).files.since, since, 'and it says since when')
  write(gateway, 'limits.yaml', 'limits: 7\n')
  await until('another fault is told', () => refusals() === 2)
})

t.test(
  'counters and sessions live on, and a raised limit helps those who were refused at once',
  async t => {
    const gateway = await testGateway(t.after, { limits: limits(5) })
    const cookie = await gateway.signIn()
    const statuses = async (times: number) =>
      await Promise.all(
        Array.from(
          { length: times },
          async () => (await gateway.call('/api/account/profile', { cookie })).status
        )
      )
    t.same((await statuses(8)).toSorted(), [200, 200, 200, 200, 200, 429, 429, 429])
    write(gateway, 'limits.yaml', limits(7))
    t.match(await gateway.reload('operator'), { outcome: 'reloaded', generation: 2 })
    t.same((await statuses(4)).toSorted(), [200, 200, 429, 429], 'five of seven were used')
    write(gateway, 'limits.yaml', limits(2))
    t.match(await gateway.reload('operator'), { outcome: 'reloaded', generation: 3 })
    t.same(await statuses(2), [429, 429])
  }
)

t.test(
  'a bad file changes nothing: it is told in the log, in readyz, in the status and in a metric, and the last good config stays',
  async t => {
    const backend = await testUpstream(t.after)
    const gateway = await testGateway(t.after, { routes: routesTo(backend.url, ['a']) })
    const bad = {
      'routes.yaml': [
        '',
        'routes: [',
        '{}: {}',
        'upstreams: { b: { url: http://127.0.0.1:1 } }\nroutes: { a: { path: /api/a, upstream: c } }',
        'unknown: 1',
        '\0\u0001',
        '# nothing'
      ],
      'limits.yaml': ['limits: { x: { by: user, max: -1, window: 1m } }'],
      'users.yaml': ['users: { alice: { password: plain } }']
    }
    for (const [name, texts] of Object.entries(bad)) {
      const good =
        name === 'routes.yaml'
          ? stringify(routesTo(backend.url, ['a']))
          : name === 'limits.yaml'
            ? stringify(limits(100))
            : stringify({ users: {} })
      for (const text of texts) {
        write(gateway, name, text)
        t.match(
          await gateway.reload('operator'),
          { outcome: 'refused', faults: [new RegExp(name)] },
          JSON.stringify(text)
        )
        t.equal((await gateway.call('/api/a')).status, 200)
        t.equal((await gateway.ops('/readyz')).status, 200)
        t.match(
          (await ready(gateway))['config'],
          /generation \d+ runs; the files were refused at .*yaml/
        )
        t.match((await status(gateway)).files, { state: 'refused', faults: [new RegExp(name)] })
        t.match(
          await (await gateway.ops('/metrics')).text(),
          '\nconsole_gateway_config_refused 1\n'
        )
      }
      write(gateway, name, good)
      await gateway.reload('operator')
      t.notOk('config' in (await ready(gateway)))
      t.match(await (await gateway.ops('/metrics')).text(), '\nconsole_gateway_config_refused 0\n')
    }
    rmSync(join(gateway.folder, 'routes.yaml'))
    t.match(await gateway.reload('operator'), {
      outcome: 'refused',
      faults: [/routes.yaml the file cannot be read \(ENOENT\)/]
    })
    t.equal((await gateway.call('/api/a')).status, 200)
  }
)

t.test('all or nothing: of a good and a bad file, neither is taken', async t => {
  const backend = await testUpstream(t.after)
  const gateway = await testGateway(t.after, {
    routes: routesTo(backend.url, ['a']),
    limits: limits(5)
  })
  write(gateway, 'routes.yaml', routesTo(backend.url, ['a', 'b']))
  write(gateway, 'limits.yaml', 'limits: 1')
  t.match(await gateway.reload('operator'), { outcome: 'refused', generation: 1 })
  t.equal((await gateway.call('/api/b')).status, 404)
})

t.test(
  'a reload that changes nothing does nothing, and says so once when the files were refused before',
  async t => {
    const gateway = await testGateway(t.after, { limits: limits(5) })
    write(gateway, 'limits.yaml', `# a comment\n${stringify(limits(5))}`)
    t.match(await gateway.reload('operator'), { outcome: 'unchanged', generation: 1 })
    t.notOk(gateway.log.some(({ event }) => String(event).startsWith('config.')))
    write(gateway, 'limits.yaml', 'x')
    await gateway.reload('operator')
    write(gateway, 'limits.yaml', limits(5))
    t.match(await gateway.reload('operator'), { outcome: 'unchanged', generation: 1 })
    t.match((await status(gateway)).files, { state: 'running' })
    t.ok(gateway.log.some(event('config.unchanged')))
  }
)

t.test('an install key that changed is named and not taken; what else changed is', async t => {
  const gateway = await testGateway(t.after, {
    gateway: { session: { cookie: { name: 'one' } } },
    limits: limits(5)
  })
  const cookie = cookieOf(
    await gateway.call('/api/auth/admin/login', { json: { username: 'alice', password } }),
    'one'
  )
  const install = (name: string) => ({
    server: { listen: '127.0.0.1:0' },
    ops: { listen: '127.0.0.1:0', secret: 'file:ops-secret' },
    drain: { notice: '0ms', grace: '2s' },
    reload: { watch: false },
    session: { cookie: { name, secure: false }, perUser: { max: 1000 } },
    login: { sources: { 'users-file': { kind: 'users-file', file: 'users.yaml' } } }
  })
  write(gateway, 'gateway.yaml', install('two'))
  write(gateway, 'limits.yaml', limits(6))
  t.match(await gateway.reload('operator'), {
    outcome: 'reloaded',
    changes: ['limits.signed-in.max 5 → 6'],
    restartNeeded: ['session.cookie.name']
  })
  t.equal(
    gateway.log.find(event('config.restart-needed'))?.['msg'],
    'restart needed: session.cookie.name'
  )
  t.equal((await gateway.call('/api/account/profile', { cookie })).status, 200)
  t.match((await status(gateway)).restartNeeded, ['session.cookie.name'])
  write(gateway, 'gateway.yaml', install('one'))
  t.match(await gateway.reload('operator'), { outcome: 'unchanged', restartNeeded: [] })
})

t.test('a renewed authority of Redis needs a restart, whatever else is reloaded', async t => {
  const redis = await testRedis(t.after)
  const folder = await configFolder({
    gateway: { redis: { url: redis.url, ca: 'ca.pem' }, session: { secrets: ['${S}'] } },
    limits: limits(5)
  })
  const ca = join(folder, 'ca.pem')
  const old = readFileSync(testAuthority(t.after).certificate)
  writeFileSync(ca, old)
  const gateway = await testGateway(t.after, folder, { S: 's'.repeat(32) })
  const reload = async () => await gateway.reload('operator')
  copyFileSync(testAuthority(t.after).certificate, ca)
  t.match(await reload(), { outcome: 'unchanged', restartNeeded: ['redis.ca'] })
  write(gateway, 'limits.yaml', limits(6))
  const changes = ['limits.signed-in.max 5 → 6']
  t.match(await reload(), { outcome: 'reloaded', changes, restartNeeded: ['redis.ca'] })
  t.match(await reload(), { outcome: 'unchanged', restartNeeded: ['redis.ca'] })
  writeFileSync(ca, old)
  t.match(await reload(), { outcome: 'unchanged', restartNeeded: [] })
  rmSync(ca)
  t.match(await reload(), { outcome: 'refused', faults: [/redis\.ca: the file cannot be read/] })
})

t.test(
  'what runs has to fit: routes that only a changed gateway.yaml could go with are refused',
  async t => {
    const login = (upstream: string) => ({
      server: { listen: '127.0.0.1:0' },
      ops: { listen: '127.0.0.1:0' },
      session: { cookie: { secure: false } },
      reload: { watch: false },
      login: {
        sources: { b: { kind: 'upstream-login', upstream, path: '/login', user: { id: 'id' } } }
      }
    })
    const gateway = await testGateway(t.after, {
      gateway: login('old'),
      routes: { upstreams: { old: { url: 'http://127.0.0.1:9' } } }
    })
    write(gateway, 'gateway.yaml', login('new'))
    write(gateway, 'routes.yaml', { upstreams: { new: { url: 'http://127.0.0.1:9' } } })
    t.match(await gateway.reload('operator'), {
      outcome: 'refused',
      faults: [/there is no upstream "old".*the change of gateway.yaml needs a restart/]
    })
  }
)

t.test(
  'users come, go and change their roles without a restart; the log tells no hash',
  async t => {
    const gateway = await testGateway(t.after, { gateway: watching })
    const hash = hashOf('another password')
    write(gateway, 'users.yaml', { users: { carol: { password: hash, roles: ['admin'] } } })
    await gateway.logged(event('config.reloaded'))
    t.equal(
      (
        await gateway.call('/api/auth/admin/login', {
          json: { username: 'carol', password: 'another password' }
        })
      ).status,
      200
    )
    t.equal(
      (
        await gateway.call('/api/auth/admin/login', {
          json: { username: 'alice', password: password }
        })
      ).status,
      401
    )
    write(gateway, 'users.yaml', {
      users: { carol: { password: hashOf('a third one'), roles: ['admin'] } }
    })
    await gateway.logged(({ generation }) => generation === 3)
    t.match(
      gateway.log.find(({ generation }) => generation === 3)?.['msg'],
      'users users.yaml.users.carol.password changed'
    )
    t.notMatch(JSON.stringify(gateway.log), 'argon2id')
  }
)

t.test(
  'what began before a reload finishes as it began; the old upstream’s connections are closed then',
  async t => {
    let finish = () => {}
    const old = await testUpstream(t.after, (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: one\n\n')
      finish = () => response.end('data: two\n\n')
    })
    const young = await testUpstream(t.after, json(200, { young: true }))
    const gateway = await testGateway(t.after, { routes: routesTo(old.url, ['a']) })
    const stream = await fetch(`${gateway.url}/api/a`)
    const reader = stream.body?.getReader()
    const text = async () => new TextDecoder().decode((await reader?.read())?.value)
    t.equal(await text(), 'data: one\n\n')
    write(gateway, 'routes.yaml', routesTo(young.url, ['a']))
    t.match(await gateway.reload('operator'), {
      outcome: 'reloaded',
      changes: [`upstreams.b.url ${old.url} → ${young.url}`]
    })
    t.match((await gateway.call('/api/a')).json, { young: true })
    t.match((await status(gateway)).draining, [{ generation: 1, requests: 1 }])
    finish()
    t.equal(await text(), 'data: two\n\n')
    t.equal(await text(), '')
    await old.idle()
    await until('nothing drains', async () => (await status(gateway)).draining.length === 0)
  }
)

t.test('a page in a browser cannot reload or read the status', async t => {
  const gateway = await testGateway(t.after)
  for (const headers of [{ origin: 'http://evil.example' }, { 'sec-fetch-site': 'cross-site' }]) {
    t.equal((await gateway.ops('/ops/api/reload', { method: 'POST', headers })).status, 403)
    t.equal((await gateway.ops('/ops/api/status', { headers })).status, 403)
  }
})

t.test('files that changed between being read and being watched are taken up too', async t => {
  const folder = await configFolder({ gateway: watching, limits: limits(5) })
  const { loadConfig } = await import('../../../src/config/read/load.ts')
  const { startGateway } = await import('../../../src/process/gateway.ts')
  const config = loadConfig(folder, {})
  write({ folder }, 'limits.yaml', limits(6))
  const { createLogger } = await import('../../../src/services/services.ts')
  const reloaded = Promise.withResolvers<void>()
  const gateway = await startGateway(
    config,
    createLogger(
      { level: 'info', format: 'json' },
      {
        write: line => {
          if (line.includes('limits.signed-in.max 5 → 6')) reloaded.resolve()
        }
      }
    ),
    {}
  )
  t.after(async () => {
    await gateway.stop({ noticeMs: 0 })
    rmSync(folder, { recursive: true })
  })
  await reloaded.promise
})

t.test(
  'a config that does not do what it expects of itself is refused, with file and line',
  async t => {
    const backend = await testUpstream(t.after)
    const gateway = await testGateway(t.after, { routes: routesTo(backend.url, ['a']) })
    const expecting = (status: number) => ({
      ...routesTo(backend.url, ['a', 'b']),
      expect: { open: { request: 'GET /api/b', status } }
    })
    write(gateway, 'routes.yaml', expecting(401))
    t.match(await gateway.reload('operator'), {
      outcome: 'refused',
      faults: [/routes\.yaml:\d+ expect\.open\.status: expected 401, got 200/]
    })
    t.equal((await gateway.call('/api/b')).status, 404)
    write(gateway, 'routes.yaml', expecting(200))
    t.match(await gateway.reload('operator'), { outcome: 'reloaded', generation: 2 })
    t.equal(backend.seen.length, 0, 'trying it asked nobody')
  }
)
