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

type Fields = Readonly<Record<string, unknown>>

interface ActEntry {
  readonly event: 'act.done' | 'act.failed'
  readonly act: string
  readonly operator: Operator
  readonly address: string
  readonly requestId: string
  /** The body of the request, and of `act.done` the response. */
  readonly details: Fields
  /** The error's code, of `act.failed`. */
  readonly code?: string
}

interface Options {
  readonly ledger: Ledger
  readonly log: { readonly warn: (fields: object, message: string) => void }
}

export type ActLedger = ReturnType<typeof createActLedger>

declare module 'fastify' {
  interface FastifyInstance {
    /** Set where config has a ledger. */
    ledger?: ActLedger | undefined
  }
}

export function createActLedger({ ledger, log }: Options) {
  return {
    /** @throws where the act must not be done, since the ledger cannot be written */
    check: (act: string): void => {
      if (!protectiveActs.has(act)) ledger.check()
    },
    /** Writes the entry soon. */
    append: (entry: ActEntry): void => ledger.append(toAuditEntry(entry)),
    /** Resolves when the entry is on disk, or it is logged that it waits. */
    commit: async (entry: ActEntry): Promise<void> => {
      try {
        await ledger.commit(toAuditEntry(entry))
      } catch (error) {
        const { act, operator, requestId } = entry
        log.warn(
          { event: 'audit.late', act, operator: operator.name, requestId, err: error },
          'an act of an operator is done though its line is not on disk yet'
        )
      }
    }
  }
}

interface Act<B, R> {
  readonly kind: string
  readonly run: (body: B, request: FastifyRequest) => Promise<R>
}

/** @throws GatewayError */
export async function doInLedger<B, R>(
  { kind: act, run }: Act<B, R>,
  body: B,
  request: FastifyRequest
): Promise<R> {
  const { ledger } = request.server
  if (ledger === undefined) return await run(body, request)
  const { operator = secretOperator, id: requestId } = request
  const common = { act, operator, address: clientAddress(request), requestId }
  const details = body as Fields
  try {
    ledger.check(act)
  } catch (cause) {
    ledger.append({ event: 'act.failed', ...common, details, code: 'ops.ledger' })
    throw new GatewayError('ops.ledger', { cause })
  }
  try {
    const result = await run(body, request)
    await ledger.commit({ event: 'act.done', ...common, details: { ...details, ...result } })
    return result
  } catch (error) {
    const { code } = toGatewayError(error)
    await ledger.commit({ event: 'act.failed', ...common, details, code })
    throw error
  }
}

function toAuditEntry(entry: ActEntry): AuditEntry {
  const { event, act, operator, address, requestId, details, code } = entry
  return {
    kind: 'act',
    act,
    outcome: event === 'act.done' ? 'done' : 'failed',
    operator: operator.name,
    via: operator.via,
    address,
    requestId,
    code,
    detail: Object.fromEntries(
      Object.entries(details).map(([name, value]) => [name, scalarOf(value)])
    )
  }
}

function scalarOf(value: unknown): string | number | boolean | undefined {
  const isScalar = ['string', 'number', 'boolean', 'undefined'].includes(typeof value)
  return isScalar ? (value as string | number | boolean | undefined) : JSON.stringify(value)
}
