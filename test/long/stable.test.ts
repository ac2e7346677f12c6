/** Stable from 0.3.0 on: an update from its tag, and back. Before it this version is both. */
import { execFile, execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { configFolder } from '../support/gateway.ts'
import { startGatewayProcess } from '../support/gateway-process.ts'
import { linesIn } from '../support/ledger.ts'
import { beginMaintenance } from '../support/ops.ts'
import { testRedis } from '../support/redis.ts'
import { temporaryFolder } from '../support/temporary.ts'
import { until } from '../support/until.ts'
import { json, testUpstream } from '../support/upstream.ts'

const tag = 'v0.3.0'
const here = '.'

/** The folder of the released version. */
function released(): string {
  const isReleased = !readFileSync('CHANGELOG.md', 'utf8').includes('## 0.3.0, unreleased')
  if (!isReleased) return here
  const folder = temporaryFolder()
  const archive = execFileSync('git', ['archive', tag], { maxBuffer: 1024 ** 3 })
  execFileSync('tar', ['-x', '-C', folder], { input: archive })
  symlinkSync(join(process.cwd(), 'node_modules'), join(folder, 'node_modules'))
  return folder
}

async function command(checkout: string, ...words: string[]): Promise<string> {
  const program = join(checkout, 'src/launch.js')
  const { stdout } = await promisify(execFile)(process.execPath, [program, ...words])
  return stdout
}

async function start(t: Test, checkout: string, folder: string) {
  const gateway = await startGatewayProcess(t.after, folder, { checkout })
  await gateway.ready()
  return gateway
}

const old = released()

const ways = { [`from ${tag}`]: [old, here], [`back to ${tag}`]: [here, old] } as const

for (const [way, [from, to]] of Object.entries(ways)) {
  t.test(`sessions, keys, blocks, maintenance, failures and ledger: ${way}`, async t => {
    const redis = await testRedis(t.after)
    const upstream = await testUpstream(t.after, json(200, { rows: [{ id: 1 }], total: 1 }))
    const folder = await configFolder({
      gateway: { audit: { key: 'file:session-secret' } },
      redis: redis.url,
      backend: upstream.url,
      routes: {
        routes: {
          orders: { shape: 'page', keys: true },
          closed: {},
          admins: { access: { roles: ['nobody'] } }
        },
        shapes: { page: [{ paging: { list: 'rows', total: 'total' } }] }
      }
    })
    const first = await start(t, from, folder)
    const [cookie, elsewhere] = [await first.signIn(), await first.signIn()]
    const { key } = await first.opsJson('keys/create', { name: 'nightly', roles: ['user'] })
    await first.opsJson('users/block', { name: 'bob' })
    await beginMaintenance(first.opsUrl, { routes: ['closed'] })
    const refused = await first.call('/api/admins', { cookie })
    t.equal(refused.status, 403)

    const second = await start(t, to, folder)
    t.equal(await second.status('/api/account/profile', { cookie }), 200)
    const orders = { status: 200, json: { data: [{ id: 1 }], total: 1 } }
    t.match(await second.call('/api/orders', { cookie }), orders)
    const headers = { authorization: `Bearer ${key}` }
    t.match(await second.call('/api/orders', { headers }), orders)
    t.match(await second.attempt('bob'), { status: 403, json: { errorCode: 'login.blocked' } })
    t.equal(await second.status('/api/closed', { cookie }), 503)
    const id = refused.headers.get('x-request-id')
    await until('the failure is told', async () => {
      return (await second.opsJson(`requests?id=${id}`)).requests.length === 1
    })
    const { replicas } = await second.opsJson('replicas')
    t.equal(replicas.length, 2)
    t.equal(replicas[0].configHash, replicas[1].configHash)

    await second.call('/api/account/logout', { cookie: elsewhere })
    const session = async (of: string) => await first.status('/api/session', { cookie: of })
    t.equal(await session(cookie), 200)
    await until('it is over there, too', async () => (await session(elsewhere)) === 401)
    t.equal(await session(await second.signIn()), 200)
    await second.stop()
    await first.stop()
    t.match(linesIn(folder), [{}, {}])
    t.match(await command(to, 'audit', 'verify', '--config', folder), /\S/)
  })
}

t.test('folders of the release have no fault in this version', async t => {
  const presets = readdirSync(join(old, 'presets/console')).map(file => file.replace('.yaml', ''))
  t.ok(presets.length >= 9)
  const folderOf = (preset: string) =>
    configFolder({ gateway: { extends: preset, server: { hosts: ['c.example.com'] } } })
  const folders = [join(old, 'config'), ...(await Promise.all(presets.map(folderOf)))]
  for (const folder of folders) await t.resolves(command(here, 'check', '--config', folder))
})
