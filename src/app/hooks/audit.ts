/**
 * Records in the audit ledger each sign-in and each unsafe request to a back-end when it has
 * ended, answered or not, with the facts of its trail.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { ownRoutes } from '../../config/schema/own-endpoints.ts'
import type { AuditEntry } from '../../observability/audit/line.ts'
import type { Ledger } from '../../observability/audit/ledger.ts'
import { toHundredths } from '../../observability/request-json.ts'
import type { Session } from '../../session/types.ts'
import { safeMethods } from '../../observability/failures.ts'
import { type BodyFields, compileBodyFields, fieldsOf } from './audit-fields.ts'
import { clientAddress } from './address.ts'

/** Add it after the access log, whose trail is complete when a response is closed. */
export function addAudit(app: FastifyInstance): void {
  const { ledger, config } = app.gateway
  const { audit } = config.gateway
  if (ledger === undefined || audit === undefined) return
  const fields = compileBodyFields(audit)
  app.addHook('onRequest', function observeUnsafe(request, _reply, done) {
    if (safeMethods.has(request.method)) return done()
    request.onResponseClose.push(() => {
      const kind = kindOf(request)
      if (kind !== undefined) ledger.append(entryOf(request, kind, fields))
    })
    done()
  })
}

/** Undefined for what changes nothing at a back-end; sign-outs record themselves. */
function kindOf({ routeOptions, trail }: FastifyRequest): AuditEntry['kind'] | undefined {
  const { upstream } = routeOptions.config
  if (trail.route === ownRoutes.login.name) {
    return trail.code === undefined && !trail.isCut ? 'sign-in' : 'sign-in.refused'
  }
  return upstream === undefined ? undefined : 'request'
}

function entryOf(
  request: FastifyRequest,
  kind: AuditEntry['kind'],
  bodyFields: BodyFields
): AuditEntry {
  const { trail } = request
  return {
    kind,
    user: trail.user,
    userId: trail.userId,
    source: request.live?.session.source,
    session: trail.session,
    address: trail.address,
    route: trail.route,
    method: trail.method,
    path: trail.path,
    status: trail.status,
    code: trail.code,
    requestId: trail.requestId,
    upstream: trail.attempts?.at(-1)?.address,
    ms: toHundredths(trail.ms),
    fields: kind === 'request' ? fieldsOf(request, bodyFields.get(trail.route)) : undefined
  }
}

/** Records a sign-out, by whatever method it came. */
export function recordSignOut(ledger: Ledger, request: FastifyRequest, session: Session): void {
  ledger.append({
    kind: 'sign-out',
    user: session.identity.username,
    userId: session.identity.id,
    source: session.source,
    session: session.id,
    address: clientAddress(request),
    route: ownRoutes.logout.name,
    method: request.method,
    path: request.trail.path,
    requestId: request.id
  })
}
