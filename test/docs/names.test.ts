/** Names that other versions, replicas, browsers, dashboards and alerts know, as literals. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import t from 'tap'
import { errorKinds } from '../../src/errors/errors.ts'
import { createSeal } from '../../src/session/seal.ts'
import { keptReasons, keyOf } from '../../src/session/types.ts'
import { sessionSecret, testGateway } from '../support/gateway.ts'
import { testRedis } from '../support/redis.ts'

const sources = join(import.meta.dirname, '../../src')

/** In order, as they are found. */
const words = (text: string) => text.trim().split(/\s+/)

const recordMembers = words(`
  address agent createdAt id identity identity.id identity.name identity.profile
  identity.profile.email identity.roles identity.username idleMs password remembered source
`)

const codes = words(`
  contract.broken gateway.fault gateway.stopping key.invalid limit.exceeded login.blocked
  login.blocked-by-operator login.challenge login.expired-password login.locked login.refused
  login.too-many maintenance ops.host ops.ledger ops.origin ops.redis ops.role ops.secret
  ops.session origin.refused overloaded request.expectation request.headers request.malformed
  request.path request.timeout request.too-large request.type request.uri-too-long
  route.credential route.forbidden route.keys route.method route.unknown route.unknown-user session.absolute session.idle
  session.none session.replaced session.revoked session.unavailable session.unknown
  session.upstream shape.module shape.not-json shape.too-large upstream.error upstream.invalid
  upstream.module upstream.redirect upstream.refused upstream.reset upstream.timeout
  upstream.timeout.connect upstream.timeout.idle upstream.timeout.total
`)

/** All that a pattern's first group matches in the source, each once. */
function inSources(pattern: RegExp): string[] {
  const texts = readdirSync(sources, { recursive: true, encoding: 'utf8' })
    .filter(file => file.endsWith('.ts'))
    .map(file => readFileSync(join(sources, file), 'utf8'))
  const names = texts.flatMap(text => Array.from(text.matchAll(pattern), ([, name = '']) => name))
  return [...new Set(names)].toSorted()
}

t.test('the events of log lines are those of observability.md', async t => {
  const page = readFileSync('docs/observability.md', 'utf8')
  const [, table = ''] = / Other events:\n([^]*?)\n## /.exec(page) ?? []
  const listed = new Set(table.match(/(?<=`)[a-z]+(?:[.-][a-z-]+)*(?=`)/g))
  const written = new Set(inSources(/\bevent: ?'([^']+)'/g))
  // No event, one whose name is put together, and those that the page has elsewhere.
  const others = ['outcome', 'upstream.address.open', 'connection.refused', 'traces.config']
  t.same(listed.symmetricDifference(written), new Set(others))
  t.ok(others.every(name => page.includes(`\`${name}\``)))
})

t.test('the codes of errors', async t => {
  t.same(Object.keys(errorKinds).toSorted(), codes)
})

/** Without what differs from run to run. */
function plain(key: string): string {
  return key
    .replace(/s:[\w-]{16}[0-9a-f]{64}/, 's:KEY')
    .replace(/u:[\w-]{16}$/, 'u:USER')
    .replace('127.0.0.1', 'ADDRESS')
}

/** The names of all members, also of members' members, as `a.b`. */
function membersOf(value: unknown): string[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return []
  return Object.entries(value).flatMap(([name, member]) => [
    name,
    ...membersOf(member).map(below => `${name}.${below}`)
  ])
}

t.test('the beginnings of keys in Redis', async t => {
  const beginnings = words(`
    audit-heads f: keys l: locks maintenance operator-sign-outs probe: replicas s: set: u: users
  `)
  t.same(inSources(/`\$\{(?:config\.)?prefix\}([a-z][\w:{-]+)/g), beginnings)
})

t.test('cookies, keys and values that a running gateway leaves', async t => {
  const { url } = await testRedis(t.after)
  const redis = new Redis(url)
  t.after(() => redis.disconnect())
  const files = {
    redis: { url, commandTimeout: '20s' },
    limits: {
      limits: { everyone: { by: 'address', max: 1000, window: '1m' } },
      lockout: { account: { failures: 2 } }
    }
  }
  const gateway = await testGateway(t.after, files)
  await gateway.ready()
  const signIn = await gateway.attempt('alice', { autoLogin: true })
  const cookies = signIn.headers.getSetCookie().map(cookie => cookie.split(';', 1)[0] ?? '')
  t.same(
    cookies.map(cookie => cookie.split('=', 1)[0]),
    ['console_sid', 'console_known', 'TOKEN__']
  )
  const [cookie = ''] = cookies
  await gateway.attempt('bob', { password: 'wrong' })
  const close = await gateway.ops('/ops/api/sessions/close', { json: { everyone: true } })
  t.equal(close.status, 200)

  // The others are written when the process gets to it.
  const keys = (await redis.keys('*')).filter(key => !/:(?:failures|replicas)$/.test(key))
  const types = await Promise.all(keys.map(async key => `${plain(key)} ${await redis.type(key)}`))
  t.same(types.toSorted(), [
    '{cg}:f:account bob string',
    '{cg}:f:accountAndAddress bob ADDRESS string',
    '{cg}:f:address ADDRESS string',
    '{cg}:s:KEY string',
    '{cg}:s:epoch string',
    '{cg}:u:USER zset'
  ])

  const id = decodeURIComponent(cookie).slice('console_sid='.length).split('.')[0] ?? ''
  t.equal(id.length, 48)
  const key = keyOf(id)
  t.notOk(key.includes(id.slice(16)), 'a hash of the cookie’s value')
  t.ok((await redis.pttl(`{cg}:s:${key}`)) > 0)
  const [epoch, sealed = ''] = (await redis.get(`{cg}:s:${key}`))?.split(' ') ?? []
  t.equal(epoch, '0')
  t.match(sealed, /^[\w-]{6}\.[\w-]+$/)
  const record = createSeal([sessionSecret]).open(key, sealed)
  t.same(membersOf(record).toSorted(), recordMembers)
  t.equal(await redis.get('{cg}:s:epoch'), '1')

  await gateway.signIn('bob')
  t.same(await redis.zrange('{cg}:users', 0, '-1'), ['["users-file","2","bob"]'])
  await gateway.ops('/ops/api/sessions/close', { json: { user: 'bob' } })
  const values = await redis.mget(await redis.keys('{cg}:s:*'))
  t.ok(values.includes('!revoked'), 'a tombstone')
})

t.test('the reasons of ends in tombstones', async t => {
  t.same(keptReasons, ['idle', 'absolute', 'revoked', 'replaced', 'upstream'])
})
