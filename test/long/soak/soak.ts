/** Mixed traffic with all kinds of trouble; memory and descriptors are measured meanwhile. */
import { setTimeout as wait } from 'node:timers/promises'
import { type GatewayProcess, startGatewayProcess } from '../../support/gateway-process.ts'
import { createJudge, type Judge } from '../../support/judge.ts'
import { createRandom } from '../../support/random.ts'
import { testSentinel, type TestSentinel } from '../../support/sentinel.ts'
import { until } from '../../support/until.ts'
import { attackedConfig, type AttackedConfig } from '../fuzz/config.ts'
import { openUpstreams, type Upstreams } from '../fuzz/upstreams.ts'
import { atRest } from '../fuzz/verdict.ts'
import { createPeople, usersFile } from './people.ts'

interface Options {
  readonly seed: number
  readonly minutes: number
  readonly tell: (line: string) => void
}

/** What a server keeps over a restart; without it a restarted primary would tell its replica to forget. */
const durable = ['--appendonly', 'yes', '--appendfsync', 'always']
const users = ['u1', 'u2', 'u3', 'u4']
const kinds = ['steady', 'faulty', 'narrow', 'fickle', 'shaped', 'lifted', 'parts']
const sampleEveryMs = 30_000
const heapGrowth = 1.1

type CleanUp = (undo: () => unknown) => void

export async function soak(cleanUp: CleanUp, { seed, minutes, tell }: Options) {
  const sentinel = await testSentinel(cleanUp, { extra: durable })
  const upstreams = await openUpstreams(cleanUp)
  const config = await attackedConfig({
    places: upstreams.places,
    redis: { sentinels: sentinel.sentinels, primary: sentinel.name },
    // People are not slow, however busy the machine is.
    server: {},
    session: { perUser: { max: 1000 } },
    userFile: usersFile(users)
  })
  const replicas = [await startReplica(cleanUp, config), await startReplica(cleanUp, config)]
  const judge = createJudge()
  const paths = kinds.map(kind => `/api/${kind}`)
  const people = createPeople({ users, replicas, judge, seed, paths })
  await people.signInAll(3)
  const trouble = createTrouble(seed, { config, upstreams, replicas, sentinel })
  /** Of each replica, after a collection. */
  const heaps: number[][] = []

  const makeTrouble = async (runs: () => boolean) => {
    while (runs()) {
      await wait(5000)
      if (runs()) tell(await trouble.next())
    }
  }
  const measure = async (runs: () => boolean) => {
    const began = performance.now() - heaps.length * sampleEveryMs
    while (runs()) {
      await wait(1000)
      if (performance.now() - began < (heaps.length + 1) * sampleEveryMs) continue
      const all = await Promise.all(replicas.map(async replica => await replica.collect()))
      heaps.push(all.map(({ memory }) => memory.heapUsed))
      tell(`heaps ${heaps.at(-1)?.join()}`)
    }
  }
  const live = async (forMs: number) => {
    const began = performance.now()
    const runs = () => performance.now() - began < forMs
    upstreams.rage()
    await Promise.all([people.live(runs), makeTrouble(runs), measure(runs)])
    config.restore()
    await upstreams.calm()
    await sentinel.settled()
    return await Promise.all(
      replicas.map(async replica => {
        await replica.ready()
        return await atRest(replica)
      })
    )
  }
  const warmUpMs = Math.min(300_000, minutes * 15_000)
  const before = await live(warmUpMs)
  const warm = heaps.length
  const after = await live(minutes * 60_000 - warmUpMs)
  await people.recount()
  for (const [index, { problems, descriptors }] of after.entries()) {
    for (const problem of problems) judge.odd(problem)
    const then = before[index]?.descriptors
    if (then !== descriptors) judge.odd(`${descriptors} descriptors, ${then} after the warm-up`)
  }
  judgeMemory(judge, heaps.slice(warm))
  for (const replica of replicas) await judgeReplica(judge, replica)
  return { judge, trouble: trouble.counts }
}

async function startReplica(cleanUp: CleanUp, { folder }: AttackedConfig) {
  const replica = await startGatewayProcess(cleanUp, folder)
  await replica.ready()
  return replica
}

interface Stage {
  readonly config: AttackedConfig
  readonly upstreams: Upstreams
  readonly replicas: readonly GatewayProcess[]
  readonly sentinel: TestSentinel
}

/** One happening after the other, as the seed says. */
function createTrouble(seed: number, { config, upstreams, replicas, sentinel }: Stage) {
  const random = createRandom(seed)
  const failOver = async () => {
    const at = await sentinel.primaryPort()
    await sentinel.failover()
    await until('the replica is primary', async () => (await sentinel.primaryPort()) !== at)
    await sentinel.settled()
  }
  const happenings: Readonly<Record<string, () => unknown>> = {
    'files changed': () => config.change(random),
    'files changed back': () => config.restore(),
    'SIGHUP': () => replicas.forEach(replica => replica.signal('SIGHUP')),
    'a back-end opens or closes': () => upstreams.toggle(),
    'a planned failover': failOver,
    'the primary is restarted': async () => {
      const [primary] = sentinel.servers
      // The other one starts as a replica always: its arguments say so, and Sentinel cannot change them.
      if ((await sentinel.primaryPort()) !== primary.port) await failOver()
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

/** The medians of the first and the last three, so that no single moment decides. */
function judgeMemory(judge: Judge, heaps: readonly number[][]): void {
  if (heaps.length < 6) return
  const median = (some: readonly number[][], replica: number) =>
    some.map(heap => heap[replica] ?? 0).toSorted((a, b) => a - b)[1] ?? 0
  for (const replica of [0, 1]) {
    const first = median(heaps.slice(0, 3), replica)
    const last = median(heaps.slice(-3), replica)
    if (last > first * heapGrowth) {
      judge.odd(`the heap of replica ${replica + 1} grew ${first} → ${last} bytes`)
    }
  }
}

async function judgeReplica(judge: Judge, gateway: GatewayProcess): Promise<void> {
  for (const { name, labels, value } of await gateway.samples()) {
    if (labels.includes('gateway.fault') && value !== 0) {
      judge.odd(`${name}${labels} is ${value}: ${gateway.faults().at(-1) ?? ''}`)
    }
  }
  for (const line of gateway.complaints().slice(0, 3)) judge.odd(`on standard error: ${line}`)
}
