/** What goes wrong around the gateway: reloads, its Redis, a back-end that comes and goes. */
import { setTimeout as wait } from 'node:timers/promises'
import type { FaultyProxy } from '../../support/faulty-proxy.ts'
import type { GatewayProcess } from '../../support/gateway-process.ts'
import { createRandom, type Random } from '../../support/random.ts'
import type { TestRedis } from '../../support/redis.ts'
import { misfortune } from '../soak/misfortune.ts'
import type { AttackedConfig } from './config.ts'
import type { Upstreams } from './upstreams.ts'

interface Parts {
  readonly redis: TestRedis
  readonly proxy: FaultyProxy
  readonly gateway: GatewayProcess
  readonly config: AttackedConfig
  readonly upstreams: Upstreams
}

type Fault = (parts: Parts, random: Random) => Promise<string>

async function files({ config }: Parts, random: Random): Promise<string> {
  return `config files: ${config.change(random)}`
}

const otherFaults: readonly Fault[] = [
  ...[files, files],
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
    await one(async ({ redis, proxy }) => `Redis: ${await misfortune(random, redis, proxy)}`)
  }
}

/** All is well again. */
export async function heal({ proxy, config, upstreams }: Parts): Promise<void> {
  await proxy.set('pass', 'news')
  await proxy.set('pass')
  config.restore()
  await upstreams.calm()
}
