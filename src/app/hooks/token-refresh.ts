/** Renews an expiring token before a proxied request goes out with it. */
import type { FastifyInstance } from 'fastify'
import type { TokenRefresh } from '../../login/token-refresh.ts'
import { setLiveSession, liveOf } from './session.ts'

export function addTokenRefresh(scope: FastifyInstance, { ensureFresh }: TokenRefresh): void {
  scope.addHook('onRequest', function ensureCredential(request, _reply, done) {
    const live = liveOf(request)
    if (live?.session.credential?.expiresAt === undefined) return done()
    ensureFresh(live, request.trail).then(
      kept => {
        if (kept !== live) setLiveSession(request, kept)
        done()
      },
      (error: Error) => done(error)
    )
  })
}
