/** Renews an expiring token before a proxied request goes out with it. */
import type { FastifyInstance } from 'fastify'
import type { TokenRefresh } from '../../login/token-refresh.ts'
import type { Sessions } from '../../session/session.ts'
import { setLiveSession, liveOf } from './session.ts'

export function addTokenRefresh(
  scope: FastifyInstance,
  { ensureFresh }: TokenRefresh,
  { withHeld }: Pick<Sessions, 'withHeld'>
): void {
  scope.addHook('onRequest', function ensureCredential(request, _reply, done) {
    const live = liveOf(request)
    if (live?.session.credential === undefined) return done()
    if (live.session.credential.expiresAt === undefined) {
      const held = withHeld(live)
      if (held !== live) setLiveSession(request, held)
      return done()
    }
    ensureFresh(live, request.trail).then(
      kept => {
        if (kept !== live) setLiveSession(request, kept)
        done()
      },
      (error: Error) => done(error)
    )
  })
}
