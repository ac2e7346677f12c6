/** The operations of a shape, compiled into one function when the app is built. */
import type { RoutesConfig } from '../config/schema/routes.ts'
import { flatten, type openDialects, type ShapeStep } from '../config/schema/shapes.ts'
import { GatewayError } from '../errors/errors.ts'
import { isRecord, type Json, put, textOf, valueAt } from '../json/values.ts'
import type { Success } from './envelope.ts'
import { compileMembers, isMemberStep } from './members.ts'
import { callShape, type Modules, type Operation, type ShapeUse } from './module.ts'
import { asList, echo, paging } from './paging.ts'

export type Shape = ReturnType<typeof compileShape>

const noRequest: ShapeUse = { target: '', route: '' }

export interface ShapeContext {
  readonly wrap: Success
  /** Called with a path that `unwrap` does not find; the shape goes on with null. */
  readonly onMissing?: (path: string) => void
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
     * Never throws, never changes its input: a value that does not fit an operation passes.
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

function sequence(steps: readonly ShapeStep[], context: ShapeContext): Operation {
  const operations: Operation[] = []
  const rest = [...steps]
  while (rest.length > 0) {
    const end = rest.findIndex(step => !isMemberStep(step))
    const members = rest.splice(0, end === -1 ? rest.length : end)
    if (members.length > 0) operations.push(compileMembers(members))
    const next = rest.shift()
    if (next !== undefined) operations.push(compileStep(next, context))
  }
  const [only, ...more] = operations
  if (only !== undefined && more.length === 0) return only
  return (value, use) => operations.reduce((current, apply) => apply(current, use), value)
}

function compileStep(step: ShapeStep, context: ShapeContext): Operation {
  const { wrap } = context
  if (step.open !== undefined) return value => valueAt(value, ['data'])
  if (step.status !== undefined) return value => value
  if (step.unwrap !== undefined) return unwrap(step.unwrap.split('.'), context.onMissing)
  if (step.move !== undefined) {
    const pairs = Object.entries(step.move)
    return move(pairs.map(([from, to]) => ({ from: from.split('.'), to: to.split('.') })))
  }
  if (step.lift !== undefined) return lift(step.lift.split('.'))
  if (step.nest !== undefined) return nest(step.nest)
  if (step.echo !== undefined) return echo(step.echo, context.paging)
  if (step.each !== undefined) return each(sequence(step.each, context))
  if (step.at !== undefined) {
    const path = step.at.path.split('.')
    const operation = sequence(step.at.operations, context)
    return (value, use) => replaceAt(value, path, current => operation(current, use))
  }
  if (step.paging !== undefined) {
    const rows = step.paging.each && each(sequence(step.paging.each, context))
    return paging(step.paging, rows, wrap)
  }
  if (step.wrap === 'list') return value => wrap(asList(value), { total: asList(value).length })
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

/** The value itself where the path is absent. */
function replaceAt(value: Json, path: readonly string[], change: (current: Json) => Json): Json {
  const [name, ...rest] = path
  if (name === undefined) return change(value)
  if (Array.isArray(value) && name !== 'length' && Object.hasOwn(value, name)) {
    return value.with(Number(name), replaceAt(value[Number(name)], rest, change))
  }
  if (!isRecord(value) || !Object.hasOwn(value, name)) return value
  return { ...value, [name]: replaceAt(value[name], rest, change) }
}

function without(value: Json, path: readonly string[]): Json {
  const name = path.at(-1) as string
  return replaceAt(value, path.slice(0, -1), holder => {
    if (!isRecord(holder)) return holder
    const { [name]: _, ...result } = holder
    return result
  })
}

/** A copy with a member at the path; undefined where a value along it is not an object. */
export function withAt(value: Json, [name, ...rest]: readonly string[], member: Json): Json {
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
 * All at once, so that two members can swap places. The value of an inner path leaves that of an
 * outer one, and is put after it. Nothing moves where the member, or a place for it, is absent.
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
    const { [name]: inner, ...result } = holder
    if (!isRecord(inner)) return holder
    for (const member of Object.keys(inner)) {
      if (!Object.hasOwn(result, member)) put(result, member, inner[member])
    }
    return result
  }
  return value => replaceAt(value, path.slice(0, -1), liftIn)
}

function nest({ as, count, countHeader }: NonNullable<ShapeStep['nest']>): Operation {
  return (value, { headers }) => {
    if (count === undefined) return { [as]: value }
    const list = asList(value)
    return { [as]: list, [count]: totalIn(headers?.[countHeader ?? '']) ?? list.length }
  }
}

/** `319`, or the end of a `Content-Range` such as `items 0-24/319`. */
function totalIn(header: string | string[] | undefined): number | undefined {
  const digits = /^(?:[^/]{1,64}\/)?(\d{1,15})$/.exec(String(header))?.[1]
  return digits === undefined ? undefined : Number(digits)
}

/** Each with the paths of its message; its failures are 502. */
const dialects = {
  'ant-design-pro': { path: 'success', ok: [true], messages: ['errorMessage', 'message'] },
  'base-response': { path: 'ok', ok: [true], messages: ['message'] },
  'code-data': { path: 'code', ok: [0, 200, 20000], messages: ['message', 'msg'] }
} satisfies Record<(typeof openDialects)[number], object>

const usualMessages = ['message', 'msg', 'errorMessage']

/** Members that hold an error number in dialects whose success is a flag. */
const numbers = ['code', 'status', 'errorCode']

function compileStatus({ open, status }: ShapeStep): (body: Json) => GatewayError | undefined {
  const { statuses = {}, otherwise = 502, message: ofMessage } = status ?? {}
  const { path, ok } = open === undefined ? (status as NonNullable<typeof status>) : dialects[open]
  const usual = open === undefined ? usualMessages : dialects[open].messages
  const messages = ofMessage === undefined ? usual : [ofMessage]
  const steps = path.split('.')
  const good = new Set(ok.map(String))
  const named = new Map(Object.entries(statuses))
  const paths = messages.map(message => message.split('.'))
  return body => {
    const value = textOf(valueAt(body, steps))
    if (value !== undefined && good.has(value)) return undefined
    const candidates = [value, ...numbers.map(name => textOf(valueAt(body, [name])))]
    const number = candidates.find(text => isErrorNumber(text) && !good.has(text))
    const [listed] = [value, number].flatMap(text =>
      text === undefined ? [] : (named.get(text) ?? [])
    )
    const message = paths
      .map(messagePath => valueAt(body, messagePath))
      .find(text => typeof text === 'string' && text !== '')
    return new GatewayError('upstream.error', {
      status: listed ?? (/^[45]\d\d$/.test(number ?? '') ? Number(number) : otherwise),
      ...(typeof message === 'string' && { message: message.slice(0, 500) }),
      // Consoles show the back-end's number.
      ...(number !== undefined && { extra: { code: Number(number) } })
    })
  }
}

/** Consoles would show an error with 0, 200 to 299 or 20000 as a success; back-ends send those. */
function isErrorNumber(text: string | undefined): text is string {
  if (text === undefined || !/^\d{1,9}$/.test(text)) return false
  const number = Number(text)
  return number !== 0 && number !== 20_000 && (number < 200 || number >= 300)
}
