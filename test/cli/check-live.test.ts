/** `check --live`: what can be reached, over real sockets. */
import t, { type Test } from 'tap'
import { run } from '../support/command.ts'
import { testCluster } from '../support/cluster.ts'
import { configFolder, testGateway } from '../support/gateway.ts'
import { testProvider } from '../support/oidc-provider.ts'
import { freePort } from '../support/ports.ts'
import { redisCli } from '../support/redis-cli.ts'
import { testRedis } from '../support/redis.ts'
import { testSentinel } from '../support/sentinel.ts'
import { testUpstream } from '../support/upstream.ts'
import { until } from '../support/until.ts'

const redis = await testRedis(t.after)
const backend = await testUpstream(t.after)
const deadPort = await freePort()
const dead = `http://127.0.0.1:${deadPort}`
const env = { PASSWORD: 'p' }
const check = async (folder: string, environment: Record<string, string> = env) =>
  await run(['check', '--live', '--config', folder], { env: environment })

const folderOf = async (redisPort: number, urls: readonly string[]) =>
  await configFolder({
    redis: `redis://127.0.0.1:${redisPort}`,
    backend: { url: urls },
    source: { outcomes: [{ is: 'success', path: 'code', in: [200] }] },
    routes: { routes: { r: {} } }
  })

t.test('what can be reached is listed, and nothing is asked of back-ends', async t => {
  const { code, out, err } = await check(await folderOf(redis.port, [backend.url]))
  t.same({ code, err }, { code: 0, err: '' })
  t.match(out, `upstream b: ${backend.url}: ok\n`)
  t.match(out, `redis: 127.0.0.1:${redis.port}: ok\n`)
  t.match(out, 'sign-in b: upstream b: ok\n')
  t.equal(backend.begun(), 0)
})

t.test('an OpenID provider is asked for its settings and keys', async t => {
  const provider = await testProvider(t.after)
  const folder = await configFolder({ gateway: { login: { sources: { sso: provider.config() } } } })
  const ok = `sign-in sso: ${provider.issuer}: ok\n`
  t.match(await check(folder, provider.environment), { code: 0, out: ok })
  provider.fault = 404
  const unexpected = /sign-in sso: \S+ .*the OpenID provider: unexpected HTTP response status code/
  t.match(await check(folder, provider.environment), { code: 1, out: unexpected })
})

t.test('what cannot be reached is named with the reason, and the exit code is 1', async t => {
  const folder = await folderOf(deadPort, [backend.url, dead])
  const { code, out } = await run(['check', '--live', '--json', '-c', folder])
  t.match(JSON.parse(out), {
    faults: [],
    live: [
      { what: 'upstream b', address: backend.url, fault: undefined },
      { what: 'upstream b', address: dead, fault: 'ECONNREFUSED' },
      { what: 'redis', address: `127.0.0.1:${deadPort}`, fault: String },
      { what: 'sign-in b', fault: undefined }
    ]
  })
  t.equal(code, 1)
})

/** What the gateway says of a Redis that answers, and does not do what it needs. */
async function saidOf(t: Test, config: Record<string, unknown>) {
  const folder = await configFolder({ redis: config })
  const { code, out } = await check(folder)
  const running = await testGateway(t.after, folder, env)
  await running.logged(({ msg }) => String(msg).startsWith('Redis answers, but refuses'))
  const ready = await running.ops('/readyz')
  return { code, out, status: ready.status, ready: await ready.json(), ops: running.ops }
}

t.test('case 14: an ACL user that may not do what a sign-in does', async t => {
  const acl = await testRedis(t.after)
  const config = { url: acl.url, username: 'gateway', password: '${PASSWORD}' }
  const rights = async (...words: string[]) =>
    await redisCli(acl.port, 'ACL', 'SETUSER', 'gateway', ...words)
  await rights('on', '>p', '~*', '&*', '+@all', '-@scripting')
  t.match(await saidOf(t, config), {
    code: 1,
    out: /redis: 127\.0\.0\.1:\d+: .*see "Rights of an ACL user" in docs/,
    status: 503,
    ready: { redis: /ACL user lacks a right.*NOPERM.*eval/ }
  })
  await rights('+@all', '-zadd')
  const lacking = { redis: /ACL user lacks a right/ }
  t.match(await saidOf(t, config), { code: 1, status: 503, ready: lacking })
})

t.test('case 14: a node of a Cluster in redis.url', async t => {
  const cluster = await testCluster(t.after)
  const own = await cluster.primaryOf('{cg}:')
  const { url } = cluster.servers.find(server => server !== own) ?? {}
  const node = { redis: /node of a Cluster: set redis\.cluster/ }
  t.match(await saidOf(t, { url }), { code: 1, status: 503, ready: node })
})

t.test('case 14: a replica in redis.url, until it is promoted', async t => {
  const { url, port } = await testRedis(t.after)
  await redisCli(port, 'REPLICAOF', '127.0.0.1', String(deadPort))
  const out = /redis: 127\.0\.0\.1:\d+: .*takes no writes: redis\.url has to lead to the primary/
  const said = await saidOf(t, { url })
  t.match(said, { code: 1, out, status: 503, ready: { redis: /takes no writes/ } })
  await redisCli(port, 'REPLICAOF', 'NO', 'ONE')
  await until('it is ready', async () => (await said.ops('/readyz')).status === 200)
})

t.test('a primary that takes writes without a replica is one to be bounded', async t => {
  const { sentinels, name, servers } = await testSentinel(t.after)
  const folder = await configFolder({ redis: { sentinels, primary: name } })
  const unbounded = /^redis: .*: ok \(set min-replicas-to-write 1 in Redis/m
  t.match(await check(folder), { code: 0, out: unbounded })
  await redisCli(servers[0].port, 'CONFIG', 'SET', 'min-replicas-to-write', '1')
  t.match(await check(folder), { code: 0, out: /^redis: .*: ok$/m })
})

t.end()
