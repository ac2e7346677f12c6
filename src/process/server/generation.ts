/**
 * One built app with its requests: it takes requests until another replaces it, then drains and
 * closes.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { buildApp } from '../../app/app.ts'
import { createOperatorSignIn, type VouchForOperator } from '../../app/sign-in/operators.ts'
import type { BoundStreams } from '../../app/bound-streams.ts'
import type { OperatorsMaintenance } from '../../app/gateway.ts'
import type { Config } from '../../config/schema/config.ts'
import type { Ledger } from '../../observability/audit/ledger.ts'
import type { ShedLog } from '../../app/shed-log.ts'
import { createActiveRequests } from './active-requests.ts'
import { type Services, tlsFilesOf } from '../../services/services.ts'
import type { GatewayServices } from '../../app/gateway.ts'

export interface Generation {
  /** 1 at start, a higher one with each reload. One that could not be built leaves a gap. */
  readonly number: number
  readonly config: Config
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void
  readonly requests: () => number
  /** Undefined without `ops.role`. */
  readonly vouchForOperator?: VouchForOperator | undefined
  /**
   * It takes no more requests, and closes when the last one has ended: each has its time-outs.
   * Streams, which have none, are told to end after ten minutes.
   */
  readonly retire: () => Promise<void>
  /** Ends its requests at once, and closes. */
  readonly end: () => Promise<void>
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

/** How long streams of an earlier generation go on, and the time over which their ends are spread. */
const [streamsMs, spreadMs] = [600_000, 30_000]

/** @throws when the config cannot be built; everything opened before is closed again */
export async function createGeneration(
  number: number,
  config: Config,
  services: Services,
  { boundStreams, ...outliving }: Outliving
): Promise<Generation> {
  const running = createActiveRequests<Member>()
  const idle = Promise.withResolvers<void>()
  let closed: Promise<void> | undefined
  const begin = (member: Member) => {
    const leave = running.enter(member)
    return () => {
      leave()
      if (closed !== undefined && running.size() === 0) idle.resolve()
    }
  }

  const lease = services.upstreams.lease()
  const upstream: GatewayServices['upstream'] = (name, upstreamConfig) =>
    lease.upstream(name, upstreamConfig, tlsFilesOf(upstreamConfig, config.authorities))
  const streams = boundStreams.scope()
  const generationServices = {
    ...services,
    ...outliving,
    upstream,
    running: { begin },
    bindStream: streams.add
  }
  const app = await buildApp(config, generationServices).catch(async (error: unknown) => {
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
    handle: (request, response) => app.routing(request, response),
    requests: running.size,
    vouchForOperator: createOperatorSignIn(app.gateway),
    retire: () => (closed ??= close()),
    end: async () => {
      streams.drain(0)
      for (const member of running.list()) member.destroy()
      await (closed ??= close())
    }
  }
}
