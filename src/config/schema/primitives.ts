/** Schemas that the config files share. `expected` is for error messages. */
import { isIP } from 'node:net'
import { Type, type TProperties, type TSchema } from 'typebox'
import { splitHostPort } from './host-port.ts'
import { type Node, pemFormat } from './node.ts'

/** Milliseconds. */
export type Duration = number

/** Texts with a unit, which are milliseconds or bytes in code. */
const measures = {
  'x-duration': {
    pattern: '^(0|[1-9][0-9]*)(ms|s|m|h|d)$',
    expected: 'a duration such as 500ms, 30s, 5m or 8h',
    units: { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
  },
  'x-size': {
    pattern: '^(0|[1-9][0-9]*)(B|KiB|MiB|GiB)$',
    expected: 'a size such as 4KiB, 1MiB or 1GiB',
    units: { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 }
  }
}
type MeasureName = keyof typeof measures
export const isMeasure = (format = ''): format is MeasureName => Object.hasOwn(measures, format)

const namePattern = '^[a-z][a-z0-9-]{0,62}$'
export const headerName = /^[a-z0-9][a-z0-9-]{0,62}$/

interface Keywords {
  default?: unknown
  minimum?: number
  maximum?: number
  examples?: unknown[]
  [keyword: PropertyKey]: unknown
}

/** Beyond 2³¹ ms (24.8 days) `setTimeout` fires at once. */
const maxTimerMs = 24 * 86_400_000
const maxLifetimeMs = 400 * 86_400_000
const maxBytes = 1024 ** 3
export const maxStreamedBytes = 1024 ** 4

/** @returns milliseconds or bytes; NaN for a text of another pattern */
export function amountOf(format: MeasureName, written: string): number {
  const { pattern } = measures[format]
  const units: Readonly<Record<string, number>> = measures[format].units
  const [, amount, unit = ''] = new RegExp(pattern).exec(written) ?? []
  return Number(amount) * (units[unit] ?? NaN)
}

/** The largest unit in which the number is whole: `90s`, `5m`, `1MiB`. */
export function inUnits(format: MeasureName, value: number): string {
  const units = Object.entries(measures[format].units)
  const [unit, factor] = units.findLast(([, each]) => value !== 0 && value % each === 0) ??
    units[0] ?? ['', 1]
  return `${value / factor}${unit}`
}

const unless = (isRight: boolean, expected: string) => (isRight ? undefined : expected)

export const duration = (description: string, more: Keywords = {}) =>
  measure('x-duration', { maximum: maxTimerMs, description, ...more })
/** A time for which a store keeps an entry. */
export const lifetime = (description: string, more: Keywords = {}) =>
  duration(description, { maximum: maxLifetimeMs, ...more })
export const size = (description: string, more: Keywords = {}) =>
  measure('x-size', { maximum: maxBytes, description, ...more })

/** 0 often means "no bound": it is taken where the description says what it means. */
function measure(format: MeasureName, { minimum = 1, ...more }: Keywords) {
  const { pattern, expected } = measures[format]
  // Also for editors, which know no bounds of a text.
  const ofMinimum = minimum === 0 ? pattern : pattern.replace('0|', '')
  return Type.Unsafe<number>(
    Type.String({ pattern: ofMinimum, format, minimum, expected, ...more })
  )
}

/** The bound that a written duration or size is beyond, in words. */
export function brokenBound({ format, minimum = 0, maximum = Infinity }: Node, written: unknown) {
  if (typeof written !== 'string' || !isMeasure(format)) return undefined
  const value = amountOf(format, written)
  if (value < minimum) return `at least ${inUnits(format, minimum)}`
  return value > maximum ? `at most ${inUnits(format, maximum)}` : undefined
}

export const maybe = <T extends TSchema>(schema: T) => Type.Optional(schema)

export const textOf =
  (kind: Keywords) =>
  (description?: string, more: Keywords = {}) =>
    Type.String({ ...kind, ...(description !== undefined && { description }), ...more })

export const secret = textOf({
  format: 'x-secret',
  minLength: 1,
  expected: 'a reference, ${NAME} or file:PATH (a secret never stands in the file itself)'
})
/** A secret that signs something; longer than what people think up. */
export const signingSecret = textOf({
  format: 'x-secret',
  pattern: '^[^]{32,}$',
  expected: 'at least 32 characters; make one with `console-gateway generate-secret`'
})
export const anyText = textOf({ expected: 'a text' })
export const text = textOf({ minLength: 1, expected: 'a text that is not empty' })
export const scalar = Type.Union([Type.String(), Type.Number(), Type.Boolean()], {
  expected: 'a text, a number, true or false'
})
export const flag = (description: string, more: Keywords = {}) =>
  Type.Boolean({ default: false, expected: 'true or false', description, ...more })
export function whole(description: string, more: Keywords = {}) {
  const { minimum = 0, maximum } = more
  const upTo = maximum === undefined ? '' : ` and at most ${maximum}`
  const expected = `a whole number of at least ${minimum}${upTo}`
  return Type.Integer({ minimum, expected, description, ...more })
}
export const count = (description: string, more: Keywords = {}) =>
  whole(description, { minimum: 1, ...more })
export const status = (description: string, more: Keywords = {}) =>
  whole(description, { minimum: 100, maximum: 599, ...more })
export const hostPort = textOf({
  pattern: '^(\\[[0-9a-fA-F:]+\\]|[A-Za-z0-9._-]+):[0-9]{1,5}$',
  expected: 'HOST:PORT, such as 127.0.0.1:8080 or [::1]:8080',
  alsoExpected: (written: string) =>
    unless(splitHostPort(written).port <= 65_535, 'a port of at most 65535')
})
const hostPattern = '(?:[A-Za-z0-9._-]+|\\[[0-9A-Fa-f:.]+\\])'
export const host = textOf({
  pattern: `^${hostPattern}$`,
  expected: 'a host name alone, without scheme, port or path'
})
export const publicHost = textOf({
  pattern: `^${hostPattern}(?::[0-9]{1,5})?$`,
  expected: 'a host name, with a port at most, without scheme or path'
})
export const validUrl = (written: string) =>
  unless(written === '' || URL.canParse(written), 'a valid URL')
export const url = textOf({
  alsoExpected: validUrl,
  pattern: '^https?://[^\\s/?#@]+(/[^\\s?#]*)?$',
  expected: 'an http:// or https:// address without user, query or fragment'
})
export const origin = textOf({
  pattern: '^https?://[^\\s/?#@*]+$',
  expected: 'an origin such as https://console.example.com (no path, no wildcard)',
  alsoExpected: (written: string) => {
    if (!URL.canParse(written)) return 'a valid URL such as https://console.example.com'
    const canonical = new URL(written).origin
    return unless(canonical === written, `the origin as browsers write it: ${canonical}`)
  }
})
/** Empty and dot segments are ambiguous: clients and servers resolve them differently. */
const noDots = '(?!\\.\\.?(?:/|$))'
const segment = `${noDots}[A-Za-z0-9._~!$&'()+,=@-]+`
/** As of NocoBase and Google's APIs: `orders:list`. A public path takes none: `/orders:id`. */
const upstreamSegment = `${noDots}(?!:)[A-Za-z0-9._~!$&'()+,=@:-]+`
const parameter = ':[A-Za-z][A-Za-z0-9_]*'
export const publicPath = textOf({
  pattern: `^(?:/${segment})+$`,
  expected: 'a path such as /admin, with no / or * at its end and no empty or dot segments'
})
/** Of a call at an upstream. As Django's do, it may end with a slash. */
export const path = textOf({
  pattern: `^(?:/${upstreamSegment})*/?$`,
  expected: 'a path that begins with /, without a query, and with no empty or dot segments'
})
const template = {
  expected:
    'a path that begins with /, :name a whole segment, /* at its end, no empty or dot segments'
}
export const publicTemplate = {
  ...template,
  pattern: `^/$|^(?=/)(?:/(?:${parameter}|${segment}))*(?:/\\*)?$`
}
export const publicPathTemplate = textOf(publicTemplate)
export const upstreamPathTemplate = textOf({
  ...template,
  pattern: `^(?=/)(?:/(?:${parameter}|${upstreamSegment}))*(?:/\\*?)?$`
})
export const dotted = textOf({
  pattern: '^[^.\\s]+(\\.[^.\\s]+)*$',
  expected: 'names joined by dots, such as result.items'
})
export const pemFile = textOf({ format: pemFormat, expected: 'a PEM file' })
export const authorities = (more: Keywords = {}) =>
  maybe(pemFile('A PEM file of authorities, in the place of those of the system.', more))
const moduleFile = textOf({
  names: 'module',
  pattern: '^(?:\\./)?(?:[A-Za-z0-9_-][A-Za-z0-9._-]*/)*[A-Za-z0-9_-][A-Za-z0-9._-]*\\.m?[jt]s$',
  expected: 'a .js, .mjs or .ts file below the config folder, such as ./shapes/orders.js'
})
export const header = textOf({
  pattern: headerName.source,
  expected: 'a header name in lower case, such as x-user-id'
})
/** Undici and Node refuse others, or send them as Latin-1. */
export const headerValue = textOf({ pattern: '^[\\x20-\\x7e]*$', expected: 'printable ASCII' })
/** A mapping from names that the operator chooses to values of one schema. */
const mapping =
  (pattern: string) =>
  <T extends TSchema>(description: string, value: T, more: Keywords = {}) =>
    Type.Record(Type.String({ pattern }), value, { default: {}, description, ...more })
/** Values may be references to secrets. A placeholder that is none would be sent. */
export const headers = (description: string, more: Keywords = {}) => {
  const value = headerValue(undefined, {
    format: 'x-maybe-secret',
    pattern: '^\\{profile\\.[\\w.-]+\\}$|^(?!.*\\{\\s*\\w[^}]*\\})[\\x20-\\x7e]*$',
    expected: '{profile.PATH} alone, or printable ASCII without placeholders'
  })
  return mapping(headerName.source)(description, value, { default: undefined, ...more })
}
const ofName = { pattern: namePattern, expected: 'a name in lower case with dashes' }
export const name = textOf(ofName)
export const upstreamName = textOf({ ...ofName, names: 'upstream' })
export const list = <T extends TSchema>(description: string, items: T, more: Keywords = {}) =>
  Type.Array(items, { default: [], description, ...more })
export const headerNames = (description: string, more: Keywords = {}) =>
  list(description, header(), more)
function isBlock(written: string): boolean {
  const [address = '', bits, ...rest] = written.split('/')
  const version = isIP(address)
  if (version === 0 || rest.length > 0) return false
  if (bits === undefined) return true
  return /^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128)
}
const expectedBlock = 'an address or a CIDR block such as 10.0.0.0/8'
const block = text(undefined, {
  expected: expectedBlock,
  alsoExpected: (written: string) => unless(isBlock(written), expectedBlock)
})
export const addresses = (description: string) => list(description, block)
export const someOf = <T extends TSchema>(description: string, items: T, more: Keywords = {}) =>
  Type.Array(items, { minItems: 1, description, ...more })
export const oneOf = <const T extends readonly string[]>(
  description: string,
  values: T,
  more: Keywords = {}
) =>
  Type.Unsafe<T[number]>(
    Type.String({ enum: values, expected: `one of ${values.join(', ')}`, description, ...more })
  )
/** The first of the values is the default. */
export const choice = <const T extends readonly string[]>(description: string, values: T) =>
  oneOf(description, values, { default: values[0] })
export const either = <T extends TSchema[]>(
  description: string,
  forms: [...T],
  more: Keywords = {}
) => Type.Union(forms, { description, ...more })
/** One value or a list; config loading makes it a list. */
export const oneOrMany = <T>(description: string, item: Node & TSchema, more: Keywords = {}) => {
  const items = someOf(description, item, { uniqueItems: true, format: 'x-one-or-many' })
  const expected = `${item.expected}, or a list`
  return Type.Unsafe<readonly T[]>(Type.Union([item, items], { expected, description, ...more }))
}
export const isOneOrMany = ({ format }: Node): boolean => format === 'x-one-or-many'
export const named = mapping(namePattern)
export const pairs = mapping('^.+$')
/** By a path as that of a route. */
export const byPath = mapping(publicTemplate.pattern)
/** By an error code, a prefix of some as `session.*`, or `*`. */
export const byErrorCode = mapping('^(\\*|[a-z][a-z-]*(\\.[a-z-]+)*(\\.\\*)?)$')
export const byUserName = mapping('^\\S(.{0,253}\\S)?$')
const somePairs = <T extends TSchema>(description: string, value: T, more: Keywords = {}) =>
  pairs(description, value, { default: undefined, ...more })

export const closed = <T extends TProperties>(
  description: string,
  properties: T,
  more: Keywords = {}
) => Type.Object(properties, { additionalProperties: false, description, ...more })
export const source = <const K extends string, T extends TProperties>(
  kind: K,
  description: string,
  properties: T
) =>
  Type.Object(
    { kind: Type.Literal(kind, { description }), ...properties },
    { additionalProperties: false, title: kind }
  )
/** A mapping whose default is the defaults of its members. */
export const section = <T extends TProperties>(description: string, properties: T) =>
  closed(description, properties, { default: {} })
export const optional = <T extends TProperties>(description: string, properties: T) =>
  maybe(closed(description, properties))

const orNone =
  <A extends unknown[], T extends TSchema>(make: (...args: A) => T) =>
  (...args: A) =>
    maybe(make(...args))

/** The same schemas for keys that may be missing and have no default. */
export const may = {
  anything: (description: string, more: Keywords = {}) =>
    maybe(Type.Unknown({ description, ...more })),
  count: orNone(count),
  dotted: orNone(dotted),
  duration: orNone(duration),
  header: orNone(header),
  lifetime: orNone(lifetime),
  hostPort: orNone(hostPort),
  moduleFile: orNone(moduleFile),
  name: orNone(name),
  oneOf: orNone(oneOf),
  pairs: orNone(somePairs),
  path: orNone(path),
  pemFile: orNone(pemFile),
  publicPath: orNone(publicPath),
  secret: orNone(secret),
  signingSecret: orNone(signingSecret),
  shapeName: orNone(textOf({ ...ofName, names: 'shape' })),
  size: orNone(size),
  someOf: orNone(someOf),
  status: orNone(status),
  text: orNone(text),
  upstreamName: orNone(upstreamName),
  upstreamPathTemplate: orNone(upstreamPathTemplate)
}
