/** Acts of operators: each is in the audit ledger before it is answered, and in the log. */
import type { FastifyRequest } from 'fastify'
import { type Operator, secretOperator } from './operator.ts'
import { clientAddress } from '../app/hooks/address.ts'
import { GatewayError, toGatewayError } from '../errors/errors.ts'
import type { AuditEntry } from '../observability/audit/line.ts'
import type { Services } from '../services/services.ts'

/**
 * Acts that go on where the ledger cannot be written, while their lines wait: a full disk must not
 * keep in who signed in with a stolen password.
 */
const protectiveActs = new Set([
  'sessions.close',
  'users.block',
  'keys.revoke',
  'ops.sign-in',
  'ops.sign-out'
])

declare module 'fastify' {
  interface FastifyInstance {
    actsTo: Pick<Services, 'ledger' | 'log'>
  }
}

const maxText = 512

interface Act<Result extends object> {
  readonly kind: string
  readonly secret?: string
  readonly run: (body: unknown, request: FastifyRequest) => Promise<Result>
}

/** @throws GatewayError */
export async function doAct<Result extends object>(
  { kind, run, secret }: Act<Result>,
  body: object,
  request: FastifyRequest,
  { name: operator, via }: Operator = request.operator ?? secretOperator
): Promise<Result> {
  const { ledger, log } = request.server.actsTo
  const of = { act: kind, operator, via, address: clientAddress(request), requestId: request.id }
  const line = { kind: 'act', ...of, detail: scalarsOf(body) } as const
  try {
    if (!protectiveActs.has(kind)) ledger?.check()
  } catch (cause) {
    ledger?.append({ ...line, outcome: 'failed', code: 'ops.ledger' })
    throw new GatewayError('ops.ledger', { cause })
  }
  const commit = async (end: Pick<AuditEntry, 'outcome' | 'code'>, detail = line.detail) => {
    const late = 'an act of an operator is done though its line is not on disk yet'
    await ledger?.commit({ ...line, ...end, detail }).catch((err: unknown) => {
      log.warn({ event: 'audit.late', ...of, err }, late)
    })
  }
  try {
    const result = await run(body, request)
    const detail = scalarsOf({ ...body, ...result, ...(secret && { [secret]: '…' }) })
    await commit({ outcome: 'done' }, detail)
    log.info({ event: 'ops.act', ...of, detail }, `${operator} did ${kind}`)
    return result
  } catch (error) {
    await commit({ outcome: 'failed', code: toGatewayError(error).code })
    throw error
  }
}

/** Lists and members of members as text. */
function scalarsOf(details: object): AuditEntry['detail'] {
  const texts = Object.entries(details).map(([name, value]) => [
    name,
    typeof value === 'object' ? JSON.stringify(value).slice(0, maxText) : value
  ])
  return Object.fromEntries(texts) as AuditEntry['detail']
}
