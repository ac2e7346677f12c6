/**
 * One built app with its requests: it takes requests until another replaces it, then drains and
 * closes.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { buildApp } from '../../app/app.ts'
import { createOperatorSignIn, type OperatorSignIn } from '../../app/operator-sign-in.ts'
import type { BoundStreams } from '../../app/bound-streams.ts'
import type { OperatorsMaintenance } from '../../app/hooks/maintenance.ts'
import type { Config } from '../../config/schema/config.ts'
import type { Ledger } from '../../observability/audit/entry.ts'
import type { ShedLog } from '../../app/shed-log.ts'
import { responsesOf } from '../../app/unparsed.ts'
import { createActiveRequests } from './active-requests.ts'
import { type Services, tlsFilesOf } from '../../services/services.ts'
import type { GenerationServices } from '../../app/generation-services.ts'

export interface Generation {
  /** 1 at start, a higher one with each reload. One that could not be built leaves a gap. */
  readonly number: number
  readonly config: Config
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void
  readonly requests: () => number
  /** Undefined without `ops.role`. */
  readonly operatorSignIn?: OperatorSignIn | undefined
  /** The response that a connection waits for, where its request began here. */
  readonly responsesOf: (socket: Socket) => readonly ServerResponse[]
  /**
   * Lets its requests finish, ends the rest after the time (0: at once), and releases what only
   * this generation used.
   * A second call can only end them at once.
   * @returns how many requests had to be ended
   */
  readonly retire: (graceMs: number) => Promise<number>
}

/** A response under way, or a WebSocket. */
interface Member {
  readonly destroy: () => unknown
}

/** Parts that outlive generations, beside the services. */
interface Outliving {
  readonly boundStreams: BoundStreams
  readonly maintenance: OperatorsMaintenance
  readonly ledger: Ledger | undefined
  readonly shed: ShedLog
}

/** The longest time over which the ends of an old generation's streams are spread. */
const maxSpreadMs = 30_000

/** @throws when the config cannot be built; everything opened before is closed again */
export async function createGeneration(
  number: number,
  config: Config,
  services: Services,
  { boundStreams, ...outliving }: Outliving
): Promise<Generation> {
  const running = createActiveRequests<Member>()
  const idle = Promise.withResolvers<void>()
  let gone: Promise<number> | undefined
  let limit: NodeJS.Timeout | undefined
  let streamLimit: NodeJS.Timeout | undefined
  let ended = 0
  const begin = (member: Member) => {
    const leave = running.enter(member)
    return () => {
      leave()
      if (gone !== undefined && running.size() === 0) idle.resolve()
    }
  }

  const lease = services.upstreams.lease()
  const upstream: GenerationServices['upstream'] = (name, upstreamConfig) =>
    lease.upstream(name, upstreamConfig, tlsFilesOf(upstreamConfig, config.authorities))
  const streams = boundStreams.scope()
  const generationServices = {
    ...services,
    ...outliving,
    upstream,
    running: { begin },
    bindStream: streams.add
  }
  const building = buildApps(config, generationServices)
  const { app, operatorSignIn } = await building.catch(async (error: unknown) => {
    await lease.release()
    throw error
  })

  /** Streams learn of their end before the last moment, and not all in the same one. */
  function endLater(graceMs: number): void {
    const spreadMs = Math.min(graceMs / 10, maxSpreadMs)
    streamLimit = setTimeout(() => streams.drain(spreadMs), graceMs - spreadMs).unref()
    limit = setTimeout(endAll, graceMs).unref()
  }

  function endAll(): void {
    streams.drain(0)
    ended += running.size()
    for (const member of running.list()) member.destroy()
  }

  async function drain(): Promise<number> {
    if (running.size() === 0) idle.resolve()
    await idle.promise
    clearTimeout(limit)
    clearTimeout(streamLimit)
    await app.close()
    await lease.release()
    return ended
  }

  return {
    number,
    config,
    handle: (request, response) => app.routing(request, response),
    requests: running.size,
    operatorSignIn,
    responsesOf: socket => responsesOf(socket, running.list()),
    retire: async graceMs => {
      gone ??= drain()
      if (graceMs === 0) endAll()
      else if (limit === undefined) endLater(graceMs)
      return await gone
    }
  }
}

/** The app, and the sign-in of operators. @throws what building throws; then none is open */
async function buildApps(config: Config, services: GenerationServices) {
  const operatorSignIn = createOperatorSignIn(config, services)
  return { app: await buildApp(config, services), operatorSignIn }
}
