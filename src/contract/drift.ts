/** Watches how answers differ from their contracts: off the requests' way, counted, and logged once when something begins and once when it is over. */
import type { CompiledSchema, Deviation } from '../json-schema/compile.ts'
import type { Metrics } from '../observability/metrics.ts'

export interface Drift {
  /** Takes an answer that is looked at later, when nothing else is to do; dropped where too many wait already. */
  readonly look: (route: string, schema: CompiledSchema, read: () => unknown) => void
  /** An answer that was refused for this. */
  readonly broken: (route: string, schema: CompiledSchema, deviation: Deviation) => void
}

interface Options {
  readonly log: {
    readonly warn: (fields: object, message: string) => void
    readonly info: (fields: object, message: string) => void
  }
  readonly metrics: Metrics
}

/** Answers that may wait: each is held in memory. */
const maxQueued = 16
/** Places of a route that are told apart; what comes after them is `other`. */
const maxPaths = 50
/** A place that is as it should be in so many answers in a row is so again: a member may be missing in some answers only. */
const calmAnswers = 10

/** What differs at present, each with the number of answers since in which it did not. */
type ActiveDeviations = Map<string, Deviation & { calm: number }>

export function createDrift({ log, metrics }: Options): Drift {
  const answers = metrics.counter(
    'console_gateway_contract_answers_total',
    'Answers that were held against the contract of their route: "kept" it, "drifted" from it, were refused as "broken", or "dropped" unchecked, for want of time.',
    ['route', 'outcome']
  )
  const deviations = metrics.counter(
    'console_gateway_contract_deviations_total',
    'Answers that differed from the contract of their route, by place and kind: "missing", "retyped", "invalid" or "new".',
    ['route', 'path', 'kind']
  )
  const queue: Array<() => void> = []
  const routes = new Map<
    string,
    {
      readonly schema: CompiledSchema
      readonly paths: Set<string>
      readonly present: ActiveDeviations
    }
  >()

  /** A new schema begins anew. */
  const stateOf = (route: string, schema: CompiledSchema) => {
    const known = routes.get(route)
    if (known?.schema === schema) return known
    const made = { schema, paths: new Set<string>(), present: new Map() as ActiveDeviations }
    routes.set(route, made)
    return made
  }

  const check = (route: string, schema: CompiledSchema, read: () => unknown) => {
    const { paths, present } = stateOf(route, schema)
    const found = bounded(deviationsOf(schema, read), paths)
    answers.with(route, found.size === 0 ? 'kept' : 'drifted').inc()
    for (const [key, deviation] of found) {
      deviations.with(route, deviation.path, deviation.kind).inc()
      if (!present.has(key)) {
        log.warn(
          { event: 'contract.drift', route, ...deviation },
          'answers differ from the contract'
        )
      }
      present.set(key, { ...deviation, calm: 0 })
    }
    for (const [key, known] of present) {
      if (found.has(key) || ++known.calm < calmAnswers) continue
      present.delete(key)
      log.info(
        { event: 'contract.kept', route, path: known.path, kind: known.kind },
        'answers are as the contract says again'
      )
    }
  }

  // One in each turn of the event loop, so that requests come between.
  const next = () => {
    queue.shift()?.()
    if (queue.length > 0) setImmediate(next)
  }

  return {
    look: (route, schema, read) => {
      if (queue.length >= maxQueued) return answers.with(route, 'dropped').inc()
      queue.push(() => check(route, schema, read))
      if (queue.length === 1) setImmediate(next)
    },
    broken: (route, schema, deviation) => {
      answers.with(route, 'broken').inc()
      const [told] = bounded([deviation], stateOf(route, schema).paths).values()
      if (told !== undefined) deviations.with(route, told.path, told.kind).inc()
    }
  }
}

/** What cannot even be read differs as a whole. */
function deviationsOf(schema: CompiledSchema, read: () => unknown): Deviation[] {
  let answer: unknown
  try {
    answer = read()
  } catch {
    return [{ kind: 'invalid', path: '(all)' }]
  }
  return schema.deviations(answer)
}

/** @param paths those that are told apart; grows up to its bound */
function bounded(found: readonly Deviation[], paths: Set<string>): Map<string, Deviation> {
  return new Map(
    found.map(({ kind, path }) => {
      if (paths.size < maxPaths) paths.add(path)
      const told = paths.has(path) ? path : 'other'
      return [`${kind} ${told}`, { kind, path: told }]
    })
  )
}
