/** One built app with its requests: another replaces it, then it drains and closes. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { buildApp } from '../app/app.ts'
import type { BoundStreams } from '../app/bound-streams.ts'
import type { ShedLog } from '../app/hooks/metrics.ts'
import type { Config } from '../config/schema/config.ts'
import { signOutAtSource } from '../login/credential-source.ts'
import { createVouching } from '../ops/vouching.ts'
import type { Log, Services } from '../services/services.ts'
import type { Session } from '../session/types.ts'

export type Generation = Awaited<ReturnType<typeof createGeneration>>

interface Outliving {
  readonly services: Services
  readonly boundStreams: BoundStreams
  readonly shed: ShedLog
}

/** How long streams of an earlier generation go on, and the time over which their ends are spread. */
const [streamsMs, spreadMs] = [600_000, 30_000]

/** @throws when the config cannot be built; everything opened before is closed again */
export async function createGeneration(
  number: number,
  config: Config,
  { services, boundStreams, shed }: Outliving
) {
  const idle = Promise.withResolvers<void>()
  let closed: Promise<void> | undefined
  const running = createActiveRequests<{ readonly destroy: () => unknown }>(() => {
    if (closed !== undefined) idle.resolve()
  })
  const lease = services.upstreams.lease(config.authorities)
  const streams = boundStreams.scope()
  const app = await buildApp(config, {
    ...services,
    shed,
    upstream: lease.upstream,
    running: { begin: running.enter },
    bindStream: streams.add
  }).catch(async (error: unknown) => {
    await lease.release()
    throw error
  })

  async function close(): Promise<void> {
    const limit = setTimeout(() => streams.drain(spreadMs), streamsMs - spreadMs).unref()
    if (running.size() === 0) idle.resolve()
    await idle.promise
    clearTimeout(limit)
    await app.close()
    await lease.release()
  }

  return {
    number,
    config,
    handle: (request: IncomingMessage, response: ServerResponse) => app.routing(request, response),
    requests: running.size,
    vouching: createVouching(app.gateway),
    /** Signs sessions of a user that have ended out at their back-ends. */
    signOut: (ended: readonly Session[]) => signOutAtSource(app.gateway, ended, services),
    /** Closes when the last request has ended; streams are told to end after ten minutes. */
    retire: () => (closed ??= close()),
    end: async (): Promise<void> => {
      streams.drain(0)
      for (const member of running.list()) member.destroy()
      await (closed ??= close())
    }
  }
}

/** The generation that takes requests, and those before it that still answer some. */
export class Generations {
  readonly #log: Log
  readonly #former = new Set<Generation>()
  /** Set before anything listens. */
  current!: Generation

  constructor(log: Log) {
    this.#log = log
  }

  /** From now on this generation takes the requests; the one before ends with its last. */
  activate(generation: Generation): void {
    const previous: Generation | undefined = this.current
    this.current = generation
    if (previous === undefined) return
    this.#former.add(previous)
    void previous
      .retire()
      .catch((err: unknown) => this.#log.error({ err }, 'an old generation could not be closed'))
      .finally(() => this.#former.delete(previous))
  }

  draining(): Array<{ readonly generation: number; readonly requests: number }> {
    return Array.from(this.#former, ({ number, requests }) => ({
      generation: number,
      requests: requests()
    }))
  }

  async close(): Promise<void> {
    await Promise.all([...this.#former, this.current].map(generation => generation.end()))
  }
}

/**
 * In-flight requests as a swap-remove array. A Set would do the same, but keeps deleted entries
 * alive: when it is full it moves to another table, and the old tables, each of which points to
 * the next, hold on to all their members until the next full garbage collection.
 * perf: signed-in −36 % (−31 to −43; `npm run bench -- --against`, by turns); without it: a Set.
 */
export function createActiveRequests<T>(onEmpty = () => {}) {
  const places: Array<{ readonly member: T; at: number }> = []
  return {
    /** @returns a function to call once when the request has ended */
    enter: (member: T) => {
      const place = { member, at: places.length }
      places.push(place)
      return (): void => {
        const last = places.pop()
        if (last !== undefined && last !== place) {
          last.at = place.at
          places[place.at] = last
        }
        if (places.length === 0) onEmpty()
      }
    },
    size: () => places.length,
    list: () => places.map(({ member }) => member)
  }
}
