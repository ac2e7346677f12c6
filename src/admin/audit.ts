/** Operators' endpoints: searches the audit ledger of this machine, and follows it. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { type Static, Type } from 'typebox'
import { endOf, timePattern } from '../config/schema/maintenance.ts'
import { parseKeepingDigits } from '../json/digits.ts'
import { malformed } from '../app/hooks/validation.ts'
import { type AuditFilter, matchesFilter, searchLedger } from '../observability/audit/search.ts'
import type { OpenLedger } from '../observability/audit/ledger.ts'
import type { AuditKey } from '../observability/audit/line.ts'
import { addOpsScope } from './api.ts'
import { LineStreams } from './audit-stream.ts'

export interface SearchedLedger extends Pick<OpenLedger, 'onLines' | 'status'> {
  readonly folder: string
  readonly keys: readonly AuditKey[]
}

const name = Type.Optional(Type.String({ minLength: 1, maxLength: 255 }))

const filterMembers = {
  user: name,
  kind: name,
  route: name,
  requestId: name
}

const searchQuery = Type.Object({
  ...filterMembers,
  since: Type.Optional(Type.String({ pattern: timePattern })),
  until: Type.Optional(Type.String({ pattern: timePattern })),
  last: Type.String({ pattern: '^[1-9][0-9]{0,3}$', default: '100' })
})
const streamQuery = Type.Object(filterMembers)

const ofSearch =
  'Filter by user, kind, route, requestId, since and until (times such as ' +
  '2026-12-01T06:00:00Z), and take the last 1 to 9999: /ops/api/audit?user=alice&last=50.'

/** Reading more at once would take the time of requests. */
const maxBytes = 64 * 1024 * 1024

/**
 * @param ledger undefined where config has no audit ledger: the answers then say so
 * @param isAllowed whether the operator of a stream may still see lines
 */
export function addOpsAudit(
  ops: FastifyInstance,
  ledger: SearchedLedger | undefined,
  isAllowed: (request: FastifyRequest) => Promise<boolean>
): void {
  const streams = new LineStreams(isAllowed)
  ledger?.onLines((chain, lines) => streams.send(chain, lines))
  streams.endWith(ops)

  addOpsScope(ops, scope => {
    scope.get<{ Querystring: Static<typeof searchQuery> }>(
      '/audit',
      {
        schema: { summary: 'Lines of the audit ledger of this machine.', querystring: searchQuery },
        schemaErrorFormatter: malformed(ofSearch)
      },
      async ({ query }) => {
        if (ledger === undefined) return { configured: false, lines: [], isWhole: true }
        const { folder, keys } = ledger
        const parse = parseKeepingDigits
        const filter = { ...query, since: timeOf(query.since), until: timeOf(query.until) }
        const result = await searchLedger({
          folder,
          keys,
          filter,
          last: Number(query.last),
          maxBytes,
          parse
        })
        const { failing, lost, waiting } = ledger.status()
        return { configured: true, ...result, failing: failing?.reason ?? null, lost, waiting }
      }
    )
    scope.get<{ Querystring: Static<typeof streamQuery> }>(
      '/audit/stream',
      {
        schema: {
          summary: 'Lines of the audit ledger as they are written: server-sent events `line`.',
          querystring: streamQuery
        },
        schemaErrorFormatter: malformed(ofSearch)
      },
      (request: FastifyRequest<{ Querystring: AuditFilter }>, reply) => {
        const { query } = request
        streams.open(request, reply, line => matchesFilter(line, query))
      }
    )
  })
}

function timeOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const time = endOf(text)
  if (Number.isNaN(time)) throw malformed(ofSearch)()
  return time
}
