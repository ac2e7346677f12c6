/** Renews an expiring token before a proxied request goes out with it. */
import type { FastifyInstance } from 'fastify'
import { createTokenRefresh } from '../../login/token-refresh.ts'

export function addTokenRefresh(scope: FastifyInstance): void {
  const { sessions, sources, log } = scope.gateway
  const { ensureFresh } = createTokenRefresh({
    sessions,
    sources,
    onFailed: err =>
      log.warn(
        { err },
        'could not renew a back-end’s token; the current one is valid for a short time still'
      )
  })
  scope.addHook('onRequest', function ensureCredential(request, _reply, done) {
    const live = request.live
    if (live?.session.credential === undefined) return done()
    if (live.session.credential.expiresAt === undefined) {
      const held = sessions.credentials.withHeld(live)
      if (held !== live) request.live = held
      return done()
    }
    ensureFresh(live, request.trail).then(
      kept => {
        if (kept !== live) request.live = kept
        done()
      },
      (error: Error) => done(error)
    )
  })
}
