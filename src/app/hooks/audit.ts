/**
 * Records in the audit ledger each sign-in and each unsafe request to a back-end when it has
 * ended, answered or not, with the facts of its trail.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { ownRoutes } from '../../config/schema/own-endpoints.ts'
import type { AuditEntry } from '../../observability/audit/line.ts'
import { safeMethods } from '../../observability/failures.ts'
import { toHundredths } from '../../observability/request-json.ts'
import { compileBodyFields, fieldsOf } from './audit-fields.ts'

/** Add it after the access log, whose trail is complete when a response is closed. */
export function addAudit(app: FastifyInstance): void {
  const { ledger, config } = app.gateway
  const { audit } = config.gateway
  if (ledger === undefined || audit === undefined) return
  const fields = compileBodyFields(audit)
  app.addHook('onRequest', function observeUnsafe(request, _reply, done) {
    if (safeMethods.has(request.method)) return done()
    request.onResponseClose.push(() => {
      const { trail } = request
      const kind = kindOf(request)
      if (kind === undefined) return
      ledger.append({
        ...factsOf(request, kind),
        status: trail.status,
        code: trail.code,
        upstream: trail.attempts?.at(-1)?.address,
        ms: toHundredths(trail.ms),
        fields: kind === 'request' ? fieldsOf(request, fields.get(trail.route)) : undefined
      })
    })
    done()
  })
}

/** Undefined for what changes nothing at a back-end; sign-outs record themselves. */
function kindOf({ routeConfig, trail }: FastifyRequest): AuditEntry['kind'] | undefined {
  if (trail.route === ownRoutes.login.name) {
    return trail.code === undefined && !trail.isCut ? 'sign-in' : 'sign-in.refused'
  }
  return routeConfig.upstream === undefined ? undefined : 'request'
}

function factsOf({ trail }: FastifyRequest, kind: AuditEntry['kind']): AuditEntry {
  return {
    kind,
    user: trail.user,
    userId: trail.userId,
    source: trail.source,
    session: trail.session,
    address: trail.address,
    route: trail.route,
    method: trail.method,
    path: trail.path,
    requestId: trail.requestId
  }
}

/** Records a sign-out, by whatever method it came. */
export function recordSignOut(request: FastifyRequest): void {
  request.server.gateway.ledger?.append(factsOf(request, 'sign-out'))
}
