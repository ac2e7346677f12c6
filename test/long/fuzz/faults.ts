/** What goes wrong around the gateway while it is attacked: reloads, its Redis, a back-end that comes and goes. */
import { setTimeout as wait } from 'node:timers/promises'
import { type FaultyProxy, faultyProxy, type Mode } from '../../support/faulty-proxy.ts'
import type { GatewayProcess } from '../../support/gateway-process.ts'
import { createRandom, type Random } from '../../support/random.ts'
import { testRedis, type TestRedis } from '../../support/redis.ts'
import type { AttackedConfig } from './config.ts'
import type { Upstreams } from './upstreams.ts'

export interface Surroundings {
  readonly redis: TestRedis
  readonly proxy: FaultyProxy
}

export async function openSurroundings(
  cleanUp: (undo: () => unknown) => void
): Promise<Surroundings> {
  const redis = await testRedis(cleanUp)
  return { redis, proxy: await faultyProxy(cleanUp, redis.port) }
}

interface Parts extends Surroundings {
  readonly gateway: GatewayProcess
  readonly config: AttackedConfig
  readonly upstreams: Upstreams
}

const modes: readonly Mode[] = [
  'lose-answers',
  'swallow',
  'garbage',
  'refuse',
  'cut',
  'trickle',
  'flap',
  { delayMs: 300 }
]

type Fault = (parts: Parts, random: Random) => Promise<string>

const otherFaults: readonly Fault[] = [
  async function files({ config }, random) {
    return `config files: ${config.change(random)}`
  },
  async function filesAgain({ config }, random) {
    return `config files: ${config.change(random)}`
  },
  async function signal({ gateway, config }, random) {
    const change = config.change(random)
    gateway.signal('SIGHUP')
    return `SIGHUP after a change: ${change}`
  },
  async function operator({ gateway }, random) {
    const path = random.pick(['/ops/api/reload', '/ops/api/status', '/ops/api/sessions/close'])
    const { status } = await gateway.ask(path, {
      ...(path !== '/ops/api/status' && { json: { user: 'bob' } })
    })
    return `operators: ${path} ${status}`
  },
  async function fickle({ upstreams }) {
    await upstreams.toggle()
    return 'the fickle back-end opens or closes'
  }
]

const redisFaults: readonly Fault[] = [
  async function network({ proxy }, random) {
    const mode = random.pick(modes)
    await proxy.set(mode)
    await wait(random.integer(100, 1200))
    await proxy.set('pass')
    return `on the way to Redis: ${JSON.stringify(mode)}`
  },
  async function killed({ redis }, random) {
    await redis.kill()
    await wait(random.integer(0, 1000))
    await redis.start()
    return 'Redis killed and started again'
  },
  async function frozen({ redis }, random) {
    redis.signal('SIGSTOP')
    await wait(random.integer(100, 1500))
    redis.signal('SIGCONT')
    return 'Redis frozen for a while'
  }
]

/** Redis is away a fifth of the time at most: beyond sessions, 503 is all there is to see. */
const calmMs = 4000

/** One fault after the other; in the same order for the same seed. */
export async function trouble(
  parts: Parts,
  seed: number,
  runs: () => boolean,
  tell: (what: string) => void
): Promise<void> {
  const random = createRandom(seed)
  const one = async (fault: Fault) => {
    // Operators are not answered by a gateway that is about to be found dead.
    tell(await fault(parts, random).catch((error: unknown) => `${fault.name}: ${String(error)}`))
  }
  while (runs()) {
    const calmUntil = performance.now() + calmMs
    while (runs() && performance.now() < calmUntil) {
      await one(random.pick(otherFaults))
      await wait(random.integer(50, 700))
    }
    await one(random.pick(redisFaults))
  }
}

/** All is well again. */
export async function heal({ proxy, config, upstreams }: Parts): Promise<void> {
  await proxy.set('pass', 'news')
  await proxy.set('pass')
  config.restore()
  await upstreams.calm()
}
