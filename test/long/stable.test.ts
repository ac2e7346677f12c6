/** Stable from 0.3.0 on: an update from its tag, and back. Before it this version is both. */
import { execFile, execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { configFolder, password } from '../support/gateway.ts'
import { callOnce } from '../support/call.ts'
import { startGatewayProcess } from '../support/gateway-process.ts'
import { linesIn } from '../support/ledger.ts'
import { testRedis } from '../support/redis.ts'
import { cookieIn } from '../support/sign-in.ts'
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
  const gateway = await startGatewayProcess(t.after, { checkout, folder })
  await gateway.ready()
  const call = async (path: string, headers: Record<string, string> = {}, json?: object) =>
    await callOnce(gateway.url + path, { headers, json })
  return {
    ...gateway,
    call,
    signIn: async (username: string) => {
      const answer = await call('/api/auth/admin/login', {}, { username, password })
      return { ...answer, cookie: cookieIn(answer.headers['set-cookie']) }
    },
    act: async (path: string, body?: object) => {
      const { status, text, json } = await gateway.ask(`/ops/api${path}`, { json: body })
      if (status >= 300) throw new Error(`${path}: ${status} ${text}`)
      return json
    }
  }
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
    const end = new Date(Date.now() + 3_600_000).toISOString()
    const first = await start(t, from, folder)
    const [alice, elsewhere] = [await first.signIn('alice'), await first.signIn('alice')]
    const { key } = await first.act('/keys/create', { name: 'nightly', roles: ['user'] })
    await first.act('/users/block', { name: 'bob' })
    await first.act('/maintenance', { routes: ['closed'], until: end })
    const refused = await first.call('/api/admins', { cookie: alice.cookie })
    t.equal(refused.status, 403)

    const second = await start(t, to, folder)
    const mine = { cookie: alice.cookie }
    t.match(await second.call('/api/account/profile', mine), { status: 200 })
    const orders = { status: 200, json: { data: [{ id: 1 }], total: 1 } }
    t.match(await second.call('/api/orders', mine), orders)
    t.match(await second.call('/api/orders', { authorization: `Bearer ${key}` }), orders)
    t.match(await second.signIn('bob'), { status: 403, json: { errorCode: 'login.blocked' } })
    t.match(await second.call('/api/closed', mine), { status: 503 })
    await until('the failure is told', async () => {
      const { requests } = await second.act(
        `/requests?id=${String(refused.headers['x-request-id'])}`
      )
      return requests.length === 1
    })
    const { replicas } = await second.act('/replicas')
    t.equal(replicas.length, 2)
    t.equal(replicas[0].configHash, replicas[1].configHash)

    await second.call('/api/account/logout', { cookie: elsewhere.cookie })
    const session = async (cookie: string) => (await first.call('/api/session', { cookie })).status
    t.equal(await session(alice.cookie), 200)
    await until('it is over there, too', async () => (await session(elsewhere.cookie)) === 401)
    t.equal(await session((await second.signIn('alice')).cookie), 200)
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
