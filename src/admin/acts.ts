/**
 * Acts of operators: every route that changes anything is added here, so that each has a preview
 * with its effect in numbers, and stands in the audit ledger before it is answered.
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
  /** The effect in numbers. Changes nothing. */
  readonly preview: (body: Static<S>, request: FastifyRequest) => Promise<object>
  readonly run: (body: Static<S>, request: FastifyRequest) => Promise<object>
  /** The way to take the act back, for people; undefined where there is none. */
  readonly undo: string | undefined
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
  }
}

/** Adds an act to a scope of `addOpsScope`. */
export function addAct<S extends TSchema>(scope: FastifyInstance, act: Act<S>): void {
  const { path, kind, summary, body, hint, undo } = act
  scope.post(
    path,
    {
      schema: {
        summary,
        description:
          'With `"preview": true` in the body it answers its effect and changes nothing.',
        body
      },
      ...(hint !== undefined && { schemaErrorFormatter: malformed(hint) })
    },
    async request => {
      const content = request.body as Static<S>
      if (isPreview(request)) {
        return { act: kind, effect: await act.preview(content, request), undo: undo ?? null }
      }
      return await inLedger(scope.ledger, kind, request, () => act.run(content, request))
    }
  )
}

/** @throws GatewayError: a `preview` that is no flag must never run the act */
function isPreview({ body }: FastifyRequest): boolean {
  const { preview = false } = body as { readonly preview?: unknown }
  if (typeof preview === 'boolean') return preview
  throw malformed('"preview" is true or false.')()
}

async function inLedger(
  ledger: ActLedger | undefined,
  act: string,
  request: FastifyRequest,
  run: () => Promise<object>
): Promise<object> {
  if (ledger === undefined) return await run()
  const common = {
    act,
    operator: request.operator ?? secretOperator,
    address: clientAddress(request),
    requestId: request.id
  }
  const body = request.body as Fields
  try {
    ledger.check(act)
  } catch (cause) {
    ledger.append({ event: 'act.failed', ...common, details: body, code: 'ops.ledger' })
    throw new GatewayError('ops.ledger', { cause })
  }
  try {
    const result = await run()
    await ledger.commit({ event: 'act.done', ...common, details: { ...body, ...result } })
    return result
  } catch (error) {
    const { code } = toGatewayError(error)
    await ledger.commit({ event: 'act.failed', ...common, details: body, code })
    throw error
  }
}
