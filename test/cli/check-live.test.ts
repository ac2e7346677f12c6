/** `check --live`: what can be reached, over real sockets. */
import t, { type Test } from 'tap'
import { stringify } from 'yaml'
import { run } from '../support/command.ts'
import { testCluster } from '../support/cluster.ts'
import { textFolder } from '../support/config-files.ts'
import { configFolder, testGateway } from '../support/gateway.ts'
import { testProvider } from '../support/oidc-provider.ts'
import { freePort } from '../support/ports.ts'
import { redisCli } from '../support/redis-cli.ts'
import { testRedis } from '../support/redis.ts'
import { testSentinel } from '../support/sentinel.ts'
import { testUpstream } from '../support/upstream.ts'

const redis = await testRedis(t.after)
const backend = await testUpstream(t.after)
const deadPort = await freePort()
const dead = `http://127.0.0.1:${deadPort}`

function folderOf(t: Test, redisPort: number, urls: readonly string[]): string {
  return textFolder(t.after, {
    'gateway.yaml': stringify({
      redis: { url: `redis://127.0.0.1:${redisPort}` },
      session: { secrets: ['${SECRET}'] },
      login: {
        sources: {
          b: {
            kind: 'upstream-login',
            upstream: 'b',
            path: '/login',
            outcomes: [{ is: 'success', path: 'code', in: [200] }],
            user: { id: 'id' }
          }
        }
      }
    }),
    'routes.yaml': stringify({
      upstreams: { b: { url: urls } },
      routes: { r: { path: '/api/r', upstream: 'b' } }
    })
  })
}

const environment = { SECRET: 'a secret of at least 32 characters!!' }

t.test('what can be reached is listed, and nothing is asked of back-ends', async t => {
  const folder = folderOf(t, redis.port, [backend.url])
  const { code, out, err } = await run(['check', '--live', '-c', folder], { env: environment })
  t.equal(err, '')
  t.match(out, `upstream b: ${backend.url}: ok\n`)
  t.match(out, `redis: 127.0.0.1:${redis.port}: ok\n`)
  t.match(out, 'sign-in b: upstream b: ok\n')
  t.equal(code, 0)
  t.equal(backend.begun(), 0)
})

t.test('an OpenID provider is asked for its settings and keys', async t => {
  const provider = await testProvider(t.after)
  const folder = await configFolder({ gateway: { login: { sources: { sso: provider.config() } } } })
  const check = async () =>
    await run(['check', '--live', '-c', folder], { env: provider.environment })
  const { code, out } = await check()
  t.match(out, `sign-in sso: ${provider.issuer}: ok\n`)
  t.equal(code, 0)
  provider.fault = 404
  const failed = await check()
  t.match(
    failed.out,
    /sign-in sso: \S+ .*the OpenID provider: unexpected HTTP response status code/
  )
  t.equal(failed.code, 1)
})

t.test('what cannot be reached is named with the reason, and the exit code is 1', async t => {
  const folder = folderOf(t, deadPort, [backend.url, dead])
  const { code, out } = await run(['check', '--live', '--json', '-c', folder], { env: environment })
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
async function toldOf(t: Test, redisConfig: object) {
  const gateway = {
    redis: redisConfig,
    session: { secrets: ['${SECRET}'] },
    login: { sources: { 'users-file': { kind: 'users-file', file: 'users.yaml' } } }
  }
  const folder = await configFolder({ gateway })
  const { code, out } = await run(['check', '--live', '-c', folder], {
    env: { ...environment, PASSWORD: 'p' }
  })
  const running = await testGateway(t.after, { gateway }, { ...environment, PASSWORD: 'p' })
  await running.logged(({ msg }) => String(msg).startsWith('Redis answers, but refuses'))
  const ready = await running.ops('/readyz')
  const { redis: part } = (await ready.json()) as { readonly redis: string }
  return { code, out, status: ready.status, part }
}

t.test('case 14: an ACL user that may not do what a sign-in does', async t => {
  const acl = await testRedis(t.after)
  const rights = ['on', '>p', '~*', '&*', '+@all', '-@scripting']
  await redisCli(acl.port, 'ACL', 'SETUSER', 'gateway', ...rights)
  const told = await toldOf(t, { url: acl.url, username: 'gateway', password: '${PASSWORD}' })
  t.match(told, { code: 1, status: 503, part: /ACL user lacks a right.*NOPERM.*eval/ })
  t.match(told.out, /redis: 127\.0\.0\.1:\d+: .*see "Rights of an ACL user" in docs/)
  await redisCli(acl.port, 'ACL', 'SETUSER', 'gateway', '+@all', '-zadd')
  t.match(await toldOf(t, { url: acl.url, username: 'gateway', password: '${PASSWORD}' }), {
    code: 1,
    status: 503,
    part: /ACL user lacks a right/
  })
})

t.test('case 14: a node of a Cluster in redis.url', async t => {
  const cluster = await testCluster(t.after)
  const own = await cluster.primaryOf('{cg}:')
  const told = await toldOf(t, { url: cluster.servers.find(server => server !== own)?.url })
  t.match(told, { code: 1, status: 503, part: /node of a Cluster: set redis\.cluster/ })
})

t.test('a primary that takes writes without a replica is one to be bounded', async t => {
  const { sentinels, name, servers } = await testSentinel(t.after)
  const gateway = {
    redis: { sentinels, primary: name },
    session: { secrets: ['${SECRET}'] },
    login: { sources: { 'users-file': { kind: 'users-file', file: 'users.yaml' } } }
  }
  const folder = await configFolder({ gateway })
  const check = async () => await run(['check', '--live', '-c', folder], { env: environment })
  t.match(await check(), { code: 0, out: /^redis: .*: ok \(set min-replicas-to-write 1 in Redis/m })
  await redisCli(servers[0].port, 'CONFIG', 'SET', 'min-replicas-to-write', '1')
  t.match(await check(), { code: 0, out: /^redis: .*: ok$/m })
})

t.end()
