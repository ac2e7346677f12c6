/** Records each sign-in and each unsafe request to a back-end in the ledger when it has ended. */
import { createHmac } from 'node:crypto'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { AuditConfig, HowToShow } from '../../config/schema/gateway.ts'
import { ownRoutes } from '../../config/schema/own-endpoints.ts'
import { tryJson } from '../../json/body.ts'
import { textAt } from '../../json/values.ts'
import type { AuditEntry } from '../../observability/audit/line.ts'
import { safeMethods } from '../../observability/failures.ts'
import { toHundredths } from '../../observability/request-json.ts'

export function addAudit(app: FastifyInstance): void {
  const { ledger, config } = app.gateway
  const { audit } = config.gateway
  if (ledger === undefined || audit === undefined) return
  const fieldsOf = createFields(audit)
  app.addHook('onRequest', function observeUnsafe(request, _reply, done) {
    const { signsIn = false } = request.routeConfig
    if (safeMethods.has(request.method) && !signsIn) return done()
    request.onResponseClose.push(() => {
      const { status, code, attempts, ms } = request.trail
      const kind = kindOf(request)
      if (kind === undefined) return
      ledger.append({
        ...factsOf(request, kind),
        status,
        code,
        upstream: attempts?.at(-1)?.address,
        ms: toHundredths(ms),
        fields: kind === 'request' ? fieldsOf(request) : undefined
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
  const { user, userId, source, session, address, route, method, path, requestId } = trail
  return { kind, user, userId, source, session, address, route, method, path, requestId }
}

export function recordSignOut(request: FastifyRequest): void {
  request.server.gateway.ledger?.append(factsOf(request, 'sign-out'))
}

const maxBodyBytes = 64 * 1024

function createFields({ fields, key: [key = ''] }: AuditConfig) {
  const membersOf = new Map(
    Object.entries(fields).map(([route, members]) => [
      route,
      Object.entries(members).map(([name, how]) => ({ name, show: shownBy(how, key) }))
    ])
  )
  return ({ clientBody: body, headers, trail }: FastifyRequest) => {
    const members = membersOf.get(trail.route)
    if (members === undefined) return undefined
    // A larger body was streamed, and no part of it is in memory any more.
    if (!Buffer.isBuffer(body) || body.length > maxBodyBytes) return undefined
    // Of a body that cannot be read the upstream decides what is wrong with it.
    const value = tryJson(body, headers, maxBodyBytes)
    const shown = members.flatMap(({ name, show }) => {
      const text = textAt(value, name)
      return text === undefined ? [] : [[name, show(text)] as const]
    })
    return Object.fromEntries(shown)
  }
}

function shownBy(how: HowToShow, key: string): (text: string) => string {
  if (how === 'plain') return text => text.slice(0, 256)
  if (how === 'last4') return text => (text.length > 8 ? `…${text.slice(-4)}` : '…')
  return text => createHmac('sha256', key).update(text).digest('base64url').slice(0, 16)
}
