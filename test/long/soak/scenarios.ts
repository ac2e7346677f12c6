/** What happens to replicas and their Redis while people use them; each scenario is a minute or two. */
import { setTimeout as wait } from 'node:timers/promises'
import { testCluster } from '../../support/cluster.ts'
import { inStep } from '../../support/failover.ts'
import { createRandom } from '../../support/random.ts'
import { redisCli } from '../../support/redis-cli.ts'
import { testRedis } from '../../support/redis.ts'
import { patientMs, testSentinel, type TestSentinel } from '../../support/sentinel.ts'
import { until } from '../../support/until.ts'
import { testUsers } from '../../support/users.ts'
import { attackedConfig, type AttackedConfig } from '../fuzz/config.ts'
import { openUpstreams, type Upstreams } from '../fuzz/upstreams.ts'
import { createJudge, type Judge } from './judge.ts'
import { createPeople, type People } from './people.ts'
import { type Replica, startReplica, type Version } from './replica.ts'

export interface Options {
  readonly seed: number
  readonly checkout: string
  readonly tell: (line: string) => void
  readonly cleanUp: (undo: () => unknown) => void
}

export interface Stage {
  readonly replicas: readonly Replica[]
  readonly config: AttackedConfig
  readonly upstreams: Upstreams
  readonly judge: Judge
  readonly people: People
}

const users = ['u1', 'u2', 'u3', 'u4']
const secret = (name: string) => `the ${name} secret of at least thirty-two characters`
const environment = { SESSION_SECRET: secret('first') }
/** What a server keeps over a restart; without it a restarted primary would tell its replica to forget. */
export const durable = ['--appendonly', 'yes', '--appendfsync', 'always']

/** The same at every replica: another hash is another password, which ends sessions. */
const usersFile = soakUsers()

function soakUsers(): Record<string, unknown> {
  const each = users.map(user => [
    user,
    { ...testUsers.alice, id: user, name: user, roles: ['user'] }
  ])
  return { users: Object.fromEntries(each) }
}

interface Setting {
  readonly redis: Record<string, unknown>
  /** Of each replica, beside what all have. */
  readonly environments?: ReadonlyArray<Readonly<Record<string, string>>>
  readonly paths?: readonly string[]
  readonly pauseMs?: number
}

/** Two replicas, and people who sign in before anything happens. */
export async function openStage(options: Options, setting: Setting): Promise<Stage> {
  const { cleanUp, checkout, seed } = options
  const { redis, environments = [{}, {}], ...more } = setting
  const upstreams = await openUpstreams(cleanUp)
  const judge = createJudge()
  const config = await configOf(upstreams, redis)
  const replicas = await Promise.all(
    environments.map(
      async more =>
        await startReplica(cleanUp, {
          checkout,
          folder: config.folder,
          environment: { ...environment, ...more }
        })
    )
  )
  const people = createPeople({ users, replicas, judge, seed, ...more })
  await people.signInAll(3)
  return { replicas, config, upstreams, judge, people }
}

async function configOf(
  upstreams: Upstreams,
  redis: Record<string, unknown>,
  session: Record<string, unknown> = {}
): Promise<AttackedConfig> {
  return await attackedConfig({
    places: upstreams.places,
    redis,
    // People are not slow, however busy the machine is.
    server: {},
    session: { perUser: { max: 1000 }, ...session },
    userFile: usersFile
  })
}

/** People live while something happens; afterwards it is counted who is signed in. */
async function whilePeopleLive({ people }: Stage, happening: () => Promise<void>): Promise<void> {
  let runs = true
  const lives = people.live(() => runs)
  try {
    await wait(3000)
    await happening()
    await wait(5000)
  } finally {
    runs = false
    await lives
  }
  await people.recount()
}

async function failOver(sentinel: TestSentinel): Promise<void> {
  const at = await sentinel.primaryPort()
  const asked = Number(sentinel.sentinels[0]?.split(':')[1])
  await redisCli(asked, 'SENTINEL', 'FAILOVER', sentinel.name)
  await until('the replica is primary', async () => (await sentinel.primaryPort()) !== at)
}

async function plannedFailover(options: Options): Promise<Judge> {
  const sentinel = await testSentinel(options.cleanUp)
  const redis = { sentinels: sentinel.sentinels, primary: sentinel.name }
  const stage = await openStage(options, { redis, pauseMs: 20 })
  await whilePeopleLive(stage, async () => {
    for (let times = 0; times < 3; times++) {
      await failOver(sentinel)
      options.tell(`failover ${times + 1}`)
      await wait(12_000)
      await sentinel.settled()
    }
  })
  return stage.judge
}

async function killedPrimary(options: Options): Promise<Judge> {
  const sentinel = await testSentinel(options.cleanUp)
  const redis = { sentinels: sentinel.sentinels, primary: sentinel.name }
  const stage = await openStage(options, { redis, pauseMs: 20 })
  await whilePeopleLive(stage, async () => {
    const at = await sentinel.primaryPort()
    const [primary, heir] = sentinel.servers
    if (primary.port !== at) throw new Error('the first server is not primary')
    await inStep(primary.port, heir.port)
    const killedAt = performance.now()
    await primary.kill()
    await sentinel.downAfter(500)
    await until('the replica is primary', async () => (await sentinel.primaryPort()) === heir.port)
    await wait(3000)
    // A sign-in is not held until a replica has it: what the primary had alone is gone with it.
    stage.judge.mayLose(killedAt - 1000)
    options.tell('the replica is primary')
    await sentinel.downAfter(patientMs)
    await primary.start()
    await sentinel.settled()
    await wait(10_000)
  })
  return stage.judge
}

async function clusterForgets(options: Options): Promise<Judge> {
  const cluster = await testCluster(options.cleanUp)
  const stage = await openStage(options, {
    redis: { cluster: cluster.nodes.slice(0, 2) },
    pauseMs: 20
  })
  const { people, judge } = stage
  if (!(await people.closeEveryone())) throw new Error('not everyone could be closed')
  await wait(2500)
  await people.recount()
  await people.signInAll(15)
  const forgetful = await cluster.primaryOf('{cg}:s:epoch')
  const before = performance.now()
  await redisCli(forgetful.port, 'FLUSHALL')
  options.tell('the node with all keys has forgotten them')
  // All records stood on that node.
  judge.mayLose(0)
  await wait(3000)
  await people.recount()
  await people.signInAll(3)
  await until('everyone is closed', async () => await people.closeEveryone())
  options.tell(`all is acknowledged ${Math.round(performance.now() - before)} ms after`)
  await wait(2500)
  await people.recount()
  return judge
}

async function clocks(options: Options): Promise<Judge> {
  const redis = await testRedis(options.cleanUp)
  const hour = 3_600_000
  const judges: Judge[] = []
  for (const offset of [hour, -hour]) {
    const stage = await openStage(options, {
      redis: { url: redis.url },
      environments: [{}, { CLOCK_OFFSET_MS: String(offset) }],
      pauseMs: 20
    })
    await whilePeopleLive(stage, async () => await wait(20_000))
    options.tell(`a clock that is off by ${offset} ms: ${stage.judge.problems.length} problems`)
    judges.push(stage.judge)
    for (const { current } of stage.replicas) await current()?.stop()
  }
  return merged(judges)
}

async function secrets(options: Options): Promise<Judge> {
  const redis = await testRedis(options.cleanUp)
  const stage = await openStage(options, { redis: { url: redis.url }, pauseMs: 20 })
  const steps = [
    ['first', 'second'],
    ['second', 'first']
  ]
  await whilePeopleLive(stage, async () => {
    for (const names of steps) {
      const keys = names.map(name => `\${SECRET_${name.toUpperCase()}}`)
      const config = await configOf(stage.upstreams, { url: redis.url }, { secrets: keys })
      const version: Version = {
        checkout: options.checkout,
        folder: config.folder,
        environment: {
          ...environment,
          SECRET_FIRST: secret('first'),
          SECRET_SECOND: secret('second')
        }
      }
      await roll(stage, () => version, options.tell, `secrets ${names.join()}`)
    }
  })
  return stage.judge
}

/** One replica after the other; between them people meet both. */
async function roll(
  { replicas }: Stage,
  version: () => Version,
  tell: (line: string) => void,
  what: string
): Promise<void> {
  for (const [index, replica] of replicas.entries()) {
    await replica.replace(version())
    tell(`replica ${index + 1}: ${what}`)
    await wait(8000)
  }
}

function merged(judges: readonly Judge[]): Judge {
  const all = createJudge()
  for (const judge of judges) {
    for (const problem of judge.problems) all.odd(problem)
    for (const [what, count] of Object.entries(judge.counts)) {
      for (let n = 0; n < count; n++) all.count(what)
    }
  }
  return { ...all, stalestMs: () => Math.max(...judges.map(judge => judge.stalestMs())) }
}

export const scenarios: Readonly<Record<string, (options: Options) => Promise<Judge>>> = {
  'planned-failover': plannedFailover,
  'killed-primary': killedPrimary,
  'cluster-forgets': clusterForgets,
  'clock': clocks,
  secrets
}

/** One after the other, as the seed says, for as long as it is given. */
export function createTrouble(
  { seed }: Options,
  { config, upstreams, replicas }: Stage,
  sentinel: TestSentinel
) {
  const random = createRandom(seed)
  const happenings: Readonly<Record<string, () => Promise<unknown>>> = {
    'files changed': async () => {
      config.change(random)
    },
    'files changed back': async () => {
      config.restore()
    },
    'SIGHUP': async () => {
      for (const { current } of replicas) current()?.signal('SIGHUP')
    },
    'a back-end opens or closes': async () => {
      await upstreams.toggle()
    },
    'a planned failover': async () => {
      await failOver(sentinel)
      await sentinel.settled()
    },
    'the primary is restarted': async () => {
      const [primary] = sentinel.servers
      // The other one starts as a replica always: its arguments say so, and Sentinel cannot change them.
      if ((await sentinel.primaryPort()) !== primary.port) {
        await failOver(sentinel)
        await sentinel.settled()
      }
      await primary.kill()
      await primary.start()
      await sentinel.settled()
    }
  }
  const counts: Record<string, number> = {}
  return {
    counts,
    next: async () => {
      const name = random.pick(Object.keys(happenings))
      counts[name] = (counts[name] ?? 0) + 1
      await happenings[name]?.()
      return name
    }
  }
}
