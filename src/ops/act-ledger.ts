/** Acts of operators in the audit ledger: each stands there before it is answered. */
import type { FastifyRequest } from 'fastify'
import { type Operator, secretOperator } from './operator.ts'
import { clientAddress } from '../app/hooks/address.ts'
import { GatewayError, toGatewayError } from '../errors/errors.ts'
import type { AuditEntry } from '../observability/audit/line.ts'
import type { Ledger } from '../observability/audit/ledger.ts'

/**
 * Acts that only take rights away. They go on where the ledger cannot be written: who is signed in
 * with a stolen password must not stay so because a disk is full. Their lines wait in memory.
 */
const protectiveActs = new Set(['sessions.close', 'users.block'])

interface ActLedger {
  readonly ledger: Ledger
  readonly log: { readonly warn: (fields: object, message: string) => void }
}

declare module 'fastify' {
  interface FastifyInstance {
    /** Set where config has a ledger. */
    actLedger?: ActLedger | undefined
  }
}

interface Act {
  readonly kind: string
  readonly run: (body: unknown, request: FastifyRequest) => Promise<unknown>
}

/** @throws GatewayError */
export async function doInLedger({ kind, run }: Act, body: unknown, request: FastifyRequest) {
  const { actLedger } = request.server
  if (actLedger === undefined) return await run(body, request)
  const { ledger } = actLedger
  const { operator = secretOperator } = request
  const line = actLine(request, kind, operator)
  const details = body as object
  try {
    if (!protectiveActs.has(kind)) ledger.check()
  } catch (cause) {
    ledger.append({ ...line, outcome: 'failed', code: 'ops.ledger', detail: scalarsOf(details) })
    throw new GatewayError('ops.ledger', { cause })
  }
  try {
    const result = await run(body, request)
    const detail = scalarsOf({ ...details, ...(result as object) })
    await commit(actLedger, { ...line, outcome: 'done', detail })
    return result
  } catch (error) {
    const { code } = toGatewayError(error)
    await commit(actLedger, { ...line, outcome: 'failed', code, detail: scalarsOf(details) })
    throw error
  }
}

/** What the line of an act says of a request. */
export function actLine(request: FastifyRequest, act: string, { name, via }: Operator) {
  const { id: requestId } = request
  const address = clientAddress(request)
  return { kind: 'act', act, operator: name, via, address, requestId } as const
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
