/** Live streams end with their session, role and route, wherever that was changed. */
import { mock } from 'node:test'
import t, { type Test } from 'tap'
import { BoundStreams } from '../../src/app/bound-streams.ts'
import type { BoundStream } from '../../src/app/routes/bound-stream.ts'
import { loadConfig } from '../../src/config/read/load.ts'
import { Metrics } from '../../src/observability/metrics.ts'
import type { Closing } from '../../src/services/closing.ts'
import { createLogger } from '../../src/services/logger.ts'
import { createServices, type Services } from '../../src/services/services.ts'
import { Sessions } from '../../src/session/sessions.ts'
import { createSecretId, type Live, signedInOf } from '../../src/session/types.ts'
import { MemoryStore } from '../../src/session/memory-store.ts'
import { createSeal } from '../../src/session/seal.ts'
import { configFolder } from '../support/gateway.ts'
import { lookAgain } from '../support/look-again.ts'
import { standstill } from '../support/machine.ts'
import { testRedis, type TestRedis } from '../support/redis.ts'
import { look } from '../support/sessions.ts'
import { opening } from '../support/session-steps.ts'
import { until } from '../support/until.ts'

const environment = { SESSION_SECRET: 'a secret of at least thirty-two characters' }
const log = createLogger({ level: 'silent', format: 'json' }, { write: () => {} })
const promisedMs = 1000

const routes = (more: object = {}) => ({
  upstreams: { b: { url: 'http://127.0.0.1:9' } },
  routes: {
    chat: { path: '/api/chat', upstream: 'b', access: { roles: ['user'] } },
    bell: { path: '/api/bell', upstream: 'b' }
  },
  ...more
})

const patient = '20s'

async function configOf(
  redis: TestRedis,
  more: object = {},
  session: object = {},
  commandTimeout = patient
) {
  const folder = await configFolder({
    gateway: {
      redis: { url: redis.url, commandTimeout },
      session: { secrets: ['${SESSION_SECRET}'], ...session }
    },
    routes: routes(more)
  })
  return loadConfig(folder, environment)
}

/** A replica of a gateway, as far as streams know it. */
async function replica(t: Test, redis: TestRedis, session: object = {}, commandTimeout = patient) {
  const config = await configOf(redis, {}, session, commandTimeout)
  const services = createServices(config, log)
  const streams = new BoundStreams({
    sessions: services.sessions,
    metrics: services.metrics,
    maintenance: services.maintenance,
    onError: error => t.error(error)
  })
  streams.activate(config)
  t.after(async () => {
    streams.close()
    await services.close()
  })
  await until('Redis is connected', () => services.redis?.up === true)
  return { services, streams }
}

let opened = 0
async function signIn({ sessions }: Pick<Services, 'sessions'>, roles: readonly string[] = []) {
  const user = opening(`user-${++opened}`)
  const secretId = createSecretId(signedInOf(user))
  const identity = { ...user.identity, roles }
  return { secretId, live: await sessions.open(secretId, { ...user, identity }) }
}

interface Watched {
  readonly reason: () => string | undefined
  /** When it was told to end, by `performance.now()`. */
  readonly endedAt: Promise<number>
}

function addTo(
  streams: BoundStreams,
  live: Live | undefined,
  more: Partial<BoundStream> = {}
): Watched {
  const ended = Promise.withResolvers<number>()
  let reason: string | undefined
  streams.scope().add({
    live,
    route: 'bell',
    access: 'session',
    touch: false,
    stream: {
      end: why => {
        if (reason !== undefined) throw new Error('ended twice')
        reason = why
        ended.resolve(performance.now())
      }
    },
    ...more
  })
  return { reason: () => reason, endedAt: ended.promise }
}

/** That it ended as promised; what the machine itself was late by is not the gateway's. */
async function endsInTime(
  t: Test,
  stream: Watched,
  reason: string,
  act: () => Promise<unknown>
): Promise<void> {
  const stoodStillMs = standstill()
  await act()
  const startedAt = performance.now()
  const ms = (await stream.endedAt) - startedAt
  t.ok(ms <= promisedMs + stoodStillMs(), `${reason}: within ${Math.round(ms)} ms`)
  t.equal(stream.reason(), reason)
}

t.test('new config counts for old streams: roles, maintenance, routes that are gone', async t => {
  const redis = await testRedis(t.after)
  const { services, streams } = await replica(t, redis)
  const access = { roles: ['user'] }
  const user = await signIn(services, ['user'])
  const admin = await signIn(services, ['user', 'admin'])
  const chat = (live: Live) => addTo(streams, live, { route: 'chat', access })
  const [ofUser, ofAdmin] = [chat(user.live), chat(admin.live)]
  const unbound = addTo(streams, undefined, { route: 'chat', access: 'public' })

  const onlyAdmins = { routes: { chat: { ...routes().routes.chat, access: { roles: ['admin'] } } } }
  const narrowed = await configOf(redis, onlyAdmins)
  await endsInTime(t, ofUser, 'route.forbidden', async () => streams.activate(narrowed))
  t.equal(ofAdmin.reason(), undefined)

  const gone = addTo(streams, admin.live, { route: 'gone', access })
  const begin = async (closing: Partial<Closing>) => {
    const end = new Date(Date.now() + 3_600_000).toISOString()
    const all = { routes: [], methods: [], allowRoles: [], until: end }
    await services.maintenance.begin({ ...all, ...closing }, 'operator')
  }
  streams.activate(await configOf(redis))
  const reading = chat(user.live)
  await begin({ methods: ['POST'] })
  await services.sessions.end(user.live, 'revoked')
  await reading.endedAt
  t.equal(reading.reason(), 'session.revoked', 'read-only mode ended no stream')

  const again = chat((await signIn(services, ['user'])).live)
  await endsInTime(t, again, 'maintenance', async () => await begin({ allowRoles: ['admin'] }))
  t.equal(ofAdmin.reason(), undefined, 'a role that may go on goes on')
  t.equal(gone.reason(), undefined, 'a route that is gone keeps what it was opened with')

  await endsInTime(t, ofAdmin, 'maintenance', async () => await begin({ routes: ['chat'] }))
  t.equal(unbound.reason(), undefined, 'public routes are not bound')
})

t.test('while Redis is away streams go on; what ended meanwhile ends with its return', async t => {
  const redis = await testRedis(t.after)
  const { services, streams } = await replica(t, redis, { absolute: '4s', idle: '1s' }, '500ms')
  const begin = async () => {
    let begun: { live: Live; stream: Watched } | undefined
    // So short a time-out may strike by itself where this machine stands still.
    await until('Redis takes a sign-in', async () => {
      const { live } = await signIn(services)
      begun = { live, stream: addTo(streams, live) }
      return true
    })
    if (begun === undefined) throw new Error('nobody signed in')
    return begun
  }
  const look = async () => {
    const { live, stream } = await begin()
    redis.signal('SIGSTOP')
    await stream.endedAt
    const isOver = services.sessions.now() >= live.absoluteEnd
    redis.signal('SIGCONT')
    return `${stream.reason()}, at its end: ${isOver}`
  }
  // Another replica may have seen the session used; the absolute end needs no store. Where this
  // machine stands still before Redis does, the idle end is the first.
  const expected = 'session.absolute, at its end: true'
  t.equal(await lookAgain(look, seen => seen === expected), expected)

  const { stream: lost } = await begin()
  await redis.kill()
  await until('the outage is seen', () => services.redis?.up === false)
  t.equal(lost.reason(), undefined)
  await redis.start()
  await lost.endedAt
  t.equal(lost.reason(), 'session.unknown', 'an empty Redis knows no session')
})

/** Streams over sessions of this process, whose time is the test's. */
function local(t: Test) {
  const clock = { now: 1_000_000 }
  const sessions = new Sessions({
    store: new MemoryStore(() => clock.now),
    seal: createSeal(['a secret of at least thirty-two characters']),
    lifeTimes: { idle: 60_000, absolute: 3_600_000, remembered: {} },
    perUser: { max: 1000, over: 'refuse' },
    now: () => clock.now
  })
  const asked = { count: 0 }
  const news = { come: true }
  const counted: Pick<Sessions, 'cached' | 'read' | 'hasNews' | 'use' | 'now'> = {
    now: sessions.now,
    use: live => sessions.use(live),
    hasNews: () => news.come,
    cached: key => (news.come ? sessions.cached(key) : undefined),
    read: async key => {
      asked.count++
      return await sessions.read(key)
    }
  }
  const metrics = new Metrics()
  const streams = new BoundStreams({
    sessions: counted,
    metrics,
    onError: error => t.error(error)
  })
  t.after(() => streams.close())
  return { clock, sessions, streams, asked, news, metrics }
}

/** Does something, then lets timers run for a time that no busy machine stretches. */
function passTime(ms: number, act: () => void): void {
  const now = performance.now
  let passed = now.call(performance)
  performance.now = () => passed
  mock.timers.enable({ apis: ['setTimeout'] })
  try {
    act()
    for (const end = passed + ms; passed < end; passed += 10) mock.timers.tick(10)
  } finally {
    mock.timers.reset()
    performance.now = now
  }
}

t.test('a drain tells all, spread over its time; later streams end at once', async t => {
  const { sessions, streams, metrics } = local(t)
  const { live } = await signIn({ sessions })
  const times: number[] = []
  const old = streams.scope()
  const current = streams.scope()
  const add = (scope: typeof old, isFinite = false) =>
    scope.add({
      live,
      route: 'bell',
      access: 'session',
      touch: false,
      isFinite,
      stream: { end: () => times.push(performance.now()) }
    })
  for (let index = 0; index < 40; index++) add(old)
  const removeDownload = add(old, true)
  const remove = add(current)
  t.match((await metrics.text()).body, /console_gateway_streams\{route="bell"\} 42\n/)
  passTime(420, () => old.drain(400))
  t.equal(times.length, 40, 'the old ones have ended')
  t.equal(streams.size, 2, 'another generation’s goes on, and a download gets all the time')
  removeDownload()
  const spreadMs = (times.at(-1) ?? 0) - (times[0] ?? 0)
  t.ok(spreadMs >= 300, `spread over ${Math.round(spreadMs)} ms`)
  const steps = new Set(times.map(time => Math.round(time / 25))).size
  t.ok(steps >= 4, `in ${steps} steps`)
  remove()
  remove()
  t.equal(streams.size, 0)
  streams.drain(0)
  add(current)
  await until('a late one ends', () => times.length === 41)
  t.match((await metrics.text()).body, /streams_ended_total\{reason="gateway.stopping"\} 41\n/)
})

t.test(
  'sessions that are cached cost the store nothing, however many streams they have',
  async t => {
    const { sessions, streams, asked } = local(t)
    const user = await signIn({ sessions })
    await look(sessions, user.secretId)
    for (let index = 0; index < 100; index++) addTo(streams, user.live)
    const last = addTo(streams, (await signIn({ sessions })).live)
    await until('a session that is not cached was asked for', () => asked.count > 0)
    await new Promise(resolve => setTimeout(resolve, 1200))
    t.equal(asked.count, 1, 'each at most once, since the answer is kept')
    t.equal(last.reason(), undefined)
  }
)

t.test('case R7: without news each session is asked for once in 5 s, not all at once', async t => {
  const { clock, sessions, streams, asked, news } = local(t)
  const users = await Promise.all(Array.from({ length: 300 }, () => signIn({ sessions })))
  const all = users.map(({ live }) => addTo(streams, live))
  news.come = false
  asked.count = 0
  await new Promise(resolve => setTimeout(resolve, 2200))
  t.ok(asked.count > 30 && asked.count < 250, `${asked.count} of 300 in 2.2 s`)
  const before = asked.count
  const ended = users.length - all.filter(each => each.reason() === undefined).length
  t.equal(ended, 0)
  // Each of these ends is known, and none is waited for.
  clock.now += 61_000
  await until('all have ended', () => all.every(each => each.reason() === 'session.idle'))
  t.ok(asked.count - before <= 300 + 60, `${asked.count - before} to know the ends`)
})
