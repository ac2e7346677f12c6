/** Checks a route's responses against its contract. */
import type { JsonSchema } from '../json-schema/closed-schema.ts'
import { compileSchema } from '../json-schema/compile.ts'
import { GatewayError } from '../errors.ts'
import type { Drift } from './drift.ts'

/**
 * Checks a response as the console gets it. In the mode `observe` a sample of them is read, later.
 * @throws GatewayError `contract.broken` in the mode `strict`, where the schema refuses it
 */
export type Contract = (read: () => unknown) => void

export interface ContractRules {
  readonly schema: JsonSchema
  readonly mode: 'observe' | 'strict'
  /** The share of responses that is observed, 0 to 1. */
  readonly sample: number
  /** The member that the schema describes; false: it describes the whole response. */
  readonly dataName: string | false
}

interface Options extends ContractRules {
  readonly route: string
  readonly drift: Pick<Drift, 'look' | 'broken'>
}

export function createContract({
  route,
  schema,
  mode,
  sample,
  dataName,
  drift
}: Options): Contract {
  const compiled = compileSchema(schema)
  const subjectOf = (read: () => unknown) =>
    dataName === false ? read() : (read() as Record<string, unknown>)[dataName]
  const every = 1 / sample
  let seen = 0
  let due = 1
  return read => {
    if (mode === 'strict') {
      const refusal = compiled.refusal(subjectOf(read))
      if (refusal !== undefined) {
        drift.broken(route, compiled, refusal)
        throw new GatewayError('contract.broken', {
          cause: new Error(`${refusal.kind}: ${refusal.path}`)
        })
      }
    }
    // The first response, then evenly: every tenth for 0.1.
    if (sample === 0 || ++seen < due) return
    due += every
    drift.look(route, compiled, () => subjectOf(read))
  }
}
