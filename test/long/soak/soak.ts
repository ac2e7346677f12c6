/** Mixed traffic for as long as it is given, with all kinds of trouble; memory and descriptors are measured meanwhile. */
import { setTimeout as wait } from 'node:timers/promises'
import { atRest } from '../fuzz/verdict.ts'
import { testSentinel } from '../../support/sentinel.ts'
import { until } from '../../support/until.ts'
import type { Judge } from './judge.ts'
import { createTrouble, durable, openStage, type Options, type Stage } from './scenarios.ts'

interface Sample {
  readonly minute: number
  /** Of each replica, after a collection. */
  readonly heap: readonly number[]
  readonly rss: readonly number[]
}

export interface Soaked {
  readonly judge: Judge
  readonly samples: readonly Sample[]
  readonly trouble: Record<string, number>
  readonly descriptors: readonly (readonly [before: number, after: number])[]
}

const sampleEveryMs = 30_000
const heapGrowth = 1.1

export async function soak(options: Options, minutes: number): Promise<Soaked> {
  const sentinel = await testSentinel(options.cleanUp, durable)
  const stage = await openStage(options, {
    redis: { sentinels: sentinel.sentinels, primary: sentinel.name },
    paths: [
      '/api/steady',
      '/api/faulty',
      '/api/narrow',
      '/api/fickle',
      '/api/shaped',
      '/api/lifted',
      '/api/parts'
    ]
  })
  const trouble = createTrouble(options, stage, sentinel)
  const { judge, people, replicas, upstreams, config } = stage
  const samples: Sample[] = []
  const live = async (forMs: number) => {
    const began = performance.now()
    const runs = () => performance.now() - began < forMs
    upstreams.rage()
    const all = [people.live(runs), makeTrouble(runs), measure(runs)]
    await Promise.all(all)
    config.restore()
    await upstreams.calm()
    await sentinel.settled()
  }
  const makeTrouble = async (runs: () => boolean) => {
    while (runs()) {
      await wait(5000)
      if (runs()) options.tell(await trouble.next())
    }
  }
  const measure = async (runs: () => boolean) => {
    const began = performance.now() - samples.length * sampleEveryMs
    while (runs()) {
      await wait(Math.min(sampleEveryMs, 1000))
      if (performance.now() - began < (samples.length + 1) * sampleEveryMs) continue
      samples.push(await sample(stage, samples.length + 1))
      options.tell(JSON.stringify(samples.at(-1)))
    }
  }
  const rest = async () =>
    await Promise.all(
      replicas.map(async ({ current }) => {
        const gateway = current()
        if (gateway === undefined) throw new Error('a replica is gone')
        await until('ready', async () => (await gateway.ask('/readyz')).status === 200)
        return await atRest(gateway, port => `port ${port}`)
      })
    )
  const warmUpMs = Math.min(300_000, minutes * 15_000)
  await live(warmUpMs)
  const before = await rest()
  const warm = samples.length
  await live(minutes * 60_000 - warmUpMs)
  const after = await rest()
  await people.recount()
  for (const { problems } of after) for (const problem of problems) judge.odd(problem)
  judgeMemory(judge, samples.slice(warm))
  const descriptors = before.map(
    (each, index) => [each.descriptors, after[index]?.descriptors ?? 0] as const
  )
  for (const [then, now] of descriptors) {
    if (then !== now) judge.odd(`${now} descriptors, ${then} after the warm-up`)
  }
  await judgeMetrics(stage)
  return { judge, samples, trouble: trouble.counts, descriptors }
}

async function sample({ replicas }: Stage, number: number): Promise<Sample> {
  const all = await Promise.all(replicas.map(async ({ current }) => await current()?.collect()))
  return {
    minute: (number * sampleEveryMs) / 60_000,
    heap: all.map(each => each?.memory.heapUsed ?? 0),
    rss: all.map(each => each?.memory.rss ?? 0)
  }
}

/** The medians of the first and the last three, so that no single moment decides. */
function judgeMemory(judge: Judge, samples: readonly Sample[]): void {
  if (samples.length < 6) return
  const median = (some: readonly Sample[], replica: number) => {
    return some.map(({ heap }) => heap[replica] ?? 0).sort((a, b) => a - b)[1] ?? 0
  }
  for (const replica of [0, 1]) {
    const first = median(samples.slice(0, 3), replica)
    const last = median(samples.slice(-3), replica)
    if (last > first * heapGrowth) {
      judge.odd(`the heap of replica ${replica + 1} grew ${first} → ${last} bytes`)
    }
  }
}

async function judgeMetrics({ replicas, judge }: Stage): Promise<void> {
  for (const { current } of replicas) {
    const gateway = current()
    if (gateway === undefined) continue
    for (const { name, labels, value } of await gateway.metrics()) {
      const isFault = labels.includes('gateway.fault')
      if (isFault && value !== 0) {
        judge.odd(`${name}${labels} is ${value}: ${gateway.faults().at(-1) ?? ''}`)
      }
    }
    for (const line of gateway.complaints().slice(0, 3)) judge.odd(`on standard error: ${line}`)
  }
}
