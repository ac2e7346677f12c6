/**
 * Acts of operators: every route that changes anything is added here, so that each stands in the
 * audit ledger before it is answered. Forms of the operators' pages run them too.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Static, TSchema } from 'typebox'
import { clientAddress } from '../app/hooks/address.ts'
import { malformed } from '../app/hooks/validation.ts'
import { GatewayError, toGatewayError } from '../errors/errors.ts'
import { type Operator, secretOperator } from './operator.ts'

type Fields = Readonly<Record<string, unknown>>

export interface Act<S extends TSchema> {
  /** Below the scope's prefix; the method is POST. */
  readonly path: string
  /** Names the act in the ledger, such as `sessions.close`. */
  readonly kind: string
  /** One line for OpenAPI. */
  readonly summary: string
  readonly body: S
  /** The message for a body that does not fit; without it the common one. */
  readonly hint?: string
  readonly run: (body: Static<S>, request: FastifyRequest) => Promise<object>
}

export interface ActEntry {
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

/** The part of the audit ledger that acts write to. */
export interface ActLedger {
  /** @throws where the act must not be done, since the ledger cannot be written */
  readonly check: (act: string) => void
  /** Resolves when the entry is on disk, or it is logged that it waits. */
  readonly commit: (entry: ActEntry) => Promise<void>
  /** Writes the entry soon. */
  readonly append: (entry: ActEntry) => void
}

declare module 'fastify' {
  interface FastifyInstance {
    /** Set where config has a ledger. */
    ledger?: ActLedger | undefined
    /** By their paths. */
    acts: Map<string, Act<TSchema>>
  }
}

/** Adds an act to a scope of `addOpsScope`. */
export function addAct<S extends TSchema>(scope: FastifyInstance, act: Act<S>): void {
  const { path, summary, body, hint } = act
  scope.acts.set(path, act as unknown as Act<TSchema>)
  scope.post(
    path,
    {
      schema: { summary, body },
      ...(hint !== undefined && { schemaErrorFormatter: malformed(hint) })
    },
    async request => await inLedger(act, request.body as Static<S>, request)
  )
}

/**
 * Runs an act for the form of a page.
 * @throws GatewayError
 */
export async function runAct(path: string, body: object, request: FastifyRequest): Promise<object> {
  const act = request.server.acts.get(path)
  if (act === undefined) throw malformed('There is no such act.')()
  const { hint = 'The form does not fit. Reload the page.' } = act
  // Fastify's type is a boolean; a validator of ours answers `true` or the errors.
  const fits: unknown = request.validateInput(body, act.body)
  if (fits !== true) throw malformed(hint)()
  return await inLedger(act, body, request)
}

async function inLedger<S extends TSchema>(
  { kind: act, run }: Act<S>,
  body: Static<S>,
  request: FastifyRequest
): Promise<object> {
  const { ledger } = request.server
  if (ledger === undefined) return await run(body, request)
  const common = {
    act,
    operator: request.operator ?? secretOperator,
    address: clientAddress(request),
    requestId: request.id
  }
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
