/** One run: a gateway is attacked, and judged. */
import { setTimeout as wait } from 'node:timers/promises'
import { faultyProxy } from '../../support/faulty-proxy.ts'
import { type GatewayProcess, startGatewayProcess } from '../../support/gateway-process.ts'
import { seedOf } from '../../support/random.ts'
import { testRedis } from '../../support/redis.ts'
import { attackedConfig, users } from './config.ts'
import { type Conversation, describe, plan, play } from './conversation.ts'
import { heal, trouble } from './faults.ts'
import { openUpstreams } from './upstreams.ts'
import { atRest, judge } from './verdict.ts'

interface FuzzOptions {
  readonly seed: number
  readonly seconds: number
  /** A module that is loaded into the gateway's process. */
  readonly preload?: string
}

/** Connections at the same time. */
const clients = 40
const cookieSlots = 6
/** Enough of what came last to hold the cause of a crash. */
const keptConversations = 40
const patienceMs = 15_000

export async function fuzz(
  cleanUp: (undo: () => unknown) => void,
  { seed, seconds, preload }: FuzzOptions
) {
  const upstreams = await openUpstreams(cleanUp)
  const redis = await testRedis(cleanUp)
  const proxy = await faultyProxy(cleanUp, redis.port)
  const config = await attackedConfig({
    places: upstreams.places,
    redis: { url: `redis://127.0.0.1:${proxy.port}` }
  })
  const gateway = await startGatewayProcess(cleanUp, config.folder, { preload })
  const parts = { redis, proxy, gateway, config, upstreams }
  const attack = createAttack(gateway, seed)
  const rest = async () => {
    await heal(parts)
    return await atRest(gateway)
  }
  const rage = async (forSeconds: number) => {
    upstreams.rage()
    const end = performance.now() + forSeconds * 1000
    const runs = () => performance.now() < end && attack.isSound()
    const troubles = trouble(parts, seedOf(seed, -1), runs, attack.noteTrouble)
    await attack.run(runs)
    await troubles
  }
  await gateway.ready()
  await attack.begin()
  try {
    // What is loaded, compiled and remembered once is no leak.
    await rage(Math.max(5, seconds / 3))
    const before = await rest()
    await rage((seconds * 2) / 3)
    attack.problems.push(...before.problems)
    await heal(parts)
    attack.problems.push(...(await judge(gateway, before)))
    const after = await atRest(gateway)
    attack.problems.push(...after.problems)
  } catch (error) {
    // A gateway that is gone can be neither healed nor measured.
    if (!gateway.isOver()) throw error
  }
  return {
    ...attack.report(),
    problems: [...new Set(attack.problems)],
    lastLines: gateway.written().split('\n').slice(-40),
    faults: gateway.faults().slice(-10)
  }
}

function createAttack(gateway: GatewayProcess, seed: number) {
  const problems: string[] = []
  const last: Conversation[] = []
  const troubles: string[] = []
  const answers: Record<string, number> = {}
  const cookies: string[] = []
  let begun = 0
  let slowestMs = 0
  void gateway.ended.then(exit => problems.push(`the process ended: ${JSON.stringify(exit)}`))

  async function converse(runs: () => boolean): Promise<void> {
    while (runs()) {
      const conversation = plan(seed, begun++, cookies)
      last.push(conversation)
      if (last.length > keptConversations) last.shift()
      await play(gateway.url, conversation)
    }
  }

  /** Sessions that attackers have: signed in anew where one ended. */
  async function keepSignedIn(runs: () => boolean): Promise<void> {
    for (let slot = 0; runs(); slot = (slot + 1) % cookieSlots) {
      const cookie = cookies[slot]
      const isOpen = cookie !== undefined && (await statusOf(cookie)) !== 401
      if (!isOpen) await signIn(slot)
      await wait(200)
    }
  }

  async function signIn(slot: number): Promise<void> {
    const cookie = await gateway.signIn(users[slot % users.length]).catch(() => undefined)
    if (cookie !== undefined) cookies[slot] = cookie
  }

  async function statusOf(cookie: string): Promise<number> {
    const status = await gateway.status('/api/account/profile', { cookie }).catch(() => 0)
    answers[status] = (answers[status] ?? 0) + 1
    return status
  }

  /** A gateway that answers nobody any more is as bad as one that is gone. */
  async function watch(runs: () => boolean): Promise<void> {
    while (runs()) {
      const asked = performance.now()
      const answer = await gateway.ask('/healthz', { timeoutMs: patienceMs }).catch(() => undefined)
      const tookMs = performance.now() - asked
      slowestMs = Math.max(slowestMs, tookMs)
      if (answer === undefined && !gateway.isOver() && tookMs >= patienceMs) {
        problems.push(`/healthz had no answer within ${patienceMs} ms`)
      }
      await wait(250)
    }
  }

  return {
    problems,
    begin: async () => {
      for (let slot = 0; slot < cookieSlots; slot++) await signIn(slot)
      if (Object.keys(cookies).length < cookieSlots) throw new Error('attackers could not sign in')
    },
    isSound: () => problems.length === 0,
    noteTrouble: (what: string) => void troubles.push(what),
    run: async (runs: () => boolean) => {
      await Promise.all([
        keepSignedIn(runs),
        watch(runs),
        ...Array.from({ length: clients }, async () => await converse(runs))
      ])
    },
    report: () => ({
      conversations: begun,
      answers,
      troubles: troubles.length,
      slowestMs: Math.round(slowestMs),
      lastRequests: last.map(describe),
      lastTroubles: troubles.slice(-10)
    })
  }
}
