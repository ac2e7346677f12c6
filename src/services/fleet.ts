/** The replicas of this gateway: each tells the others how it is, once a second. */
import { hostname } from 'node:os'
import { setTimeout as wait } from 'node:timers/promises'
import type { Seal } from '../session/seal.ts'
import type { SessionStore } from '../session/store.ts'
import type { GatewayState } from './gateway-state.ts'
import type { Present } from './present.ts'
import type { Services } from './services.ts'

interface Options {
  readonly id: string
  readonly store: SessionStore
  /** Whether replicas share the store. */
  readonly isShared: boolean
  readonly seal: Seal
  readonly state: () => GatewayState
  readonly present: Pick<Present, 'read'>
  /** Read with each beat, and soon after the start. */
  readonly maintenance: Pick<Services['maintenance'], 'read'>
}

const noRedis = 'No Redis is configured: this replica knows of no other.'
const redisAway = 'Redis cannot be asked: this replica knows of no other now.'
const set = 'replicas'
const everyMs = 1000
const silentMs = 3500
const forgetMs = 10_000
const startMs = 500

export type Fleet = ReturnType<typeof createFleet>

export function createFleet(options: Options) {
  const { id, store, isShared, seal, state, present, maintenance } = options
  let told = ''
  let beating: Promise<void> | undefined
  const first = Promise.withResolvers<void>()
  const describeOwn = () => ({ id, host: hostname(), ...describe(state(), present) })

  async function tell(): Promise<void> {
    const before = told
    told = seal.close(set, JSON.stringify(describeOwn()))
    try {
      await store.addTo(set, told, forgetMs)
      await store.removeFrom(set, before)
      await maintenance.read()
      first.resolve()
    } catch {
      // Redis is away, which its client logs.
    }
  }

  function beat(): void {
    beating ??= tell().finally(() => {
      beating = undefined
    })
  }

  async function readAll() {
    const states = Array.from(await store.membersOf(set)).flatMap(([sealed, leftMs]) => {
      const text = seal.open(set, sealed)
      // Another secret seals those of another gateway.
      if (text === undefined) return []
      const silentForMs = forgetMs - leftMs
      const seenAt = new Date(Date.now() - silentForMs).toISOString()
      const replica = JSON.parse(text) as ReturnType<typeof describeOwn>
      return [{ ...replica, seenAt, isSilent: silentForMs > silentMs }]
    })
    // The newest of each counts: a beat without an answer may leave the one before there.
    return [...new Map(states.map(each => [each.id, each])).values()]
  }

  const timer = isShared ? setInterval(beat, everyMs).unref() : undefined

  return {
    /** Resolves when what replicas share was read, and soon where Redis is away. */
    begin: async (): Promise<void> => {
      if (!isShared) return
      beat()
      await Promise.race([first.promise, wait(startMs, undefined, { ref: false })])
    },
    /** This replica first. @returns others too where Redis can be asked, and else why not */
    list: async () => {
      const own = { ...describeOwn(), seenAt: new Date().toISOString(), isSilent: false }
      if (!isShared) return { replicas: [own], info: noRedis }
      return await readAll().then(
        all => ({ replicas: [own, ...all.filter(each => each.id !== id)] }),
        () => ({ replicas: [own], info: redisAway })
      )
    },
    close: async (): Promise<void> => {
      clearInterval(timer)
      await beating
      await store.removeFrom(set, told).catch(() => {})
    }
  }
}

function describe(state: GatewayState, present: Options['present']) {
  const { version, startedAt, ready, config } = state
  const { generation, hash: configHash, files, restartNeeded } = config
  const { requestsPerSecond, errorShare, p99Ms } = present.read()
  return {
    version,
    pid: process.pid,
    startedAt,
    ready,
    generation,
    configHash,
    files: files.state,
    ...(files.state === 'refused' && { fault: files.faults[0] }),
    restartNeeded: [...restartNeeded],
    requestsPerSecond,
    errorShare,
    p99Ms
  }
}
