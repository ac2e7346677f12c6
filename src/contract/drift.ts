/**
 * Observes deviations of responses from their contracts, outside the requests: counts them, and
 * logs when one begins and when it ends.
 */
import type { CompiledSchema, Deviation } from '../json-schema/compile.ts'
import type { Metrics } from '../observability/metrics.ts'

export interface Drift {
  /** Queues a response to be checked when the process is idle; drops it where the queue is full. */
  readonly look: (route: string, schema: CompiledSchema, read: () => unknown) => void
  /** Counts a response that was refused for a deviation. */
  readonly broken: (route: string, schema: CompiledSchema, deviation: Deviation) => void
  /** Of each route whose responses were checked. */
  readonly list: () => RouteDrift[]
}

export interface RouteDrift {
  readonly route: string
  /** Responses that were held against the contract since the start. */
  readonly checked: number
  /** Responses that were refused for a deviation. */
  readonly broken: number
  /** Those that responses have at present. */
  readonly deviations: readonly Deviation[]
}

interface Options {
  readonly log: {
    readonly warn: (fields: object, message: string) => void
    readonly info: (fields: object, message: string) => void
  }
  readonly metrics: Metrics
}

/** Queued responses, each of which is held in memory. */
const maxQueued = 16
/** Paths of a route that are counted apart; further ones count as `other`. */
const maxPaths = 50
/**
 * A deviation ends after so many responses in a row without it: a member may be missing in some
 * only.
 */
const calmAnswers = 10

/** Current deviations, each with the number of responses in a row that did not have it. */
type ActiveDeviations = Map<string, Deviation & { calm: number }>

export function createDrift({ log, metrics }: Options): Drift {
  const answers = countAnswers(metrics)
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

  /** State starts anew with a new schema. */
  const stateOf = (route: string, schema: CompiledSchema) => {
    const state = routes.get(route)
    if (state?.schema === schema) return state
    const created = { schema, paths: new Set<string>(), present: new Map() as ActiveDeviations }
    routes.set(route, created)
    return created
  }

  const checked = (route: string, schema: CompiledSchema, seen: readonly Deviation[]) => {
    const { paths, present } = stateOf(route, schema)
    const current = bounded(seen, paths)
    answers.count(route, current.size === 0 ? 'kept' : 'drifted')
    for (const [key, deviation] of current) {
      deviations.labels(route, deviation.path, deviation.kind).inc()
      if (!present.has(key)) {
        log.warn(
          { event: 'contract.drift', route, ...deviation },
          'answers differ from the contract'
        )
      }
      present.set(key, { ...deviation, calm: 0 })
    }
    for (const [key, deviation] of present) {
      if (current.has(key) || ++deviation.calm < calmAnswers) continue
      present.delete(key)
      log.info(
        { event: 'contract.kept', route, path: deviation.path, kind: deviation.kind },
        'answers are as the contract says again'
      )
    }
  }

  // One in each turn of the event loop, so that requests are served in between.
  const next = () => {
    queue.shift()?.()
    if (queue.length > 0) setImmediate(next)
  }

  return {
    list: () => answers.list(route => routes.get(route)?.present),
    look: (route, schema, read) => {
      if (queue.length >= maxQueued) return answers.count(route, 'dropped')
      queue.push(() => checked(route, schema, deviationsOf(schema, read)))
      if (queue.length === 1) setImmediate(next)
    },
    broken: (route, schema, deviation) => {
      answers.count(route, 'broken')
      const [counted] = bounded([deviation], stateOf(route, schema).paths).values()
      if (counted !== undefined) deviations.labels(route, counted.path, counted.kind).inc()
    }
  }
}

/** Counts answers by route, for as long as the process lives. */
function countAnswers(metrics: Metrics) {
  const answers = metrics.counter(
    'console_gateway_contract_answers_total',
    'Answers that were held against the contract of their route: "kept" it, "drifted" from it, were refused as "broken", or "dropped" unchecked, for want of time.',
    ['route', 'outcome']
  )
  const totals = new Map<string, { checked: number; broken: number }>()
  return {
    count: (route: string, outcome: 'kept' | 'drifted' | 'broken' | 'dropped') => {
      answers.labels(route, outcome).inc()
      const total = totals.get(route) ?? { checked: 0, broken: 0 }
      totals.set(route, total)
      if (outcome !== 'dropped') total.checked++
      if (outcome === 'broken') total.broken++
    },
    list: (presentOf: (route: string) => ActiveDeviations | undefined): RouteDrift[] =>
      Array.from(totals, ([route, total]) => ({
        route,
        ...total,
        deviations: Array.from(presentOf(route)?.values() ?? [], ({ kind, path }) => ({
          kind,
          path
        }))
      }))
  }
}

/** A response that cannot be read deviates as a whole. */
function deviationsOf(schema: CompiledSchema, read: () => unknown): Deviation[] {
  let answer: unknown
  try {
    answer = read()
  } catch {
    return [{ kind: 'invalid', path: '(all)' }]
  }
  return schema.sampledDeviations(answer)
}

/** paths that are counted apart; grows up to its bound */
function bounded(deviations: readonly Deviation[], paths: Set<string>): Map<string, Deviation> {
  return new Map(
    deviations.map(({ kind, path }) => {
      if (paths.size < maxPaths) paths.add(path)
      const place = paths.has(path) ? path : 'other'
      return [`${kind} ${place}`, { kind, path: place }]
    })
  )
}
