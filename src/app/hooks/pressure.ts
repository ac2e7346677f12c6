/** Refuses requests while the event loop is late: more of them would only make all of them late. */
import underPressure from '@fastify/under-pressure'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { GatewayError } from '../../errors.ts'

/** In the mean of a sample. */
const maxDelayMs = 1000
/** For users who are signed in; the signature of their cookie is enough. */
const maxSignedInDelayMs = 3000
/** A delay of more than that leaves nothing to measure in its sample, and counts as infinite. */
const sampleInterval = maxSignedInDelayMs
const retryAfter = 1

/** @param sessionKeyIn gives undefined for a `Cookie` header without a valid signature */
export async function refuseUnderPressure(
  app: FastifyInstance,
  sessionKeyIn: (cookieHeader: string) => string | undefined
): Promise<void> {
  let from = Infinity
  app.addHook('onReady', async () => {
    // What an app was late by while it was built is no load.
    from = performance.now() + sampleInterval
  })
  const isSignedIn = ({ headers: { cookie } }: FastifyRequest) =>
    cookie !== undefined && sessionKeyIn(cookie) !== undefined
  await app.register(underPressure, {
    maxEventLoopDelay: maxDelayMs,
    sampleInterval,
    pressureHandler: (request, _reply, _type, delayMs = 0) => {
      if (performance.now() < from) return
      if (delayMs <= maxSignedInDelayMs && isSignedIn(request)) return
      throw new GatewayError('overloaded', { retryAfter, limit: 'eventLoop' })
    }
  })
}
