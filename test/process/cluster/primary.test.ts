import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { parse, stringify } from 'yaml'
import { runProcess, start } from '../../support/command.ts'
import { configFolder, password } from '../../support/gateway.ts'
import { askOps } from '../../support/ops.ts'
import { freePort } from '../../support/ports.ts'
import { until } from '../../support/until.ts'
import { testRedis } from '../../support/redis.ts'
import { json as answered, testUpstream } from '../../support/upstream.ts'

const environment = { SESSION_SECRET: 'a secret of at least thirty-two characters' }
const limits = (max: number) => ({ limits: { 'signed-in': { by: 'user', max, window: '1h' } } })

interface Line {
  readonly msg?: string
  readonly event?: string
  readonly worker?: number
  readonly route?: string
  readonly status?: number
}

interface CallOptions {
  readonly cookie?: string
  readonly json?: object
  readonly signal?: AbortSignal | undefined
}

/** Of a process that may have ended. */
function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {}
}

async function several(
  t: Test,
  {
    workers = 2,
    routes = {}
  }: { readonly workers?: number; readonly routes?: Record<string, unknown> } = {}
) {
  const redis = await testRedis(t.after)
  const [port, opsPort] = [await freePort(), await freePort()]
  const folder = await configFolder({
    gateway: {
      server: { listen: `127.0.0.1:${port}`, workers },
      ops: { listen: `127.0.0.1:${opsPort}` },
      redis: { url: redis.url, commandTimeout: '20s', connectTimeout: '20s' },
      session: { secrets: ['${SESSION_SECRET}'] }
    },
    limits: limits(100_000),
    routes
  })
  const gateway = start(t.after, folder, environment)
  await gateway.says(`with ${workers} workers`)
  const ops = `http://127.0.0.1:${opsPort}`
  await until('ready', async () => (await fetch(`${ops}/readyz`)).status === 200)
  /** On a connection of its own, so that the workers take turns. */
  const call = async (path: string, { cookie, json, signal }: CallOptions = {}) =>
    await fetch(`http://127.0.0.1:${port}${path}`, {
      method: json === undefined ? 'GET' : 'POST',
      headers: {
        connection: 'close',
        ...(cookie !== undefined && { cookie }),
        ...(json !== undefined && { 'content-type': 'application/json' })
      },
      ...(json !== undefined && { body: JSON.stringify(json) }),
      ...(signal !== undefined && { signal })
    })
  const signIn = async (username = 'alice') =>
    (await call('/api/auth/admin/login', { json: { username, password } })).headers
      .getSetCookie()
      .find(field => field.startsWith('console_sid='))
      ?.split(';')[0] ?? ''
  const desk = async (path: string, json?: object) =>
    (await (await askOps(ops, path, { ...(json !== undefined && { json }) })).json()) as Record<
      string,
      unknown
    >
  const lines = async () =>
    (await gateway.says(''))
      .split('\n')
      .filter(line => line.startsWith('{'))
      .map(line => JSON.parse(line) as Line)
  return { gateway, folder, ops, call, signIn, desk, lines }
}

t.test(
  'two workers serve on one listener: who signs in at one is known to the other, and operators see both',
  async t => {
    const { gateway, call, signIn, desk, lines, ops } = await several(t)
    const cookie = await signIn()
    for (let n = 0; n < 8; n++) {
      t.equal((await call('/api/account/profile', { cookie })).status, 200)
    }
    t.match(await (await askOps(ops, '/readyz')).json(), {
      status: 'ready',
      workers: '2 of 2',
      redis: 'up'
    })
    const metrics = await (await askOps(ops, '/metrics')).text()
    for (const worker of [1, 2]) {
      t.match(
        metrics,
        new RegExp(
          `^console_gateway_requests_total\\{worker="${worker}",route="profile",method="GET",status="2xx"\\} [1-9]`,
          'm'
        )
      )
    }
    t.equal(metrics.match(/^# TYPE console_gateway_requests_total /gm)?.length, 1)
    t.match(metrics, /^console_gateway_workers 2$/m)

    const { sessions } = (await desk('/sessions?user=1')) as { sessions: Array<{ id: string }> }
    t.equal(sessions.length, 1)
    t.equal(
      (await askOps(ops, '/sessions?user=1', { headers: { origin: 'https://evil.example' } }))
        .status,
      403,
      'and the rules of the desk hold'
    )
    t.same(await desk('/sessions/close', { user: '1' }), {
      closed: 1,
      unreadable: 0,
      of: { source: 'users-file', id: '1', username: 'alice' }
    })
    for (let n = 0; n < 4; n++) {
      await until(
        'both know that it is over',
        async () => (await call('/api/account/profile', { cookie })).status === 401
      )
    }

    gateway.signal('SIGTERM')
    t.same(await gateway.ended, { code: 0, signal: null })
    t.same(
      [
        ...new Set(
          (await lines()).filter(({ route }) => route === 'profile').map(({ worker }) => worker)
        )
      ].toSorted(),
      [1, 2],
      'each line says whose it is'
    )
  }
)

t.test(
  'a reload is taken by all workers or by none, rolled back in all, and nothing is asked twice',
  async t => {
    const upstream = await testUpstream(t.after, (request, response) =>
      answered(200, { url: request.url })(request, response, undefined as never)
    )
    const version = (n: number) => ({
      upstreams: { b: { url: upstream.url } },
      routes: { told: { path: '/api/told', access: 'public', upstream: 'b', rewrite: `/v${n}` } }
    })
    const { folder, call, desk } = await several(t, { routes: version(1) })
    const told = async () => [
      ...new Set(
        await Promise.all(
          Array.from(
            { length: 8 },
            async () => ((await (await call('/api/told')).json()) as { url: string }).url
          )
        )
      )
    ]
    t.same(await told(), ['/v1'])
    writeFileSync(join(folder, 'routes.yaml'), stringify(version(2)))
    t.match(await desk('/reload', {}), { outcome: 'reloaded', generation: 2 })
    t.same(await told(), ['/v2'])
    writeFileSync(join(folder, 'routes.yaml'), 'routes: no')
    t.match(await desk('/reload', {}), { outcome: 'refused', generation: 2 })
    t.same(await told(), ['/v2'])
    t.match(await desk('/rollback', {}), { outcome: 'rolled back', generation: 3 })
    t.same(await told(), ['/v1'])
    t.match(await desk('/status'), {
      generation: 3,
      parts: { workers: '2 of 2' },
      files: { state: 'rolled back' }
    })
  }
)

t.test(
  'who is removed from a users file is signed out at both workers; it is told and counted once',
  async t => {
    const { gateway, folder, call, signIn, desk, lines } = await several(t)
    const [his, his2, hers] = [await signIn('bob'), await signIn('bob'), await signIn()]
    const statuses = async (cookie: string) => {
      const all = []
      for (let n = 0; n < 8; n++) all.push((await call('/api/account/profile', { cookie })).status)
      return [...new Set(all)]
    }
    // Both workers remember them from now on.
    for (const cookie of [his, his2, hers]) t.same(await statuses(cookie), [200])
    const file = join(folder, 'users.yaml')
    const {
      users: { bob: _, ...users }
    } = parse(readFileSync(file, 'utf8')) as { users: Record<string, object> }
    writeFileSync(file, stringify({ users }))
    const message = 'users.bob removed; 2 sessions closed'
    t.match(await desk('/reload', {}), { outcome: 'reloaded', sessions: [message] })
    for (const cookie of [his, his2]) t.same(await statuses(cookie), [401], 'at both, at once')
    t.same(await statuses(hers), [200])
    t.equal(
      (await call('/api/auth/admin/login', { json: { username: 'bob', password } })).status,
      401
    )
    gateway.signal('SIGTERM')
    t.same(await gateway.ended, { code: 0, signal: null })
    const all = await lines()
    t.same(
      all.filter(({ event }) => event === 'users.changed').map(({ msg }) => msg),
      [message]
    )
    const refusing = all.filter(({ route, status }) => route === 'profile' && status === 401)
    t.same(
      [...new Set(refusing.map(({ worker }) => worker))].toSorted(),
      [1, 2],
      'each refused him'
    )
  }
)

t.test(
  'a worker that dies is replaced, with the config that is in force; the other serves meanwhile',
  async t => {
    const upstream = await testUpstream(t.after, (request, response) =>
      answered(200, { url: request.url })(request, response, undefined as never)
    )
    const version = (n: number) => ({
      upstreams: { b: { url: upstream.url } },
      routes: { told: { path: '/api/told', access: 'public', upstream: 'b', rewrite: `/v${n}` } }
    })
    const { folder, gateway, call, desk, lines, ops } = await several(t, { routes: version(1) })
    writeFileSync(join(folder, 'routes.yaml'), stringify(version(2)))
    await desk('/reload', {})
    // Not what runs, and not sound.
    writeFileSync(join(folder, 'routes.yaml'), 'routes: no')
    const {
      workers: [first]
    } = (await desk('/status')) as { workers: Array<{ pid: number }> }
    process.kill(first?.pid ?? 0, 'SIGKILL')
    await gateway.says('a worker ended; starting another in its place')
    t.equal(((await (await call('/api/told')).json()) as { url: string }).url, '/v2')
    await until('both are there again', async () => (await desk('/readyz'))['workers'] === '2 of 2')
    for (let n = 0; n < 8; n++) {
      t.equal(((await (await call('/api/told')).json()) as { url: string }).url, '/v2')
    }
    const metrics = await (await askOps(ops, '/metrics')).text()
    t.match(metrics, /^console_gateway_worker_restarts_total 1$/m)
    t.match(
      metrics,
      /^console_gateway_requests_total\{worker="1",route="told"/m,
      'the new one takes requests'
    )
    t.equal(
      (await lines()).filter(({ msg }) => msg?.startsWith('a worker could not start') === true)
        .length,
      0
    )
  }
)

t.test('a worker that starts while a config is built takes it, and the ones after it', async t => {
  const upstream = await testUpstream(t.after, (request, response) =>
    answered(200, { url: request.url })(request, response, undefined as never)
  )
  const version = (n: number) => ({
    upstreams: { b: { url: upstream.url } },
    routes: { told: { path: '/api/told', access: 'public', upstream: 'b', rewrite: `/v${n}` } }
  })
  const { folder, gateway, call, desk, lines } = await several(t, { routes: version(1) })
  const told = async (signal?: AbortSignal) =>
    ((await (await call('/api/told', { signal })).json()) as { url: string }).url
  const { workers } = (await desk('/status')) as { workers: Array<{ pid: number }> }
  const [held = 0, killed = 0] = workers.map(({ pid }) => pid)
  process.kill(held, 'SIGSTOP')
  t.teardown(() => kill(held))
  // Its warning is logged just before the build.
  const past = { maintenance: { until: '2020-01-01T00:00:00Z' } }
  writeFileSync(join(folder, 'routes.yaml'), stringify({ ...version(2), ...past }))
  const reloaded = desk('/reload', {})
  await gateway.says('is in the past')
  process.kill(killed, 'SIGKILL')
  await gateway.says('starting another in its place')
  await until('the new worker serves', async () => (await told(AbortSignal.timeout(500))) === '/v1')
  process.kill(held, 'SIGCONT')
  t.match(await reloaded, { outcome: 'reloaded', generation: 2 })
  const all = async () => new Set(await Promise.all(Array.from({ length: 8 }, () => told())))
  t.same(await all(), new Set(['/v2']))
  t.match(await desk('/status'), { generation: 2, parts: { workers: '2 of 2' }, draining: [] })

  writeFileSync(join(folder, 'routes.yaml'), stringify(version(3)))
  t.match(await desk('/reload', {}), { outcome: 'reloaded', generation: 3 })
  t.same(await all(), new Set(['/v3']))
  const restarts = (await lines()).filter(({ msg }) => msg?.includes('in its place') === true)
  t.equal(restarts.length, 1, 'and no other worker was replaced for it')
})

t.test('operators see the machine while a worker hangs', async t => {
  const { gateway, signIn, desk, ops } = await several(t)
  await signIn()
  const { workers } = (await desk('/status')) as { workers: Array<{ pid: number }> }
  // Calls for one of them are for the first.
  const [{ pid: hanging } = { pid: 0 }] = workers
  process.kill(hanging, 'SIGSTOP')
  t.teardown(() => kill(hanging))
  const text = async (path: string) => {
    const answer = await askOps(ops, path, { signal: AbortSignal.timeout(20_000) })
    return `${answer.status} ${await answer.text()}`
  }
  t.match(await text('/readyz'), /^200 .*"workers":"1 of 2"/)
  await gateway.says('it counts as not ready')
  const metrics = await text('/metrics')
  t.match(metrics, /^console_gateway_workers 1$/m)
  t.match(metrics, /^console_gateway_session_store_up\{worker="2",/m)
  t.notMatch(metrics, 'worker="1"')
  t.match(await text('/status'), /"workers":\[\{"worker":1,[^}]*"ready":false\},[^}]*"ready":true/)
  t.match(await text('/sessions?user=1'), /^200 .*"user":"alice"/)
  process.kill(hanging, 'SIGCONT')
  await gateway.says('the worker answers again')
  t.match(await text('/readyz'), /"workers":"2 of 2"/)
})

t.test('at the end requests in flight finish in every worker', async t => {
  const gate = Promise.withResolvers<void>()
  let asked = 0
  const upstream = await testUpstream(t.after, (request, response) => {
    asked++
    void gate.promise.then(() =>
      answered(200, { done: true })(request, response, undefined as never)
    )
  })
  const { gateway, call } = await several(t, {
    routes: {
      upstreams: { b: { url: upstream.url } },
      routes: { slow: { path: '/api/slow', access: 'public', upstream: 'b' } }
    }
  })
  const answers = Promise.all(
    Array.from({ length: 6 }, async () => await (await call('/api/slow')).json())
  )
  await until('all are in flight', () => asked === 6)
  gateway.signal('SIGTERM')
  await gateway.says('stopping')
  gate.resolve()
  t.same(
    await answers,
    Array.from({ length: 6 }, () => ({ done: true }))
  )
  t.same(await gateway.ended, { code: 0, signal: null })
})

t.test('a port in use gives the same clear line as with one process', async t => {
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  t.after(() => other.close())
  const redis = await testRedis(t.after)
  const address = `127.0.0.1:${(other.address() as AddressInfo).port}`
  const folder = await configFolder({
    gateway: {
      server: { listen: address, workers: 2 },
      redis: { url: redis.url },
      session: { secrets: ['${SESSION_SECRET}'] }
    }
  })
  const { code, err } = await runProcess(['start', '--config', folder], { env: environment })
  t.match({ code, err }, { code: 1, err: `${address} is in use by another process.` })
})

t.test('with the embedded store there is one worker, and the start says so', async t => {
  const folder = await configFolder({ gateway: { server: { workers: 'auto' } } })
  const gateway = start(t.after, folder)
  const said = await gateway.says('listening on')
  t.match(said, 'without Redis only one worker runs')
  t.notMatch(said, /with \d+ workers/)
})
