/**
 * JSONata with numbers that no double holds: they are passed on and compared digit by digit, and
 * arithmetic on them fails, since it would round. They are objects to JSONata, so that its type
 * checks refuse arithmetic. Functions of this module replace what compares or sorts them, looks
 * for members in them, or makes them of texts.
 */
import type { Expression } from 'jsonata'
import { orderKey } from './decimal.ts'
import { losesDigits, parseKeepingDigits } from './digits.ts'
import { isRawNumber, type Json, rawNumber } from './values.ts'

type Node = Record<string, unknown>

const comparisons: Readonly<Record<string, string>> = {
  '=': '__equal',
  '!=': '__unequal',
  'in': '__in',
  '<': '__less',
  '<=': '__lessOrEqual',
  '>': '__greater',
  '>=': '__greaterOrEqual'
}

const functions: Readonly<Record<string, (...operands: any[]) => Json>> = {
  __equal: (left, right) => isGiven(left, right) && isEqual(left, right),
  __unequal: (left, right) => isGiven(left, right) && !isEqual(left, right),
  __in: (item, list) => isGiven(item, list) && [list].flat().some(each => isSame(item, each)),
  __less: (left, right) => ordered(left, right, (a, b) => a < b),
  __lessOrEqual: (left, right) => ordered(left, right, (a, b) => a <= b),
  __greater: (left, right) => ordered(left, right, (a, b) => a > b),
  __greaterOrEqual: (left, right) => ordered(left, right, (a, b) => a >= b),
  __orderKey: comparable,
  __orderKind: orderKind,
  __members: members,
  __descendants: value => (value === undefined ? undefined : sequence(descendants(value))),
  sort: sorted,
  type: typeName,
  clone: value => parseKeepingDigits(JSON.stringify(value))
}

/** Makes a compiled expression exact, and slower. */
export function makeExact(expression: Expression): Expression {
  rewrite(expression.ast(), new Set())
  for (const [name, run] of Object.entries(functions)) expression.registerFunction(name, run)
  expression.registerFunction('keys', keysOf, '<x-:a<s>>')
  expression.registerFunction('number', exactNumberOf, '<(nsbo)-:n>')
  return expression
}

/**
 * Makes `$number` of a text with a number that no double holds an error
 * ({@link isAboutLongNumber}): the expression has to be exact.
 */
export function refuseLongNumbers(expression: Expression): Expression {
  const refuse = (digits: string) => {
    throw refusal('D3030', rawNumber(digits))
  }
  expression.registerFunction('number', value => numberOf(value, refuse), '<(nsb)-:n>')
  return expression
}

/**
 * Whether JSONata refused a number because no double holds it.
 * @param error what JSONata threw
 */
export function isAboutLongNumber(error: unknown): boolean {
  const { code, value, value2 } = (error ?? {}) as Node
  // An object's key has to be a string: JSONata refuses short numbers there too.
  if (typeof code !== 'string' || code === 'T1003') return false
  return [value, value2].flat().some(isRawNumber)
}

/** `$` */
const context: Node = { type: 'variable', value: '' }

/** In place, since JSONata evaluates this tree. */
function rewrite(node: unknown, seen: Set<unknown>): void {
  if (typeof node !== 'object' || node === null || seen.has(node)) return
  seen.add(node)
  for (const member of Object.values(node)) rewrite(member, seen)
  if (!Array.isArray(node)) replaceOperator(node as Node)
}

function replaceOperator(node: Node): void {
  const { type, value, terms } = node
  const comparison = type === 'binary' ? comparisons[String(value)] : undefined
  if (comparison !== undefined) {
    Object.assign(node, call(comparison, [node['lhs'], node['rhs']]))
  } else if (type === 'wildcard') {
    Object.assign(node, call('__members', [context]))
  } else if (type === 'descendant') {
    Object.assign(node, call('__descendants', [context]))
  } else if (type === 'sort') {
    // Keys are texts: the kind before each lets JSONata refuse to sort numbers among texts.
    node['terms'] = (terms as Node[]).flatMap(term =>
      ['__orderKind', '__orderKey'].map(name => ({
        ...term,
        expression: call(name, [term['expression']])
      }))
    )
  }
}

function call(name: string, operands: unknown[]): Node {
  return {
    type: 'function',
    value: '(',
    procedure: { type: 'variable', value: name },
    arguments: operands
  }
}

function isGiven(left: Json, right: Json): boolean {
  return left !== undefined && right !== undefined
}

/** A number that no double holds is compared as its text. */
const textOrSelf = (value: Json): Json => (isRawNumber(value) ? value.rawJSON : value)

function isSame(left: Json, right: Json): boolean {
  return textOrSelf(left) === textOrSelf(right)
}

function isEqual(left: Json, right: Json): boolean {
  if (isSame(left, right)) return true
  if (!isHolder(left) || !isHolder(right)) return false
  if (Array.isArray(left) !== Array.isArray(right)) return false
  const names = Object.keys(left)
  return (
    names.length === Object.keys(right).length &&
    names.every(name => Object.hasOwn(right, name) && isEqual(left[name], right[name]))
  )
}

function isHolder(value: Json): value is Record<string, Json> {
  return typeof value === 'object' && value !== null && !isRawNumber(value)
}

type Fits = (left: string, right: string) => boolean

/**
 * Compares as JSONata does: undefined where one side is undefined, an error for sides of different
 * types.
 */
function ordered(left: Json, right: Json, fits: Fits): boolean | undefined {
  for (const value of [left, right]) {
    if (value !== undefined && kindOf(value) === 'other') throw refusal('T2010', value)
  }
  if (left === undefined || right === undefined) return undefined
  if (kindOf(left) !== kindOf(right)) throw refusal('T2009')
  return fits(comparable(left) as string, comparable(right) as string)
}

function kindOf(value: Json): 'number' | 'string' | 'other' {
  if (isRawNumber(value) || (typeof value === 'number' && Number.isFinite(value))) return 'number'
  return typeof value === 'string' ? 'string' : 'other'
}

/** A number's order key; any other value unchanged. */
function comparable(value: Json): Json {
  return kindOf(value) === 'number' ? orderKey(String(textOrSelf(value))) : value
}

/** A value of the type by which JSONata tells numbers from texts; any other value unchanged. */
function orderKind(value: Json): Json {
  const kind = kindOf(value)
  if (kind === 'number') return 0
  return kind === 'string' ? '' : value
}

/** `*`: the members of an object or list, and those of lists in it. */
function members(value: Json): Json {
  return sequence(
    isHolder(value) ? Object.values(value).flatMap(each => [each].flat(Infinity)) : []
  )
}

/** `**`: the value, if it is no list, and all within it. */
function descendants(value: Json): Json[] {
  const within = isHolder(value) ? Object.values(value).flatMap(descendants) : []
  return Array.isArray(value) ? within : [value, ...within]
}

/** As JSONata marks a list whose single item stands for it. */
function sequence(items: Json[]): Json {
  return Object.defineProperty(items, 'sequence', { value: true, enumerable: false })
}

/** `$keys` */
function keysOf(value: Json): Json {
  const names: Record<string, true> = Object.create(null)
  const add = (each: Json): void => {
    if (Array.isArray(each)) each.forEach(add)
    else if (isHolder(each) && !isFunction(each)) {
      for (const name of Object.keys(each)) names[name] = true
    }
  }
  add(value)
  return sequence(Object.keys(names))
}

/** `$number`, which keeps all digits. To the signature such a number is an object. */
function exactNumberOf(value: Json): Json {
  if (isRawNumber(value)) return value
  if (typeof value === 'object') throw Object.assign(refusal('T0410'), { index: 1 })
  return numberOf(value, rawNumber)
}

const decimal = /^-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?$/
const otherBase = /^0(?:[xX][\dA-Fa-f]+|[oO][0-7]+|[bB][01]+)$/

/** `$number`, but for texts of numbers that no double holds. */
function numberOf(value: Json, long: (digits: string) => Json): Json {
  if (value === undefined || typeof value === 'number') return value
  if (typeof value === 'boolean') return Number(value)
  const text = typeof value === 'string' ? value : ''
  if (otherBase.test(text)) return Number(text)
  if (!decimal.test(text) || !Number.isFinite(Number(text))) {
    throw Object.assign(refusal('D3030', value), { index: 1 })
  }
  const digits = text.replace(/^(-?)0+(?=\d)/, '$1')
  return losesDigits(digits) ? long(digits) : Number(digits)
}

/** Whether `a` sorts after `b`. */
type IsBehind = (a: Json, b: Json) => Json

/** `$sort`: by the given function, else in the order of numbers or strings. */
async function sorted(value: Json, isBehind?: IsBehind): Promise<Json> {
  if (value === undefined) return undefined
  const list = [value].flat()
  if (isBehind !== undefined) return await mergeSort(list, isBehind)
  const kinds = new Set(list.map(kindOf))
  if (list.length > 1 && (kinds.size > 1 || kinds.has('other'))) throw refusal('D3070', list)
  return await mergeSort(list, (a, b) => (comparable(a) as string) > (comparable(b) as string))
}

/** Array's sort is synchronous, but a function of the expression may be asynchronous. */
async function mergeSort(list: readonly Json[], isBehind: IsBehind): Promise<Json[]> {
  if (list.length < 2) return [...list]
  const middle = list.length >> 1
  const left = await mergeSort(list.slice(0, middle), isBehind)
  const right = await mergeSort(list.slice(middle), isBehind)
  const merged: Json[] = []
  let at = 0
  for (const item of left) {
    while (at < right.length && (await isBehind(item, right[at])) === true) merged.push(right[at++])
    merged.push(item)
  }
  return [...merged, ...right.slice(at)]
}

function typeName(value: Json): Json {
  if (value === undefined) return undefined
  if (value === null) return 'null'
  if (isRawNumber(value)) return 'number'
  if (Array.isArray(value)) return 'array'
  return isFunction(value) ? 'function' : typeof value
}

function isFunction(value: Json): boolean {
  const { _jsonata_function: isBuiltIn, _jsonata_lambda: isLambda } = value as Node
  return typeof value === 'function' || isBuiltIn === true || isLambda === true
}

/** An error in JSONata's form, without values: the log must not hold them. */
function refusal(code: string, value?: Json) {
  return Object.assign(new Error(code), { code, value })
}
