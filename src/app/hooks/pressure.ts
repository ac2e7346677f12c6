/** Refuses requests while the event loop is late: more of them would only make all of them late. */
import underPressure from '@fastify/under-pressure'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { GatewayError } from '../../errors/errors.ts'

/** In the mean of a sample. */
const maxDelayMs = 1000
/** For users who are signed in; the signature of their cookie is enough. */
const maxSignedInDelayMs = 3000
/** A delay of more than that leaves nothing to measure in its sample, and counts as infinite. */
const sampleInterval = maxSignedInDelayMs
const retryAfter = 1

export async function refuseUnderPressure(app: FastifyInstance): Promise<void> {
  const { sessionKeyIn } = app.gateway
  // Without bounds it only measures: its own hook makes a copy of the route's options each time.
  await app.register(underPressure, { sampleInterval })
  let from = Infinity
  app.addHook('onReady', async () => {
    // Building the app delays the event loop; that is no load.
    from = performance.now() + sampleInterval
  })
  const isSignedIn = ({ headers: { cookie } }: FastifyRequest) =>
    cookie !== undefined && sessionKeyIn(cookie) !== undefined
  app.addHook('onRequest', function checkPressure(request, _reply, done) {
    const { eventLoopDelay } = app.memoryUsage()
    if (eventLoopDelay <= maxDelayMs || performance.now() < from) return done()
    if (eventLoopDelay <= maxSignedInDelayMs && isSignedIn(request)) return done()
    done(new GatewayError('overloaded', { retryAfter, limit: 'eventLoop' }))
  })
}
