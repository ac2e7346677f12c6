/** Sees to it that a proxied request goes out with a token that holds. */
import type { FastifyInstance } from 'fastify'
import type { Upkeep } from '../../login/token-refresh.ts'
import { carry, liveOf } from './session.ts'

export function addUpkeep(scope: FastifyInstance, { ensure }: Upkeep): void {
  scope.addHook('onRequest', function ensureCredential(request, _reply, done) {
    const live = liveOf(request)
    if (live?.session.credential?.expiresAt === undefined) return done()
    ensure(live).then(
      kept => {
        if (kept !== live) carry(request, kept)
        done()
      },
      (error: Error) => done(error)
    )
  })
}
