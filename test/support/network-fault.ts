/** Trials of gateways whose way to Redis fails, whatever Redis itself does. */
import type { Test } from 'tap'
import { faultyProxy, type Mode } from './faulty-proxy.ts'
import { testRedis } from './redis.ts'
import { replicas, startTrial, type Trial } from './trial.ts'

export type BehindProxy = Awaited<ReturnType<typeof behindProxy>>

/** @param further keys of the `redis` section of gateway.yaml */
export async function behindProxy(t: Test, further: Record<string, unknown> = {}) {
  const redis = await testRedis(t.after)
  const proxy = await faultyProxy(t.after, redis.port)
  const both = await replicas(t, { url: `redis://127.0.0.1:${proxy.port}`, ...further })
  return { redis, proxy, both }
}

interface NetworkFault {
  readonly name: string
  readonly mode: Mode
  /** How a sign-in is answered sooner or later while it lasts. */
  readonly seen: 200 | 503
  readonly redis?: Record<string, unknown>
  /** What has to happen besides before the fault may end. */
  readonly meanwhile?: (parts: BehindProxy, trial: Trial) => Promise<unknown>
}

/** The fault comes, is seen, and goes; gives the trial, judged. */
export async function networkFault(
  t: Test,
  { name, mode, seen, redis = {}, meanwhile = async () => {} }: NetworkFault
): Promise<Trial> {
  const parts = await behindProxy(t, redis)
  const trial = await startTrial(t, parts.both, { name })
  await trial.during(async () => {
    await parts.proxy.set(mode)
    await trial.saw('sign-in', seen)
    await meanwhile(parts, trial)
  })
  await trial.over(async () => await parts.proxy.set('pass'))
  return trial
}
