/** Checks a route's responses against its contract. */
import { GatewayError } from '../errors/errors.ts'
import { compileContract } from './check.ts'
import type { Drift } from './drift.ts'
import type { JsonSchema } from './schema.ts'

/**
 * Checks a response as the console gets it. In the mode `observe` it may be read later, or not.
 * @throws GatewayError `contract.broken` in the mode `strict`, where the schema refuses it
 */
export type Contract = (read: () => unknown) => void

interface Options {
  readonly route: string
  readonly schema: JsonSchema
  readonly mode: 'observe' | 'strict'
  /** The member that the schema describes; false: it describes the whole response. */
  readonly dataName: string | false
  readonly drift: Pick<Drift, 'of'>
}

export function createContract({ route, schema, mode, dataName, drift }: Options): Contract {
  const compiled = compileContract(schema)
  const observed = drift.of(route, schema)
  const subjectOf = (read: () => unknown) =>
    dataName === false ? read() : (read() as Record<string, unknown>)[dataName]
  return read => {
    if (mode === 'strict') {
      const refusal = compiled.refusal(subjectOf(read))
      if (refusal !== undefined) {
        observed.broken(refusal)
        const cause = new Error(`${refusal.kind}: ${refusal.path}`)
        throw new GatewayError('contract.broken', { cause })
      }
    }
    observed.look(() => compiled.deviations(subjectOf(read)))
  }
}
