import { once } from 'node:events'
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from 'node:fs'
import { Agent, type IncomingHttpHeaders, request } from 'node:http'
import { request as secureRequest } from 'node:https'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { testAuthority } from '../support/authority.ts'
import { run, runProcess } from '../support/command.ts'
import { configFolder, password } from '../support/gateway.ts'
import { callOnce, opsSecret } from '../support/gateway-process.ts'
import { freePort } from '../support/ports.ts'
import { isAlive, startRestartable } from '../support/restartable.ts'
import { cookieIn } from '../support/sign-in.ts'
import { steadyLoad } from '../support/steady-load.ts'
import { testRedis } from '../support/redis.ts'
import { testUpstream } from '../support/upstream.ts'
import { until } from '../support/until.ts'

// The whole size: REQUESTS=10000
const requests = Number(process.env['REQUESTS'] ?? 2000)

interface Setup {
  readonly gateway?: Record<string, unknown>
  readonly limits?: Record<string, unknown>
  readonly words?: readonly string[]
  readonly program?: string
  readonly environment?: Readonly<Record<string, string>>
}

async function open(
  t: Test,
  { gateway = {}, limits = { limits: {} }, words = [], program, environment = {} }: Setup = {}
) {
  const upstream = await testUpstream(t.after)
  const folder = await configFolder({
    gateway: {
      ops: { listen: '127.0.0.1:0', secret: '${OPS_SECRET}' },
      server: { listen: '127.0.0.1:0', keepAlive: '3s' },
      ...gateway
    },
    routes: {
      upstreams: { b: { url: upstream.url } },
      routes: {
        mine: { path: '/api/mine', upstream: 'b', rewrite: '/mine' },
        data: { path: '/api/data', methods: ['GET', 'POST'], upstream: 'b', access: 'public' }
      }
    },
    limits
  })
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const gatewayProcess = await startRestartable(t.after, {
    folder,
    words,
    ...(program !== undefined && { program }),
    environment: { OPS_SECRET: opsSecret, SECRET: opsSecret, ...environment }
  })
  return { folder, upstream, gateway: gatewayProcess }
}

/** On a connection that is kept until the other side closes it. */
function keptClient(url: string, more: Readonly<Record<string, string>> = {}) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  return {
    close: () => agent.destroy(),
    call: async (path: string, cookie: string, json?: object) => {
      const body = json === undefined ? undefined : JSON.stringify(json)
      const asked = request(url + path, {
        agent,
        method: body === undefined ? 'GET' : 'POST',
        headers: {
          ...more,
          cookie,
          ...(body !== undefined && {
            'content-type': 'application/json',
            'content-length': Buffer.byteLength(body)
          })
        }
      })
      asked.end(body)
      const [response] = await once(asked, 'response')
      const { statusCode, headers } = response
      return { status: statusCode, headers, body: await text(response) }
    }
  }
}

t.test(
  'an operator’s kept connection shows the old process, and changes nothing in it',
  async t => {
    const { gateway } = await open(t, {
      gateway: { server: { listen: '127.0.0.1:0', keepAlive: '5m' } }
    })
    // The old process stays for its sake.
    const visitor = keptClient(gateway.url)
    t.match(await visitor.call('/api/data', ''), { status: 200 })
    const operator = keptClient(gateway.opsUrl, { authorization: `Bearer ${opsSecret}` })
    const reader = keptClient(gateway.opsUrl, { authorization: `Bearer ${opsSecret}` })
    const watcher = keptClient(gateway.opsUrl, { authorization: `Bearer ${opsSecret}` })
    t.after(() => [visitor, operator, reader, watcher].forEach(each => each.close()))
    for (const each of [operator, reader, watcher]) {
      t.match(await each.call('/ops/api/status', ''), { status: 200 })
    }
    const options = {
      headers: { authorization: `Bearer ${opsSecret}` },
      signal: AbortSignal.timeout(30_000)
    }
    const paths = ['/ops/api/now/stream', '/ops/api/audit/stream']
    const streams = await Promise.all(
      paths.map(async path => await fetch(gateway.opsUrl + path, options))
    )
    t.match(await gateway.restart(), { outcome: 'restarted' })
    for (const stream of streams) t.match(await stream.text(), /event: end\n/, stream.url)
    const late = await watcher.call('/ops/api/now/stream', '')
    t.match(late, { status: 503, headers: { connection: 'close' } })
    t.match(JSON.parse(late.body), { code: 'ops.replaced' })
    const refused = await operator.call('/ops/api/reload', '', {})
    t.match(refused, { status: 503, headers: { connection: 'close' } })
    t.match(JSON.parse(refused.body), { code: 'ops.replaced' })
    t.match(await reader.call('/ops/api/status', ''), {
      status: 200,
      headers: { connection: 'close' }
    })
    t.match(
      await operator.call('/ops/api/reload', '', {}),
      { status: 200 },
      'the new process does it'
    )
  }
)

t.test('without Redis who is signed in stays so, and limits and lockouts count on', async t => {
  const { gateway } = await open(t, {
    gateway: { server: { listen: '127.0.0.1:0', keepAlive: '5m' } },
    limits: {
      limits: { few: { by: 'user', max: 6, window: '1h' } },
      lockout: { account: { after: 2, delay: '1h', longest: '1h' }, address: { mode: 'off' } }
    }
  })
  const client = keptClient(gateway.url)
  const other = keptClient(gateway.url)
  const third = keptClient(gateway.url)
  t.after(() => [client, other, third].forEach(each => each.close()))
  const signIn = (by: typeof client, username: string, pass: string) =>
    by.call('/api/auth/admin/login', '', { username, password: pass })
  const alice = cookieIn((await signIn(client, 'alice', password)).headers['set-cookie'])
  const second = cookieIn((await signIn(other, 'alice', password)).headers['set-cookie'])
  await signIn(third, 'bob', 'wrong')
  await signIn(third, 'bob', 'wrong')
  t.equal((await signIn(third, 'bob', password)).status, 429, 'bob is locked out')
  const left = (answer: { headers: IncomingHttpHeaders }) =>
    Number(/r=(\d+)/.exec(String(answer.headers['ratelimit']))?.[1])
  const before = await client.call('/api/mine', alice)
  t.equal(before.status, 200)
  t.ok(left(before) > 1)
  t.match(await gateway.restart(), { outcome: 'restarted' })

  const fresh = keptClient(gateway.url)
  t.after(() => fresh.close())
  const after = await fresh.call('/api/mine', alice)
  t.equal(after.status, 200, 'the new process knows the session')
  t.equal(left(after), left(before) - 1, 'and its limit')
  t.equal((await signIn(fresh, 'bob', password)).status, 429, 'bob is still locked out')

  const last = await other.call('/api/account/logout', second, {})
  t.match(last, { status: 200, headers: { connection: 'close' } }, 'a sign-out at the old process')
  t.equal((await fresh.call('/api/mine', second)).status, 401, 'ends the session in the new one')
  const late = await signIn(client, 'alice', password)
  t.match(late, { status: 200, headers: { connection: 'close' } }, 'a sign-in at the old process')
  const lateCookie = cookieIn(late.headers['set-cookie'])
  t.equal((await fresh.call('/api/mine', lateCookie)).status, 200, 'is known to the new one')

  const until = new Date(Date.now() + 3_600_000).toISOString()
  const begun = await gateway.ask('/ops/api/maintenance', { until, routes: ['data'] })
  t.equal(begun.status, 200)
  t.match(await gateway.restart(), { outcome: 'restarted' })
  const last503 = await callOnce(`${gateway.url}/api/data`)
  t.equal(last503.status, 503, 'maintenance of operators stays in force')
})

for (const workers of [1, 2]) {
  const name = `0 of ${requests} requests fail while the process with ${workers} workers is replaced twice`
  t.test(name, t => replaceTwice(t, workers))
}

async function replaceTwice(t: Test, workers: number): Promise<void> {
  const redis = workers > 1 ? await testRedis(t.after) : undefined
  const { gateway } = await open(t, {
    gateway: {
      server: { listen: '127.0.0.1:0', keepAlive: '3s', workers },
      ...(redis && { redis: { url: redis.url }, session: { secrets: ['${SECRET}'] } })
    }
  })
  const load = steadyLoad({ url: `${gateway.url}/api/data`, kept: 16, fresh: 4 })
  await until('the load runs', () => load.sent() > requests / 8)
  const first = await gateway.restart()
  t.match(first, { outcome: 'restarted' })
  await until('the load goes on', () => load.sent() > requests / 2)
  const second = await gateway.restart()
  t.match(second, { outcome: 'restarted' })
  await until('the load is done', () => load.sent() > requests)
  const { failures } = await load.stop()
  t.same(failures, [])
  t.equal(await gateway.serving(), second['pid'])
  await until('the former processes ended', () => ![gateway.pid, first['pid']].some(isAlive))
}

t.test('without Redis a connection outlives two restarts, and its session too', async t => {
  const { gateway } = await open(t, {
    gateway: { server: { listen: '127.0.0.1:0', keepAlive: '5m' } }
  })
  const client = keptClient(gateway.url)
  t.after(() => client.close())
  const json = { username: 'alice', password }
  const signedIn = await client.call('/api/auth/admin/login', '', json)
  const first = await gateway.restart()
  t.match(first, { outcome: 'restarted' })
  t.match(await gateway.restart(), { outcome: 'restarted' })
  // The process between has no connections.
  await gateway.logged('one process has drained', ({ msg }) => msg === 'stopped')
  const last = await client.call('/api/mine', cookieIn(signedIn.headers['set-cookie']))
  t.match(last, { status: 200, headers: { connection: 'close' } })
  await until('the former processes ended', () => ![gateway.pid, first['pid']].some(isAlive))
})

t.test('after a restart each worker that ends is replaced by one', async t => {
  const redis = await testRedis(t.after)
  const { gateway } = await open(t, {
    gateway: {
      // Opened again by its name.
      server: { listen: `127.0.0.1:${await freePort()}`, keepAlive: '1s', workers: 2 },
      redis: { url: redis.url },
      session: { secrets: ['${SECRET}'] }
    }
  })
  t.match(await gateway.restart(), { outcome: 'restarted' })
  await until('the old process has ended', () => !isAlive(gateway.pid))
  const pids = async (): Promise<number[]> => {
    const { workers } = JSON.parse((await gateway.ask('/ops/api/status')).body)
    return workers.flatMap((each: { pid: number; ready: boolean }) => (each.ready ? each.pid : []))
  }
  const replace = async (ended: readonly number[]) => {
    for (const pid of ended) process.kill(pid, 'SIGKILL')
    await until('others serve', async () => {
      const now = await pids()
      return now.length === 2 && !now.some(pid => ended.includes(pid))
    })
  }
  await replace(await pids())
  await replace((await pids()).slice(0, 1))
  t.equal((await callOnce(`${gateway.url}/api/data`)).status, 200)
  const counted = (text: string) => gateway.log.filter(({ msg }) => msg?.startsWith(text)).length
  t.same([counted('a worker ended'), counted('a worker could not start')], [3, 0])
})

t.test('the file with a generated ops.secret goes with the address or the need for it', async t => {
  const runtime = mkdtempSync(join(tmpdir(), 'run-'))
  t.after(() => rmSync(runtime, { recursive: true, force: true }))
  const { folder, gateway } = await open(t, {
    gateway: { ops: { listen: '127.0.0.1:0' } },
    environment: { XDG_RUNTIME_DIR: runtime }
  })
  const file = join(folder, 'gateway.yaml')
  const listening = readFileSync(file, 'utf8')
  const files = () => readdirSync(join(runtime, 'console-gateway'))
  const fileOf = (port: number | string) => [`ops-127.0.0.1_${port}.secret`]
  let { pid } = gateway
  const replaceWith = async (text: string) => {
    writeFileSync(file, text)
    const former = pid
    const before = gateway.log.length
    process.kill(former, 'SIGUSR2')
    const isDone = () => gateway.log.slice(before).some(({ event }) => event === 'restart.done')
    await until('another process serves', isDone)
    pid = gateway.log.findLast(({ event }) => event === 'restart.done')?.['successor']
    await until('the former one has ended', () => !isAlive(former))
  }
  const { port } = new URL(gateway.opsUrl)
  t.same(files(), fileOf(port))
  await replaceWith(listening)
  t.same(files(), fileOf(port), 'the new process is asked with it')
  const other = await freePort()
  const withOps = (text: string) =>
    listening.replace('ops:\n  listen: 127.0.0.1:0', `ops:\n  listen: 127.0.0.1:${other}${text}`)
  await replaceWith(withOps(''))
  t.same(files(), fileOf(other), 'at another address it has another file')
  await replaceWith(withOps('\n  secret: ${OPS_SECRET}'))
  t.same(files(), [], 'a secret of config needs none')
})

t.test('SIGHUP to a replaced process reaches the new one', async t => {
  const { folder, gateway } = await open(t, {
    gateway: {
      server: { listen: '127.0.0.1:0', keepAlive: '5m' },
      reload: { watch: false }
    }
  })
  const client = keptClient(gateway.url)
  t.after(() => client.close())
  await client.call('/api/data', '')
  t.match(await gateway.restart(), { outcome: 'restarted' })
  writeFileSync(join(folder, 'limits.yaml'), 'limits: { few: { by: user, max: 6, window: 1h } }\n')
  process.kill(gateway.pid, 'SIGHUP')
  await until('the new process has read it', async () => {
    const status = JSON.parse((await gateway.ask('/ops/api/status')).body)
    return status.generation === 2
  })
  t.ok(isAlive(gateway.pid))
})

t.test('why a new process could not start is told without its stack', async t => {
  const { folder, gateway } = await open(t)
  const file = join(folder, 'gateway.yaml')
  const sound = readFileSync(file, 'utf8')
  writeFileSync(file, sound.replace(/server:\n  listen: .*/, 'server:\n  listen: 192.0.2.1:8080'))
  const { outcome, reason } = await gateway.restart()
  t.equal(outcome, 'failed')
  t.match(reason, /^192\.0\.2\.1:8080 is no address of this machine\.[^\n]*$/)
  const address = `0.0.0.0:${new URL(gateway.url).port}`
  writeFileSync(file, sound.replace(/server:\n  listen: .*/, `server:\n  listen: ${address}`))
  const overlapping = await gateway.restart()
  t.match(overlapping.reason, `${address} is in use by another process.`)
  t.match(overlapping.reason, /overlaps with the new one, stop and start it for this change\.$/)
})

t.test('with a broken config the old process goes on, and the command says why', async t => {
  const { folder, gateway } = await open(t)
  const file = join(folder, 'gateway.yaml')
  const sound = readFileSync(file, 'utf8')
  const ask = () => run(['restart', '--config', folder], { env: { OPS_SECRET: opsSecret } })
  const { port } = new URL(gateway.opsUrl)
  const broken = sound.replace('server:', 'lisen: {}\nserver:')
  writeFileSync(
    file,
    broken.replace(/ops:\n  listen: 127.0.0.1:0/, `ops:\n  listen: 127.0.0.1:${port}`)
  )
  const failed = await ask()
  t.match(failed, { code: 1, out: '' })
  t.match(failed.err, /unknown key "lisen"/)
  t.match(failed.err, /failed; the gateway runs on/)
  t.equal(await gateway.serving(), gateway.pid)
  const line = await gateway.logged('the failure', ({ event }) => event === 'restart.failed')
  t.match(line, { level: 'error', reason: /unknown key "lisen"/ })
})

t.test('a PID file that cannot be written ends the start with the reason', async t => {
  const folder = await configFolder()
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const pidFile = join(folder, 'none/pid')
  const { code, err } = await runProcess(['start', '--config', folder, '--pid-file', pidFile])
  t.equal(code, 1)
  t.match(err, /^--pid-file cannot be written: ENOENT/m)
})

t.test('signals that come as soon as the PID file is there are obeyed', async t => {
  const pidFile = join(mkdtempSync(join(tmpdir(), 'pid-')), 'pid')
  t.after(() => rmSync(dirname(pidFile), { recursive: true, force: true }))
  const opening = open(t, { words: ['--pid-file', pidFile] })
  await until('the PID file is there', () => existsSync(pidFile))
  const pid = Number(readFileSync(pidFile, 'utf8'))
  for (const signal of ['SIGHUP', 'SIGUSR2'] as const) process.kill(pid, signal)
  const { gateway } = await opening
  await gateway.logged('the reload', ({ event }) => event === 'config.unchanged')
  const { successor } = await gateway.logged('the restart', ({ event }) => event === 'restart.done')
  t.equal(await gateway.serving(), successor)
})

t.test('a new process that dies, or needs what is taken, leaves the old one as it was', async t => {
  const folder = mkdtempSync(join(tmpdir(), 'program-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const program = join(folder, 'launch.js')
  symlinkSync(resolve('src/launch.js'), program)
  const { gateway } = await open(t, { program })
  rmSync(program)
  writeFileSync(program, 'process.kill(process.pid, "SIGKILL")')
  const died = await gateway.restart()
  t.match(died, { outcome: 'failed', reason: /^the new process ended \(SIGKILL\)/ })
  rmSync(program)
  const gone = await gateway.restart()
  t.match(gone, { outcome: 'failed', reason: /^the new process ended \(exit code 1\)/ })
  t.equal(await gateway.serving(), gateway.pid)
  const signedIn = await callOnce(`${gateway.url}/api/auth/admin/login`, {
    json: { username: 'alice', password }
  })
  t.equal(signedIn.status, 200, 'its state came back')
})

t.test(
  'the PID file names the process that serves after a new one wrote its id and died',
  async t => {
    const folder = mkdtempSync(join(tmpdir(), 'program-'))
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    const [program, pidFile] = [join(folder, 'launch.js'), join(folder, 'pid')]
    symlinkSync(resolve('src/launch.js'), program)
    const { gateway } = await open(t, { program, words: ['--pid-file', pidFile] })
    rmSync(program)
    const write = `process.getBuiltinModule('fs').writeFileSync('${pidFile}', process.pid + '\\n')`
    writeFileSync(program, `${write}\nprocess.kill(process.pid, 'SIGKILL')`)
    t.match(await gateway.restart(), { outcome: 'failed', reason: /SIGKILL/ })
    t.equal(Number(readFileSync(pidFile, 'utf8')), gateway.pid)
  }
)

t.test('a second restart during one is refused, and one of a replaced process too', async t => {
  const folder = mkdtempSync(join(tmpdir(), 'program-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const program = join(folder, 'launch.js')
  symlinkSync(resolve('src/launch.js'), program)
  const { gateway } = await open(t, { program })
  const client = keptClient(gateway.url)
  t.after(() => client.close())
  await client.call('/api/data', '')
  const [first, second] = await Promise.all([gateway.restart(), gateway.restart()])
  const outcomes = [first, second].toSorted((a, b) => (a['outcome'] < b['outcome'] ? -1 : 1))
  t.match(outcomes, [
    { outcome: 'refused', reason: 'another restart is under way' },
    { outcome: 'restarted' }
  ])
  process.kill(gateway.pid, 'SIGUSR2')
  const line = await gateway.logged('the refusal', ({ reason }) => /replaced/.test(reason))
  t.match(line, { event: 'restart.refused' })
})

t.test('a link to another version is an upgrade; SIGUSR2 and the PID file', async t => {
  const folder = mkdtempSync(join(tmpdir(), 'program-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const copy = join(folder, 'next')
  cpSync('src', join(copy, 'src'), { recursive: true })
  cpSync('presets', join(copy, 'presets'), { recursive: true })
  symlinkSync(resolve('node_modules'), join(copy, 'node_modules'))
  const description = JSON.parse(readFileSync('package.json', 'utf8'))
  writeFileSync(join(copy, 'package.json'), JSON.stringify({ ...description, version: '99.0.0' }))
  const link = join(folder, 'current')
  symlinkSync(resolve('.'), link)
  const pidFile = join(folder, 'pid')
  const { gateway } = await open(t, {
    program: join(link, 'src/launch.js'),
    words: ['--pid-file', pidFile]
  })
  const status = async () => JSON.parse((await gateway.ask('/ops/api/status')).body)
  const readPid = () => Number(readFileSync(pidFile, 'utf8'))
  t.equal((await status()).version, description.version)
  t.equal(readPid(), gateway.pid)
  rmSync(link)
  symlinkSync(copy, link)
  process.kill(gateway.pid, 'SIGUSR2')
  const { successor } = await gateway.logged('the restart', ({ event }) => event === 'restart.done')
  t.match(await status(), { version: '99.0.0', pid: successor })
  t.equal(readPid(), successor)
  await until('the old process has ended', () => !isAlive(gateway.pid))
  t.equal(readPid(), successor, 'the old process leaves the file')
  process.kill(successor, 'SIGTERM')
  await until('the new process has ended', () => !isAlive(successor))
  t.notOk(existsSync(pidFile))
})

t.test(
  'listeners of https and its redirect are inherited; one at a new address is opened',
  async t => {
    const { key, certificate } = testAuthority(t.after)
    const [redirectPort, movedPort] = [await freePort(), await freePort()]
    const tls = {
      certificate,
      key: `file:${key}`,
      redirect: `127.0.0.1:${redirectPort}`
    }
    const { folder, gateway } = await open(t, {
      gateway: { server: { listen: '127.0.0.1:0', keepAlive: '1s', hosts: ['127.0.0.1'], tls } }
    })
    const ca = readFileSync(certificate)
    const get = async () => {
      const asked = secureRequest(`${gateway.url}/api/data`, { agent: false, ca })
      asked.end()
      const [response] = await once(asked, 'response')
      return response.resume().statusCode
    }
    const redirected = async (port: number) => {
      const { status } = await callOnce(`http://127.0.0.1:${port}/api/data`)
      return status
    }
    const expected = { https: await get(), redirect: await redirected(redirectPort) }
    t.equal(expected.https, 200)
    t.match(await gateway.restart(), { outcome: 'restarted' })
    t.same({ https: await get(), redirect: await redirected(redirectPort) }, expected)

    const file = join(folder, 'gateway.yaml')
    writeFileSync(file, readFileSync(file, 'utf8').replace(`:${redirectPort}`, `:${movedPort}`))
    t.match(await gateway.restart(), { outcome: 'restarted' })
    t.same({ https: await get(), redirect: await redirected(movedPort) }, expected)
    await until('nobody listens at the former address', async () =>
      redirected(redirectPort).then(
        () => false,
        () => true
      )
    )
  }
)
