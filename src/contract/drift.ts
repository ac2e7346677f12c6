/**
 * Observes deviations of responses from their contracts, outside the requests: counts them, and
 * logs when one begins and when it ends.
 */
import type { Metrics } from '../observability/metrics.ts'
import { steadyNow } from '../steady-clock.ts'
import type { Deviation } from './check.ts'
import type { JsonSchema } from './schema.ts'

export interface Drift {
  /** Deviations of a route begin anew with another schema; a reload that leaves it goes on. */
  readonly of: (route: string, schema: JsonSchema) => ObservedRoute
  /** Of each route whose responses were checked. */
  readonly list: () => RouteDrift[]
}

interface ObservedRoute {
  /**
   * Looks at a response when it has been sent, at most at one a second.
   * @param deviations may throw for one that cannot be read
   */
  readonly look: (deviations: () => readonly Deviation[]) => void
  /** Counts a response that was refused for a deviation. */
  readonly broken: (deviation: Deviation) => void
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

/** Between two looks; after one that took long, a hundred times as long. */
const everyMs = 1000
/** Paths of a route that are counted apart; further ones count as `other`. */
const maxPaths = 50
/**
 * A deviation ends after so many responses in a row without it: a member may be missing in some
 * only.
 */
const calmAnswers = 10

/** What is known of the responses of a route, which generations share. */
interface State {
  /** Of its schema. */
  readonly digest: string
  readonly paths: Set<string>
  /** Each with the number of responses in a row that did not have it. */
  readonly present: Map<string, Deviation & { calm: number }>
  /** As of `steadyNow()`. */
  lookAt: number
}

interface Total {
  checked: number
  broken: number
}

export function createDrift({ log, metrics }: Options): Drift {
  const answers = metrics.counter(
    'console_gateway_contract_answers_total',
    'Answers that were held against the contract of their route: "kept" it, "drifted" from it, ' +
      'or were refused as "broken".',
    ['route', 'outcome']
  )
  const deviations = metrics.counter(
    'console_gateway_contract_deviations_total',
    'Answers that differed from the contract of their route, by place and kind: "missing", ' +
      '"retyped", "invalid" or "new".',
    ['route', 'path', 'kind']
  )
  const states = new Map<string, State>()
  /** For as long as the process lives. */
  const totals = new Map<string, Total>()

  function count(route: string, outcome: 'kept' | 'drifted' | 'broken'): void {
    answers.labels(route, outcome).inc()
    const total = totals.get(route) ?? { checked: 0, broken: 0 }
    totals.set(route, total)
    total.checked++
    if (outcome === 'broken') total.broken++
  }

  function note(route: string, { paths, present }: State, seen: readonly Deviation[]): void {
    const current = bounded(seen, paths)
    count(route, current.size === 0 ? 'kept' : 'drifted')
    for (const [key, deviation] of current) {
      deviations.labels(route, deviation.path, deviation.kind).inc()
      if (!present.has(key)) {
        const fields = { event: 'contract.drift', route, ...deviation }
        log.warn(fields, 'answers differ from the contract')
      }
      present.set(key, { ...deviation, calm: 0 })
    }
    for (const [key, deviation] of present) {
      if (current.has(key) || ++deviation.calm < calmAnswers) continue
      present.delete(key)
      const { path, kind } = deviation
      const fields = { event: 'contract.kept', route, path, kind }
      log.info(fields, 'answers are as the contract says again')
    }
  }

  return {
    of: (route, schema) => {
      const digest = JSON.stringify(schema)
      let state = states.get(route)
      if (state?.digest !== digest) {
        state = { digest, paths: new Set(), present: new Map(), lookAt: 0 }
        states.set(route, state)
      }
      const of = state
      return {
        look: read => {
          if (steadyNow() < of.lookAt) return
          of.lookAt = steadyNow() + everyMs
          setImmediate(() => {
            const startedAt = performance.now()
            note(route, of, readable(read))
            const ms = performance.now() - startedAt
            of.lookAt = Math.max(of.lookAt, steadyNow() + 100 * ms)
          })
        },
        broken: deviation => {
          count(route, 'broken')
          for (const { path, kind } of bounded([deviation], of.paths).values()) {
            deviations.labels(route, path, kind).inc()
          }
        }
      }
    },
    list: () => Array.from(totals, ([route, total]) => describe(route, total, states.get(route)))
  }
}

function describe(route: string, total: Total, state: State | undefined): RouteDrift {
  const present = [...(state?.present.values() ?? [])]
  return { route, ...total, deviations: present.map(({ kind, path }) => ({ kind, path })) }
}

/** A response that cannot be read deviates as a whole. */
function readable(read: () => readonly Deviation[]): readonly Deviation[] {
  try {
    return read()
  } catch {
    return [{ kind: 'invalid', path: '(all)' }]
  }
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
