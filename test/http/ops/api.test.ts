/** The operators' API: where it stands, how it is described, its requests, users and state. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv } from 'ajv'
import formats from 'ajv-formats'
import { Redis } from 'ioredis'
import t from 'tap'
import { parse, stringify } from 'yaml'
import type { SessionsAnswer } from '../../../src/ops/users.ts'
import { allSecrets } from '../../support/all-secrets.ts'
import { password, type TestGateway, testGateway } from '../../support/gateway.ts'
import { testRedis } from '../../support/redis.ts'
import { minute } from '../../support/sessions.ts'
import { temporaryFolder } from '../../support/temporary.ts'
import { until } from '../../support/until.ts'
import { hashOf } from '../../support/users.ts'

type Schema = Record<string, unknown>
type Operation = Record<string, any>

const gateway = await testGateway(t.teardown)
const cookie = await gateway.signIn()

/** No member of an answer stands outside of its schema. */
function closed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closed)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).map(([name, member]) => [name, closed(member)])
  const schema = Object.fromEntries(members) as Schema
  const isWhole = 'properties' in schema && Object.keys(schema['properties'] as Schema).length > 0
  return isWhole ? { ...schema, additionalProperties: false } : schema
}

t.test('the API describes each of its routes', async t => {
  await gateway.call('/api/nowhere')
  const document = await gateway.opsJson('openapi.json')
  const paths = document.paths as Record<string, Record<string, Operation>>
  t.match(paths, {
    '/ops/api/sessions': { get: { parameters: [{ name: 'user', in: 'query', required: false }] } },
    '/ops/api/sessions/close': { post: { requestBody: { content: {} } } },
    '/ops/api/requests': { get: { parameters: [{ name: 'id', in: 'query', required: false }] } },
    '/ops/api/limits': { get: {} },
    '/ops/api/openapi.json': { get: {} }
  })
  const pages = Object.keys(paths).filter(path => !path.startsWith('/ops/api/'))
  t.same(pages, [])
  const ajv = formats.default(new Ajv({ strict: false, allErrors: true }))
  for (const [path, operations] of Object.entries(paths)) {
    for (const operation of Object.values(operations)) t.type(operation['summary'], 'string', path)
    const ofAnswer = operations['get']?.['responses'][200].content?.['application/json'].schema
    const isOpen = path.includes('requests') || path.endsWith('maintenance')
    if (ofAnswer === undefined || path.endsWith('/openapi.json')) continue
    const answer = await gateway.opsJson(
      path.replace('/ops/api/', '').replace(/caller$/, '$&?caller=a')
    )
    const fits = ajv.compile(isOpen ? ofAnswer : (closed(ofAnswer) as Schema))
    t.ok(fits(answer), `${path} ${JSON.stringify(fits.errors)}`)
  }
})

t.test('requests are found by filters, and by id with advice', async t => {
  const ask = async (path: string) => await gateway.opsJson(`requests${path}`)
  const { headers } = await gateway.call('/api/nowhere?token=secret', { cookie })
  const id = headers.get('x-request-id') ?? ''
  await until('it is remembered', async () => (await ask(`?id=${id}`)).requests.length === 1)
  t.match(await ask('?status=4xx&last=1'), {
    requests: [{ requestId: id, status: 404, code: 'route.unknown' }]
  })
  t.match(await ask('?route=login&user=alice&last=1'), { requests: [{ status: 200 }] })
  t.match(await ask(`?id=${id}`), {
    requests: [{ requestId: id, message: String, advice: /No route has this path/ }],
    oldestAt: String
  })
  t.notMatch(JSON.stringify(await ask('')), 'secret')
  await gateway.call(`/${'x'.repeat(600)}?token=secret`)
  await until('a long path is cut', async () => {
    const [last] = (await ask('?status=4xx')).requests
    return last?.path.length === 512
  })
  t.same((await ask('?id=not-there')).requests, [])
})

t.test('no answer of the state holds a secret, whatever changes about secrets', async t => {
  const sslFolder = temporaryFolder()
  const secrets = allSecrets(t.after, sslFolder, false)
  const { gateway: install, upstream, others, environment, values } = secrets
  const { server: _, ...withoutTls } = install
  const gateway = await testGateway(
    t.after,
    { gateway: { ...withoutTls, ops: {} }, routes: { upstreams: { b: upstream, ...others } } },
    environment
  )
  const change = (file: string, edit: (content: any) => void) => {
    const name = join(gateway.folder, file)
    const content = parse(readFileSync(name, 'utf8')) as unknown
    edit(content)
    writeFileSync(name, stringify(content))
  }
  const texts: string[] = []
  const look = async () => {
    const paths = ['status', 'plan', 'replicas', 'openapi.json']
    for (const path of paths) texts.push(JSON.stringify(await gateway.opsJson(path)))
  }
  await look()
  change('routes.yaml', content => {
    content.upstreams.b.headers['x-second'] = '${SESSION_2}'
    delete content.upstreams.b.headers['x-api-key']
    content.upstreams.b.tls.key = `file:${join(sslFolder, 'server.key')}`
    const { asked, shared, signed } = content.upstreams
    asked.credential.exchange.headers['x-key'] = '${SESSION_2}'
    shared.credential.jwt.secret = '${SESSION_2}'
    signed.credential.jwt.keys.unshift(`file:${join(sslFolder, 'client.key')}`)
  })
  change('gateway.yaml', content => {
    content.session.secrets = ['${SESSION_2}']
    content.ops.secret = '${OPS}'
  })
  await look()
  t.match(await gateway.reload('operator'), { outcome: 'reloaded' })
  await look()
  change('routes.yaml', content => {
    content.upstreams.b.headers['x-list'] = [values[1]]
    content.upstreams.b.tls.key = readFileSync(join(sslFolder, 'client.key'), 'utf8')
  })
  t.match(await gateway.reload('operator'), { outcome: 'refused' })
  await look()
  const all = texts.join('\n')
  const changed = ['session.secrets changed', 'shared.credential.jwt.secret changed']
  for (const what of ['headers.x-second added', ...changed]) t.ok(all.includes(what), what)
  const logged = JSON.stringify(gateway.log)
  for (const value of values) t.notOk((all + logged).includes(value), value.slice(0, 20))
})

const maxMs = 10
const many = 100_000
const userAt = (index: number) => ({ source: 'crowd', id: `i${index}`, username: `User-${index}` })

const list = async ({ opsJson }: TestGateway, query: string): Promise<SessionsAnswer> =>
  await opsJson(`sessions?${query}`)

const namesIn = ({ sessions }: SessionsAnswer) => sessions.map(({ user }) => user)

/** The CPU time of this thread: what others do on the machine does not count. */
function cpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

/** For how long work holds the loop at a stretch: the least of some tries, which garbage may join. */
async function stretchOf(work: () => Promise<unknown>): Promise<number> {
  const all: number[] = []
  for (let tries = 0; tries < 5; tries++) {
    let [before, longest, isOver] = [cpuMs(), 0, false]
    const look = () => {
      longest = Math.max(longest, cpuMs() - before)
      before = cpuMs()
      if (!isOver) setImmediate(look)
    }
    setImmediate(look)
    await work()
    isOver = true
    all.push(Math.max(longest, cpuMs() - before))
  }
  return Math.min(...all)
}

t.test('with 100,000 users in Redis no page and no search holds the loop for 10 ms', async t => {
  const { url } = await testRedis(t.after)
  const names = Array.from({ length: 50 }, (_, index) => `clerk${index}`)
  const user = { password: hashOf(password) }
  const gateway = await testGateway(t.after, {
    redis: url,
    users: { users: Object.fromEntries(names.map(name => [name, user])) }
  })
  const client = new Redis(url)
  t.teardown(() => client.disconnect())
  for (let at = 0; at < many; at += 1000) {
    const members = Array.from({ length: 1000 }, (_, index) => {
      const { source, id, username } = userAt(at + index)
      return [Date.now() + 5 * minute, JSON.stringify([source, id, username])]
    })
    await client.zadd('{cg}:users', ...members.flat())
  }
  for (const name of names) await gateway.signIn(name)
  t.equal((await list(gateway, '')).users, many + 50)
  t.same(new Set(namesIn(await list(gateway, ''))), new Set(names), 'the last')
  t.match(await list(gateway, 'size=1'), { sessions: { length: 1 }, isWhole: false })
  t.same(namesIn(await list(gateway, 'search=LERK49')), ['clerk49'], 'among all')
  t.same(namesIn(await list(gateway, 'user=clerk7')), ['clerk7'])
  const byId = await list(gateway, 'user=clerk7&by=id')
  t.same(namesIn(byId), ['clerk7'], 'a name stands for an id that the file lacks')
  for (const place of ['/ops/api/sessions', '/ops/users']) {
    for (const query of ['', '?search=clerk', '?search=user', '?search=nobody']) {
      const ms = await stretchOf(async () => await (await gateway.ops(place + query)).text())
      t.ok(ms <= maxMs, `${place}${query}: ${ms.toFixed(1)} ms`)
    }
  }
})
