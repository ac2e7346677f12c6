/** Refuses responses that break a strict contract, and tells when a deviation begins and ends. */
import type { Logger } from 'pino'
import { GatewayError } from '../errors/errors.ts'
import type { Count, Metrics } from '../observability/metrics.ts'
import { steadyNow } from '../steady-clock.ts'
import { compileContract, type Deviation, type JsonSchema } from './schema.ts'

/** @throws GatewayError `contract.broken` if `strict`; in `observe` it may be read later */
export type Contract = (read: () => unknown) => void

interface ContractOptions {
  readonly route: string
  readonly schema: JsonSchema
  readonly mode: 'observe' | 'strict'
  /** The member that the schema describes; false: it describes the whole response. */
  readonly dataName: string | false
}

/** Between two looks; after one that took long, a hundred times as long. */
const everyMs = 1000
/** Paths of a route that are counted apart; further ones count as `other`. */
const maxPaths = 50
/** A deviation ends after so many responses without it: a member may be missing in some only. */
const calmAnswers = 10
/** Of a response that cannot be read, or is nested too deeply. */
const whole: Deviation = { kind: 'invalid', path: '(all)' }

type State = ReturnType<typeof newState>

/** What is known of the responses of a route, which generations share. */
function newState(route: string, schema: JsonSchema, schemaText: string) {
  return {
    ...compileContract(schema),
    route,
    schemaText,
    paths: new Set<string>(),
    /** Each with the number of responses in a row that did not have it. */
    present: new Map<string, { readonly deviation: Deviation; calm: number }>(),
    lookAt: 0
  }
}

export class Drift {
  readonly #log: Pick<Logger, 'info' | 'warn'>
  readonly #countAnswer: Count
  readonly #countDeviation: Count
  readonly #states = new Map<string, State>()

  constructor({ log, metrics }: { log: Pick<Logger, 'info' | 'warn'>; metrics: Metrics }) {
    this.#log = log
    this.#countAnswer = metrics.counter('console_gateway_contract_answers_total')
    this.#countDeviation = metrics.counter('console_gateway_contract_deviations_total')
  }

  contract({ route, schema, mode, dataName }: ContractOptions): Contract {
    const state = this.#stateOf(route, schema)
    const subjectOf = (read: () => unknown) =>
      dataName === false ? read() : (read() as Record<string, unknown>)[dataName]
    return read => {
      if (mode === 'strict') {
        const refusal = attempt(() => state.refusal(subjectOf(read)), whole)
        if (refusal !== undefined) {
          this.#count(state, 'broken', [refusal])
          const cause = new Error(`${refusal.kind}: ${refusal.path}`)
          throw new GatewayError('contract.broken', { cause })
        }
      }
      if (steadyNow() < state.lookAt) return
      // None until this one is done.
      state.lookAt = Infinity
      setImmediate(() => {
        const startedAt = performance.now()
        const found = attempt(() => state.deviations(subjectOf(read)), [whole])
        this.#note(state, found)
        const ms = performance.now() - startedAt
        state.lookAt = steadyNow() + Math.max(everyMs, 100 * ms)
      })
    }
  }

  /** Deviations begin anew with another schema; a reload that leaves it goes on. */
  #stateOf(route: string, schema: JsonSchema): State {
    const schemaText = JSON.stringify(schema)
    const known = this.#states.get(route)
    if (known?.schemaText === schemaText) return known
    const state = newState(route, schema, schemaText)
    this.#states.set(route, state)
    return state
  }

  #note(state: State, found: readonly Deviation[]): void {
    const { route, present } = state
    const current = this.#count(state, found.length === 0 ? 'kept' : 'drifted', found)
    for (const [key, deviation] of current) {
      if (!present.has(key)) {
        const fields = { event: 'contract.drift', route, ...deviation }
        this.#log.warn(fields, 'answers differ from the contract')
      }
      present.set(key, { deviation, calm: 0 })
    }
    for (const [key, each] of present) {
      if (current.has(key) || ++each.calm < calmAnswers) continue
      present.delete(key)
      const fields = { event: 'contract.kept', route, ...each.deviation }
      this.#log.info(fields, 'answers are as the contract says again')
    }
  }

  #count(state: State, outcome: string, found: readonly Deviation[]): Map<string, Deviation> {
    const { route, paths } = state
    this.#countAnswer(route, outcome)
    const counted = new Map<string, Deviation>()
    for (const { kind, path } of found) {
      if (paths.size < maxPaths) paths.add(path)
      const place = paths.has(path) ? path : 'other'
      counted.set(`${kind} ${place}`, { kind, path: place })
    }
    for (const { kind, path } of counted.values()) this.#countDeviation(route, path, kind)
    return counted
  }
}

function attempt<Result>(check: () => Result, otherwise: Result): Result {
  try {
    return check()
  } catch {
    return otherwise
  }
}
