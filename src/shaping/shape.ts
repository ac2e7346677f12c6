/**
 * Response shaping: the operations of a shape, compiled into one function when the app is built.
 */
import { flatten } from '../config/schema/shape-steps.ts'
import type { RoutesConfig } from '../config/schema/routes.ts'
import type { ShapeStep } from '../config/schema/shapes.ts'
import { isRecord, type Json, type JsonRecord, put, valueAt } from '../json/values.ts'
import { compileMembers, isMemberStep } from './members.ts'
import { callShape, type Modules, type Operation, type ShapeUse, type Wrap } from './module.ts'
import { asList, echo, paging } from './paging.ts'
import { compileStatus } from './status.ts'

export type Shape = ReturnType<typeof compileShape>

const noRequest: ShapeUse = { target: '', route: '' }

export interface ShapeContext {
  readonly wrap: Wrap
  /** Called with a path that `unwrap` does not find; the shape goes on with null. */
  readonly onMissing?: (path: string) => void
  /** The shapes that `use` names. */
  readonly shapes: Readonly<Record<string, readonly ShapeStep[]>>
  /** How the console sends page number and size, for `echo`. */
  readonly paging?: RoutesConfig['paging']
  /** The own code that `module` names; without it those operations do nothing. */
  readonly modules?: Modules
}

export function compileShape(configured: readonly ShapeStep[], context: ShapeContext) {
  const steps = flatten(configured, context.shapes)
  const [first] = steps
  const hasStatus = first?.open !== undefined || first?.status !== undefined
  const apply = stages(steps, context)
  return {
    /** The error that the body reports; undefined for a success. */
    refusal: hasStatus ? compileStatus(first) : () => undefined,
    /**
     * Never throws and never changes its input: a value that does not fit an operation passes as it
     * is.
     * @returns a promise where the shape has own code, which may fail: GatewayError `shape.module`
     */
    apply: (body: Json, use = noRequest): Json => apply(body, use)
  }
}

/** Own code may be asynchronous: it stands between operations that are not. */
function stages(
  steps: readonly ShapeStep[],
  context: ShapeContext
): (value: Json, use: ShapeUse) => Json {
  const place = steps.findIndex(({ module }) => module !== undefined)
  if (place === -1) return sequence(steps, context)
  const before = sequence(steps.slice(0, place), context)
  const code = context.modules?.get(steps[place]?.module ?? '')
  const after = stages(steps.slice(place + 1), context)
  return async (body, use) => {
    const value = before(body, use)
    return await after(code === undefined ? value : await callShape(code, value, use), use)
  }
}

/** Whether the result stands under `data` of the success envelope. */
export function isWrapped(steps: readonly ShapeStep[], shapes: ShapeContext['shapes']): boolean {
  const last = flatten(steps, shapes).at(-1)
  return (last?.wrap !== undefined && last.wrap !== 'flat') || last?.paging !== undefined
}

type StepContext = Pick<ShapeContext, 'wrap' | 'onMissing' | 'paging'>

function sequence(steps: readonly ShapeStep[], context: StepContext): Operation {
  const operations: Operation[] = []
  for (let index = 0; index < steps.length; index++) {
    const step = steps[index] as ShapeStep
    if (!isMemberStep(step)) {
      operations.push(compileStep(step, context))
      continue
    }
    let end = index + 1
    while (end < steps.length && isMemberStep(steps[end] as ShapeStep)) end++
    operations.push(compileMembers(steps.slice(index, end)))
    index = end - 1
  }
  const [only, ...more] = operations
  if (only === undefined) return value => value
  if (more.length === 0) return only
  return (value, use) => {
    let current = value
    for (const operation of operations) current = operation(current, use)
    return current
  }
}

function compileStep(step: ShapeStep, context: StepContext): Operation {
  const { wrap } = context
  if (step.open !== undefined) return value => valueAt(value, ['data'])
  if (step.status !== undefined) return value => value
  if (step.unwrap !== undefined) {
    return unwrap(step.unwrap.split('.'), context.onMissing)
  }
  if (step.move !== undefined) {
    return move(
      Object.entries(step.move).map(([from, to]) => ({ from: from.split('.'), to: to.split('.') }))
    )
  }
  if (step.lift !== undefined) return lift(step.lift.split('.'))
  if (step.nest !== undefined) return nest(step.nest)
  if (step.echo !== undefined) return echo(step.echo, context.paging)
  if (step.each !== undefined) return each(sequence(step.each, context))
  if (step.at !== undefined) {
    return at(step.at.path.split('.'), sequence(step.at.operations, context))
  }
  if (step.paging !== undefined) {
    return paging(
      step.paging,
      step.paging.each === undefined ? undefined : each(sequence(step.paging.each, context)),
      wrap
    )
  }
  if (step.wrap === 'list') {
    return value => {
      const list = asList(value)
      return wrap(list, { total: list.length })
    }
  }
  if (step.wrap === 'flat') return value => wrap(value, undefined, 'flat')
  return value => wrap(value)
}

function unwrap(path: readonly string[], onMissing?: (path: string) => void): Operation {
  const last = path.at(-1) as string
  return value => {
    const member = valueAt(value, path)
    if (member !== null || value === null || onMissing === undefined) return member
    // A null of the back-end is data; a path that is absent is mostly a mistake of the shape.
    const holder = path.length === 1 ? value : valueAt(value, path.slice(0, -1))
    if (typeof holder !== 'object' || holder === null || !Object.hasOwn(holder, last)) {
      onMissing(path.join('.'))
    }
    return null
  }
}

/** A single object may be a list of one from a converter: its members must not pass unfiltered. */
function each(item: Operation): Operation {
  return (value, use) => {
    if (Array.isArray(value)) return value.map(one => item(one, use))
    return isRecord(value) && Object.keys(value).length > 0 ? item(value, use) : value
  }
}

/**
 * A copy of the objects along the path, with another value at its end; the value itself where the
 * path is absent.
 */
function replaceAt(value: Json, path: readonly string[], change: (current: Json) => Json): Json {
  const [name, ...rest] = path
  if (name === undefined) return change(value)
  if (Array.isArray(value) && name !== 'length' && Object.hasOwn(value, name)) {
    return value.with(Number(name), replaceAt(value[Number(name)], rest, change))
  }
  if (!isRecord(value) || !Object.hasOwn(value, name)) return value
  return { ...value, [name]: replaceAt(value[name], rest, change) }
}

function at(path: readonly string[], operation: Operation): Operation {
  return (value, use) => replaceAt(value, path, current => operation(current, use))
}

function without(value: Json, path: readonly string[]): Json {
  const name = path.at(-1) as string
  return replaceAt(value, path.slice(0, -1), holder => {
    if (!isRecord(holder)) return holder
    const result = { ...holder }
    delete result[name]
    return result
  })
}

/** A copy with a member at the path; undefined where a value along it is not an object. */
function withAt(value: Json, [name, ...rest]: readonly string[], member: Json): Json {
  if (name === undefined) return member
  if (!isRecord(value)) return undefined
  const inner = withAt(Object.hasOwn(value, name) ? (value[name] ?? {}) : {}, rest, member)
  return inner === undefined ? undefined : { ...value, [name]: inner }
}

interface Move {
  readonly from: readonly string[]
  readonly to: readonly string[]
}

/**
 * Moves all at once, so that two members can swap places. The value of an inner path is no longer
 * in the value of an outer one, and is put after it. Moves nothing where the member is absent, or
 * where the new path has no place for it.
 */
function move(moves: readonly Move[]): Operation {
  const innerFirst = moves.toSorted((a, b) => b.from.length - a.from.length)
  const outerFirst = moves.toSorted((a, b) => a.to.length - b.to.length)
  return (value, use) => {
    const members = new Map<Move, Json>()
    let rest = value
    for (const pair of innerFirst) {
      const holder = valueAt(rest, pair.from.slice(0, -1))
      const name = pair.from.at(-1) as string
      if (!isRecord(holder) || !Object.hasOwn(holder, name)) continue
      members.set(pair, holder[name])
      rest = without(rest, pair.from)
    }
    for (const pair of outerFirst) {
      if (!members.has(pair)) continue
      const placed = withAt(rest, pair.to, members.get(pair))
      if (placed === undefined) return move(moves.filter(other => other !== pair))(value, use)
      rest = placed
    }
    return rest
  }
}

/** Own members of the holder win: the `id` of a JSON:API resource is no attribute's. */
function lift(path: readonly string[]): Operation {
  const name = path.at(-1) as string
  const liftIn = (holder: Json) => {
    if (!isRecord(holder) || !Object.hasOwn(holder, name)) return holder
    const inner = holder[name]
    if (!isRecord(inner)) return holder
    const result = { ...holder }
    delete result[name]
    for (const member of Object.keys(inner)) {
      if (!Object.hasOwn(result, member)) put(result, member, inner[member])
    }
    return result
  }
  return value => replaceAt(value, path.slice(0, -1), liftIn)
}

function nest({ as, count }: NonNullable<ShapeStep['nest']>): Operation {
  return value => {
    const result: JsonRecord = {}
    const nested = count === undefined ? value : asList(value)
    put(result, as, nested)
    if (count !== undefined) put(result, count, (nested as readonly Json[]).length)
    return result
  }
}
