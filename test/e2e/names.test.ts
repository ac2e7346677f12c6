/**
 * The names that other versions, other replicas, browsers, dashboards and alerts know. One that is
 * renamed breaks a rolling change, or whoever reads it: each stands here as a literal.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import t from 'tap'
import { errorKinds } from '../../src/errors/errors.ts'
import { endReasonOf, keyOf } from '../../src/session/record.ts'
import { createKeys } from '../../src/session/redis-context.ts'
import { defineCommands } from '../../src/session/redis-scripts.ts'
import { createSeal } from '../../src/session/seal.ts'
import { tombstoneMark } from '../../src/session/store.ts'
import { configFolder, password, testGateway } from '../support/gateway.ts'
import { testRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

const secret = 'a secret of at least thirty-two characters'
const sources = join(import.meta.dirname, '../../src')

const events = [
  'act.done',
  'act.failed',
  'audit.late',
  'audit.unwritable',
  'audit.writable',
  'clock.skew',
  'config.last-good',
  'config.not-kept',
  'config.refused',
  'config.reloaded',
  'config.restart-needed',
  'config.unchanged',
  'connection.refused',
  'contract.drift',
  'contract.kept',
  'limit.over',
  'limits.foreign-key',
  'limits.reset',
  'lockouts.lifted',
  'log.dropped',
  'login',
  'login.challenge',
  'login.insecure',
  'login.lock',
  'login.refused',
  'login.uncounted',
  'logout',
  'logout.source',
  'maintenance.begun',
  'maintenance.ended',
  'maintenance.foreign',
  'ops.host',
  'ops.login',
  'ops.login.refused',
  'ops.logout',
  'ops.refused',
  'process.uncaught',
  'request.body-dropped',
  'requests.shed',
  'session.epoch-forgotten',
  'sessions.closed',
  'shape.label',
  'shape.missing',
  'traces.config',
  'traces.export',
  'traces.failing',
  'users.changed',
  'users.outdated',
  'websocket.closed'
]

const metrics = [
  'audit_lines_total',
  'audit_lost_total',
  'audit_writable',
  'clock_skew_seconds',
  'config_loaded_timestamp_seconds',
  'config_refused',
  'config_restart_needed',
  'contract_answers_total',
  'contract_deviations_total',
  'errors_total',
  'generation',
  'generations_draining',
  'info',
  'limit_highest_use',
  'limit_refused_total',
  'limit_shadowed_total',
  'limits_local',
  'lockouts_total',
  'parts_missing_total',
  'redis_command_seconds',
  'reloads_total',
  'request_duration_seconds',
  'requests_in_flight',
  'requests_not_kept_total',
  'requests_total',
  'session_epoch_forgotten_total',
  'session_store_up',
  'sessions_alive',
  'sessions_closed_total',
  'sessions_opened_total',
  'shed_total',
  'sign_ins_total',
  'streams',
  'streams_ended_total',
  'upstream_address_opened_total',
  'upstream_addresses',
  'upstream_first_byte_seconds',
  'upstream_in_flight',
  'upstream_queue_seconds',
  'upstream_retries_total',
  'upstream_waiting',
  'users_signed_in'
]

const recordMembers = [
  'epoch',
  'session',
  'session.absoluteEnd',
  'session.address',
  'session.agent',
  'session.createdAt',
  'session.file',
  'session.file.password',
  'session.file.state',
  'session.id',
  'session.identity',
  'session.identity.id',
  'session.identity.name',
  'session.identity.profile',
  'session.identity.profile.email',
  'session.identity.roles',
  'session.identity.username',
  'session.idleMs',
  'session.remembered',
  'session.source'
]

const codes = [
  'contract.broken',
  'gateway.fault',
  'gateway.stopping',
  'limit.exceeded',
  'login.blocked',
  'login.challenge',
  'login.expired-password',
  'login.locked',
  'login.refused',
  'login.too-many',
  'maintenance',
  'ops.host',
  'ops.ledger',
  'ops.origin',
  'ops.redis',
  'ops.role',
  'ops.secret',
  'ops.session',
  'origin.refused',
  'overloaded',
  'request.expectation',
  'request.headers',
  'request.malformed',
  'request.path',
  'request.timeout',
  'request.too-large',
  'request.type',
  'request.uri-too-long',
  'route.credential',
  'route.forbidden',
  'route.method',
  'route.unknown',
  'session.absolute',
  'session.idle',
  'session.none',
  'session.replaced',
  'session.revoked',
  'session.unavailable',
  'session.unknown',
  'session.upstream',
  'shape.module',
  'shape.not-json',
  'shape.too-large',
  'upstream.error',
  'upstream.invalid',
  'upstream.module',
  'upstream.redirect',
  'upstream.refused',
  'upstream.reset',
  'upstream.timeout',
  'upstream.timeout.connect',
  'upstream.timeout.idle',
  'upstream.timeout.total'
]

/** All that a pattern's first group matches in the source, each once. */
function inSources(pattern: RegExp): string[] {
  const texts = readdirSync(sources, { recursive: true, encoding: 'utf8' })
    .filter(file => file.endsWith('.ts'))
    .map(file => readFileSync(join(sources, file), 'utf8'))
  const names = texts.flatMap(text => Array.from(text.matchAll(pattern), ([, name = '']) => name))
  return [...new Set(names)].toSorted()
}

t.test('the events of log lines', async t => {
  t.same(inSources(/\bevent: ?'([^']+)'/g), events)
})

t.test('the names of metrics', async t => {
  t.same(inSources(/'console_gateway_(\w+)'/g), metrics)
})

t.test('the codes of errors', async t => {
  t.same(Object.keys(errorKinds).toSorted(), codes)
})

/** A gateway with a Redis that has seen a sign-in, a failed one, limits and a lockout. */
async function usedGateway(after: (undo: () => unknown) => void) {
  const { url } = await testRedis(after)
  const redis = new Redis(url)
  after(() => redis.disconnect())
  const folder = await configFolder({
    gateway: { redis: { url, commandTimeout: '20s' }, session: { secrets: ['${SESSION_SECRET}'] } },
    limits: {
      limits: { everyone: { by: 'address', max: 1000, window: '1m' } },
      lockout: { account: { failures: 2 } }
    }
  })
  const gateway = await testGateway(after, folder, { SESSION_SECRET: secret })
  await until('ready', async () => (await gateway.ops('/readyz')).status === 200)
  return { gateway, redis }
}

/** Without what differs from run to run. */
function plain(key: string): string {
  return key.replace(/[0-9a-f]{64}/, 'KEY').replace('127.0.0.1', 'ADDRESS')
}

/** Written when the process gets to it, which may be before or after the test looks. */
const isLater = (key: string) =>
  [
    '{cg}:failures',
    'cg:lockouts',
    '{cg}:replica-info',
    '{cg}:replicas',
    'cg:users:*sources',
    'cg:users:users-file'
  ].includes(key)

/** The names of all members, also of members' members, as `a.b`. */
function membersOf(value: unknown): string[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return []
  return Object.entries(value).flatMap(([name, member]) => [
    name,
    ...membersOf(member).map(below => `${name}.${below}`)
  ])
}

t.test('the beginnings of keys in Redis', async t => {
  t.same(inSources(/`\$\{(?:config\.)?prefix\}([a-z][\w:{-]+)/g), [
    'audit-heads',
    'barrier',
    'clock:{',
    'f:',
    'fence:{',
    'identity:',
    'l:',
    'lock:',
    'locks',
    'maintenance',
    'ops:',
    'replica-info',
    'replicas',
    'session',
    'signed-in',
    'users:'
  ])
  const { lock, fence, epoch, session, clock } = createKeys('cg:')
  t.same(
    { lock: lock('renew:KEY'), fence: fence('renew:KEY'), epoch, session, clock: clock('KEY') },
    {
      lock: 'cg:lock:renew:KEY',
      fence: 'cg:fence:{cg:lock:renew:KEY}',
      epoch: 'cg:session-epoch',
      session: 'cg:session:',
      clock: 'cg:clock:{cg:session:KEY}'
    }
  )
})

t.test('cookies, keys and values that a running gateway leaves', async t => {
  const { gateway, redis } = await usedGateway(t.after)
  const signIn = await gateway.call('/api/auth/admin/login', {
    json: { username: 'alice', password, autoLogin: true }
  })
  const cookies = signIn.headers.getSetCookie().map(cookie => cookie.split(';', 1)[0] ?? '')
  t.same(
    cookies.map(cookie => cookie.split('=', 1)[0]),
    ['console_sid', 'console_known', 'TOKEN__']
  )
  const [cookie = ''] = cookies
  await gateway.call('/api/auth/admin/login', { json: { username: 'bob', password: 'wrong' } })
  const close = await gateway.ops('/ops/api/sessions/close', { json: { everyone: true } })
  t.equal(close.status, 200)

  const keys = (await redis.keys('*')).filter(key => !isLater(key))
  const types = await Promise.all(keys.map(async key => `${plain(key)} ${await redis.type(key)}`))
  t.same(types.toSorted(), [
    'cg:barrier string',
    'cg:clock:{cg:session:KEY} string',
    'cg:identity:users-file/1 hash',
    'cg:session-epoch string',
    'cg:session:KEY string',
    'cg:signed-in zset',
    '{cg}:f:account bob string',
    '{cg}:f:accountAndAddress bob ADDRESS string',
    '{cg}:f:address ADDRESS string'
  ])

  const key = keyOf(decodeURIComponent(cookie).slice('console_sid='.length).split('.')[0] ?? '')
  const sealed = (await redis.get(`cg:session:${key}`)) ?? ''
  t.match(sealed, /^1[\w-]{6}\.[\w-]+$/)
  const record: unknown = JSON.parse(createSeal([secret]).open(key, sealed.slice(1)) ?? '')
  t.same(membersOf(record).toSorted(), recordMembers)
  t.same(Object.keys(await redis.hgetall('cg:identity:users-file/1')).toSorted(), ['#', key])
  t.match(await redis.hget('cg:identity:users-file/1', key), /^\d{16} \d{13}$/)
  t.same(await redis.zrange('cg:signed-in', 0, '-1'), ['["users-file","1","alice"]'])
  t.equal(await redis.get('cg:session-epoch'), '1')

  await gateway.signIn('bob')
  await gateway.ops('/ops/api/sessions/close', { json: { user: 'bob' } })
  const values = await redis.mget(await redis.keys('cg:session:*'))
  t.ok(values.includes('!revoked'), 'a tombstone')
})

t.test('marks, and what is sealed', async t => {
  t.equal(tombstoneMark, '!')
  const reasons = ['unknown', 'idle', 'absolute', 'revoked', 'replaced', 'upstream']
  t.same(reasons.map(endReasonOf), reasons)
})

t.test('what scripts in Redis reply', async t => {
  const { url } = await testRedis(t.after)
  const redis = new Redis(url)
  t.after(() => redis.disconnect())
  defineCommands(redis)
  t.equal(await redis.sessionRead('s', 's{s}'), null)
  t.equal(await redis.sessionCreate('s', 's{s}', 'a', 60_000), 1)
  t.equal(await redis.sessionCreate('s', 's{s}', 'b', 60_000), 0)
  t.match(await redis.sessionRead('s', 's{s}'), ['a', Number])
  t.equal(await redis.sessionTouch('s', 's{s}', 70_000, 1), 1)
  t.equal(await redis.sessionTouch('s', 's{s}', 70_000, 80_000), 0)
  t.equal(await redis.get('s{s}'), '')
  t.equal(await redis.sessionReplace('s', 'other', 'b'), 0)
  t.equal(await redis.sessionReplace('s', 'a', 'b'), 1)
  t.equal(await redis.sessionTouchAfterUse('s', 's{s}', 60_000, 1), 1)
  t.equal(await redis.get('s{s}'), 'after-use')
  t.equal(await redis.sessionTouchAfterUse('s', 's{s}', 60_000, 1), 0)
  t.equal(await redis.sessionEnd('s', 's{s}', '!idle', 1000), 1)
  t.equal(await redis.sessionEnd('s', 's{s}', '!revoked', 1000), 0)
  t.equal(await redis.exists('s{s}'), 0)
  t.match(await redis.sessionRead('s', 's{s}'), ['!idle', Number])
  const until = Date.now() + 60_000
  const [indexed, at = ''] = await redis.sessionNote('i', until, 'key')
  t.equal(indexed, 'key')
  t.match(at, /^\d{16}$/)
  t.same(await redis.sessionNotes('i'), ['key', at])
  t.equal(await redis.sessionEpoch('e', 4, 1), 5)
  t.equal(await redis.usersAnnounce('u', 'digest', ''), 1)
  await redis.usersEnter('p', until, 'member')
  t.same(await redis.usersPresent('p', 10), ['member'])
  await redis.set('{l}', 'owner')
  t.match(await redis.sessionFence('{l}', '{l}f', 'owner', 1000, 1000), [/^\d{16}$/, 0])
  t.match(await redis.get('{l}f'), /^\d{16} owner$/)
  await redis.set('{l}', 'other')
  t.match(await redis.sessionFence('{l}', '{l}f', 'other', 1000, 1000), [/^\d{16}$/, 1])
  t.equal(await redis.sessionFence('{l}', '{l}f', 'nobody', 1000, 1000), null)
  t.equal(await redis.sessionUnlock('{l}', '{l}f', 'nobody', 1), 0)
  t.equal(await redis.sessionUnlock('{l}', '{l}f', 'other', 1), 1)
})
