/** Acts of operators in the audit ledger: each stands there before it is answered. */
import type { FastifyRequest } from 'fastify'
import { type Operator, secretOperator } from './operator.ts'
import { clientAddress } from '../app/hooks/address.ts'
import { GatewayError, toGatewayError } from '../errors/errors.ts'
import type { AuditEntry } from '../observability/audit/line.ts'
import type { Ledger } from '../observability/audit/ledger.ts'

/**
 * They go on where the ledger cannot be written, and their lines wait in memory: acts that only
 * take rights away, since who is signed in with a stolen password must not stay so because a disk
 * is full, and the sign-in for them.
 */
const protectiveActs = new Set([
  'sessions.close',
  'users.block',
  'keys.revoke',
  'ops.sign-in',
  'ops.sign-out'
])

interface ActLedger {
  readonly ledger: Ledger
  readonly log: { readonly warn: (fields: object, message: string) => void }
}

declare module 'fastify' {
  interface FastifyInstance {
    actLedger?: ActLedger | undefined
  }
}

interface Act<Result extends object> {
  readonly kind: string
  readonly secret?: string
  readonly run: (body: unknown, request: FastifyRequest) => Promise<Result>
}

/** @throws GatewayError */
export async function doInLedger<Result extends object>(
  { kind, run, secret }: Act<Result>,
  body: object,
  request: FastifyRequest,
  { name: operator, via }: Operator = request.operator ?? secretOperator
): Promise<Result> {
  const { actLedger } = request.server
  if (actLedger === undefined) return await run(body, request)
  const { ledger } = actLedger
  const of = { operator, via, address: clientAddress(request), requestId: request.id }
  const line = { kind: 'act', act: kind, ...of, detail: scalarsOf(body) } as const
  try {
    if (!protectiveActs.has(kind)) ledger.check()
  } catch (cause) {
    ledger.append({ ...line, outcome: 'failed', code: 'ops.ledger' })
    throw new GatewayError('ops.ledger', { cause })
  }
  try {
    const result = await run(body, request)
    const detail = scalarsOf({ ...body, ...result, ...(secret && { [secret]: '…' }) })
    await commit(actLedger, { ...line, outcome: 'done', detail })
    return result
  } catch (error) {
    const { code } = toGatewayError(error)
    await commit(actLedger, { ...line, outcome: 'failed', code })
    throw error
  }
}

/** Resolves when the line is on disk, or it is logged that it waits. */
async function commit({ ledger, log }: ActLedger, line: AuditEntry): Promise<void> {
  try {
    await ledger.commit(line)
  } catch (err) {
    const { act, operator, requestId } = line
    log.warn(
      { event: 'audit.late', act, operator, requestId, err },
      'an act of an operator is done though its line is not on disk yet'
    )
  }
}

function scalarsOf(details: object): AuditEntry['detail'] {
  const texts = Object.entries(details).map(([name, value]) => [
    name,
    typeof value === 'object' ? JSON.stringify(value) : value
  ])
  return Object.fromEntries(texts) as AuditEntry['detail']
}
