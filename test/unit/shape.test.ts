/** Operations of shapes by example, and on anything else. */
import fc from 'fast-check'
import t from 'tap'
import type { ShapeStep } from '../../src/config/schema/shapes.ts'
import { parseKeepingDigits } from '../../src/json/digits.ts'
import { isoDate } from '../../src/shaping/members.ts'
import { compileShape, type ShapeContext } from '../../src/shaping/shape.ts'
import { seed } from '../support/seed.ts'

const context: ShapeContext = {
  wrap: (data, extra = {}, placement) => ({ success: true, data, ...extra, placement }),
  shapes: { item: [{ rename: { a: 'b' } }] },
  paging: { page: 'p', size: 's', firstPage: 1 }
}
const use = { target: '/api/x?p=2&s=20', route: 'r' }

/** A shape that would change its input throws. */
const frozen = (body: unknown): unknown => {
  if (typeof body === 'object' && body !== null) {
    Object.values(body).forEach(frozen)
    Object.freeze(body)
  }
  return body
}
const shaped = (steps: readonly ShapeStep[], value: unknown) =>
  compileShape(steps, context).apply(frozen(value), use)
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

const operations: ReadonlyArray<readonly [ShapeStep[], before: unknown, after: unknown]> = [
  [[{ open: 'code-data' }], { code: 0, data: 1 }, 1],
  [[{ unwrap: 'a.1.b' }], { a: [{}, { b: 'x' }] }, 'x'],
  [[{ unwrap: 'a.b' }], { a: 'text' }, null],
  [[{ unwrap: 'a.toString' }], { a: {} }, null],
  [[{ pick: ['b', 'absent'] }], { a: 1, b: null }, { b: null }],
  [[{ pick: ['toString'] }], { toString: 3 }, { toString: 3 }],
  [[{ pick: ['a', 'b'] }, { lift: 'a' }], { a: { b: 1 } }, { b: 1 }],
  [[{ drop: ['secret', 'absent'] }], { id: 1, secret: 'x' }, { id: 1 }],
  [[{ drop: ['a'] }, { drop: ['b'] }], { a: 1, b: 2, c: 3 }, { c: 3 }],
  [[{ drop: ['a'] }, { pick: ['a', 'c'] }], { a: 1, c: 3 }, { c: 3 }],
  [[{ rename: { a: 'b', b: 'a' } }], { a: 1, b: 2 }, { b: 1, a: 2 }],
  [[{ rename: { a: 'b', b: 'c' } }], { a: 1, b: 2 }, { b: 1, c: 2 }],
  [[{ rename: { a: 'b' } }], { b: 2 }, { b: 2 }],
  [[{ rename: { a: 'b' } }, { drop: ['a'] }], { a: null, b: 2 }, { b: null }],
  [[{ rename: { a: 'b' } }, { drop: ['b'] }], { a: 1, c: 2 }, { c: 2 }],
  [[{ drop: ['a'] }, { rename: { a: 'b', toString: 'c' } }], { a: 1, b: 2 }, { b: 2 }],
  [[{ rename: { subject: 'title' } }], { title: 'old', subject: 'new' }, { title: 'new' }],
  [[{ default: { read: false, count: 9 } }], { read: null, count: 0 }, { read: false, count: 0 }],
  [[{ constant: { type: 'event' } }], { type: 'x', id: 1 }, { type: 'event', id: 1 }],
  [[{ map: { a: { 1: 'read' } } }], { a: '1', b: 1 }, { a: 'read', b: 1 }],
  [[{ map: { a: { '': 'none', '*': 'some' } } }], { a: '' }, { a: 'none' }],
  [[{ map: { a: { null: 'none' } } }], { a: null }, { a: 'none' }],
  [[{ map: { a: { '*': 1, 'true': 2 } } }], { a: { b: 1 } }, { a: 1 }],
  [[{ map: { a: { x: 1 } } }], { a: 'toString' }, { a: 'toString' }],
  [[{ map: { toString: { '*': 1 } } }], { a: 1 }, { a: 1 }],
  [[{ default: { a: 1 } }, { constant: { b: 2 } }], ['no object'], ['no object']],
  [[{ convert: { a: 'number', b: 'string' } }], { a: ' 12 ', b: true }, { a: 12, b: 'true' }],
  [
    [{ move: { 'user.name': 'by' } }],
    { user: { name: 'Al', age: 5 } },
    { user: { age: 5 }, by: 'Al' }
  ],
  [[{ move: { a: 'b', b: 'c.d' } }], { a: 1, b: 2 }, { b: 1, c: { d: 2 } }],
  [[{ move: { a: 'b', b: 'a' } }], { a: 1, b: 2 }, { b: 1, a: 2 }],
  [[{ move: { 'a.__proto__': 'b', 'c': 'd' } }], { a: {} }, { a: {} }],
  [[{ move: { a: 'toString.x' } }], { a: 1 }, { toString: { x: 1 } }],
  [[{ move: { a: 'b.c' } }], { a: 1, b: null }, { b: { c: 1 } }],
  [[{ move: { 'a': 'x', 'a.b': 'y' } }], { a: { b: 1, c: 2 } }, { x: { c: 2 }, y: 1 }],
  [[{ move: { b: 'x.b', a: 'x' } }], { a: { n: 1 }, b: 2 }, { x: { n: 1, b: 2 } }],
  // A value without a place stays, and the others are moved.
  [[{ move: { a: 'b.c', d: 'e' } }], { a: 1, b: 'text', d: 2 }, { a: 1, b: 'text', e: 2 }],
  [
    [{ move: { 'list.0.id': 'id' } }],
    { list: [{ id: 1, x: 1 }, 2] },
    { list: [{ x: 1 }, 2], id: 1 }
  ],
  [[{ lift: 'attributes' }], { id: 7, attributes: { id: 1, title: 'Hi' } }, { id: 7, title: 'Hi' }],
  [[{ lift: 'a.0.b' }], { a: [{ b: { x: 1 }, y: 2 }, 3] }, { a: [{ y: 2, x: 1 }, 3] }],
  [[{ lift: 'a' }], { a: [1] }, { a: [1] }],
  [[{ nest: { as: 'rows', count: 'total' } }], [1, 2], { rows: [1, 2], total: 2 }],
  [[{ nest: { as: 'rows', count: 'total' } }], '', { rows: [], total: 0 }],
  [[{ nest: { as: 'rows', count: 'total' } }], { a: 1 }, { rows: [{ a: 1 }], total: 1 }],
  [[{ nest: { as: 'row' } }], null, { row: null }],
  [[{ each: [{ pick: ['a'] }] }], [{ a: 1, x: 0 }, null, 7], [{ a: 1 }, null, 7]],
  [[{ each: [{ constant: { a: 1 } }] }], {}, {}],
  [[{ each: [{ rename: { a: 'b' } }] }], { a: 1 }, { b: 1 }],
  // One item in the place of a list shows nothing that its operations leave out.
  [[{ each: [{ pick: ['id'] }] }], { id: 1, secret: 'x' }, { id: 1 }],
  [
    [{ at: { path: 'a.b', operations: [{ pick: ['id'] }] } }],
    { a: { b: { id: 1, x: 2 }, c: 3 } },
    { a: { b: { id: 1 }, c: 3 } }
  ],
  [
    [{ at: { path: 'a.1', operations: [{ pick: ['id'] }] } }],
    { a: [{ x: 1 }, { id: 1, x: 2 }] },
    { a: [{ x: 1 }, { id: 1 }] }
  ],
  [[{ at: { path: 'a.length', operations: [{ nest: { as: 'x' } }] } }], { a: [0] }, { a: [0] }],
  [[{ at: { path: 'b', operations: [{ nest: { as: 'x' } }] } }], { a: 1 }, { a: 1 }],
  [[{ echo: { page: 'current', size: 'size' } }], { a: 1 }, { a: 1, current: 2, size: 20 }],
  [[{ pick: ['b'] }, { rename: { a: 'b' } }], { a: 1, b: 2 }, { b: 2 }],
  [[{ use: 'item' }, { pick: ['b'] }], { a: 1, c: 2 }, { b: 1 }],
  [[{ wrap: 'list' }], [1, 2, 3], { success: true, data: [1, 2, 3], total: 3 }],
  [[{ wrap: 'list' }], { id: 1 }, { success: true, data: [{ id: 1 }], total: 1 }],
  [[{ wrap: 'list' }], {}, { success: true, data: [], total: 0 }],
  [[{ wrap: 'flat' }], { rows: [1] }, { success: true, data: { rows: [1] }, placement: 'flat' }],
  [
    [{ paging: { list: 'list', total: 'n', current: 'no', each: [{ pick: ['id'] }] } }],
    { list: [{ id: 1, x: 2 }], n: 37, no: '2' },
    { success: true, data: [{ id: 1 }], total: 37, current: 2 }
  ],
  [
    [{ paging: { list: 'a.list', total: 'n', pageSize: 'size' } }],
    { a: { list: { id: 1 } }, n: 'many', size: -1 },
    { success: true, data: [{ id: 1 }], total: 1 }
  ],
  [[{ paging: { list: 'list' } }], { list: null }, { success: true, data: [], total: 0 }]
]

t.test('each operation does what the docs say of it', async t => {
  for (const [steps, before, after] of operations) {
    t.strictSame(plain(shaped(steps, before)), after, JSON.stringify(steps))
  }
})

const { value: bodies } = fc.letrec<{ value: unknown }>(tie => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom(null, true, 7, '', 'x'),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom('a', 'b', 'data', '0', 'length', '__proto__'), tie('value'))
  )
}))

t.test('on anything else no operation throws, or changes its input', async () => {
  const all = fc.constantFrom(...operations.map(([steps]) => steps))
  fc.assert(
    fc.property(all, bodies, (steps, body) => void shaped(steps, body)),
    { numRuns: 5000, seed }
  )
})

/** Without a result the value stays. */
const conversions: ReadonlyArray<readonly [kind: string, value: unknown, result?: unknown]> = [
  ['number', ' 5', 5],
  ['number', '1.50', 1.5],
  ['number', '-3', -3],
  ['number', '1e3', 1000],
  ['number', false, 0],
  ...['', 'x', '007', null].map(value => ['number', value] as const),
  ['number', '9007199254740993'],
  ['number', '1.234567890123456789'],
  ['number', '1e-400'],
  ['string', parseKeepingDigits('1541815603606036480'), '1541815603606036480'],
  ['string', 1.5, '1.5'],
  ['string', null],
  ...['Y', 'yes', ' On', 'TRUE', '1', 1].map(value => ['boolean', value, true] as const),
  ...['n', 'No', 'off', 'false', '0', '', 0].map(value => ['boolean', value, false] as const),
  ...['maybe', 2, null].map(value => ['boolean', value] as const),
  ['date-seconds', 1795239000, '2026-11-21T05:30:00.000Z'],
  ['date-seconds', '-1', '1969-12-31T23:59:59.000Z'],
  ['date-milliseconds', 1795239000000.5, '2026-11-21T05:30:00.000Z'],
  ...[1e21, 'x', null, true].map(value => ['date-milliseconds', value] as const),
  ['date-seconds', '1795239000.000000000001', '2026-11-21T05:30:00.000Z'],
  ['date-seconds', 1795239000.25, '2026-11-21T05:30:00.250Z'],
  ['date-text', '2026-11-21 13:30:00+0800', '2026-11-21T05:30:00.000Z'],
  ['date-text', '2026-11-21', '2026-11-21T00:00:00.000Z'],
  ['date-text', '2026/1/2 3:04', '2026-01-02T03:04:00.000Z'],
  ['date-text', '2026-11-21T08:30:00,1234-03:30', '2026-11-21T12:00:00.123Z'],
  ['date-text@-05:00', '2026-11-21', '2026-11-21T05:00:00.000Z'],
  ['date-text', '2026-02-29 10:00'],
  ['date-text', '0000-01-01 00:00+01:00'],
  ['date-text', 1795239000],
  ['date-text', 'Sat, 21 Nov 2026 05:30:00 GMT', '2026-11-21T05:30:00.000Z'],
  ['date-text', 'Sat, 30 Feb 2026 00:00:00 GMT'],
  ['date-text', '2026-13-01'],
  ['date-text@+08:00', '2026-11-21 13:30:00', '2026-11-21T05:30:00.000Z']
]

t.test('convert leaves what would lose something', async t => {
  for (const [kind, value, result = value] of conversions) {
    const { v } = shaped([{ convert: { v: kind } }], { v: value }) as { v: unknown }
    t.equal(v, result, `${kind} ${JSON.stringify(value)}`)
  }
})

t.test('a moment of the years 0 to 9999 is written as Date writes it', async t => {
  const [first, end] = [Date.UTC(-1, 12), Date.UTC(10_000, 0)]
  const bounds = { min: first, max: end - 1, noNaN: true }
  fc.assert(
    fc.property(
      fc.oneof(fc.integer(bounds), fc.double(bounds)),
      time => isoDate(time) === new Date(time).toISOString()
    ),
    { numRuns: 5000, seed }
  )
  for (const time of [Infinity, end, first - 1]) t.equal(isoDate(time), undefined)
})

t.test('unwrap tells of a path that is not there, and not of a null that is', async t => {
  const missing: string[] = []
  const onMissing = (path: string) => missing.push(path)
  const { apply } = compileShape([{ unwrap: 'data.items' }], { ...context, onMissing })
  for (const items of [null, []]) apply({ data: { items } })
  t.same(missing, [])
  for (const body of [[{ id: 1 }], {}, { data: null }, { data: 'x' }, { data: {} }]) apply(body)
  t.equal(missing.length, 5)
})

const status = { path: 'code', ok: [0, '200', null], statuses: { 40001: 404 }, otherwise: 502 }
const refused = (step: ShapeStep, body: unknown) => compileShape([step], context).refusal(body)

/** Failures that a back-end hides behind 200, with the status and number that the console gets. */
const failures: ReadonlyArray<readonly [ShapeStep, object, status: number, code?: number]> = [
  [{ status }, { code: 401 }, 401, 401],
  [{ status }, { code: 40001 }, 404, 40001],
  [{ status }, { code: 'E1' }, 502],
  [{ status }, { code: 'E1', errorCode: 409 }, 409, 409],
  [{ status }, { code: {}, msg: 'No' }, 502],
  [{ open: 'ant-design-pro' }, { success: false, errorMessage: 'No' }, 502],
  [{ open: 'ant-design-pro' }, { success: false, status: 200, errorCode: 4711 }, 502, 4711],
  [{ open: 'base-response' }, { ok: false, code: 403, message: 'No' }, 403, 403],
  [{ open: 'base-response' }, { ok: false, code: '00200', message: 'No' }, 502],
  [{ open: 'base-response' }, { ok: false, code: 204, message: 'No' }, 502],
  [{ open: 'code-data' }, { code: 404, msg: 'No' }, 404, 404],
  [{ open: 'code-data' }, { code: 50008, message: 'No' }, 502, 50008],
  [{ open: 'code-data' }, { code: 'E7', status: 0 }, 502]
]

t.test('open and status tell a failure, with its message and number', async t => {
  for (const [step, body, expected, code] of failures) {
    const error = refused(step, body)
    t.match(error, { code: 'upstream.error', status: expected }, JSON.stringify(body))
    t.equal(error?.detail.extra?.['code'], code, JSON.stringify(body))
    if (JSON.stringify(body).includes('No')) t.equal(error?.message, 'No')
  }
  for (const code of [0, '0', 200, '200', null]) t.equal(refused({ status }, { code }), undefined)
  t.equal(refused({ status }, {}), undefined, 'absent counts as null')
  t.equal(refused({ open: 'ant-design-pro' }, { success: true }), undefined)
  t.equal(refused({ open: 'base-response' }, { ok: true }), undefined)
  t.equal(refused({ open: 'code-data' }, { code: 20000 }), undefined)
  const why = { status: { ...status, message: 'a.why' } }
  t.equal(refused(why, { code: 1, a: { why: 'x'.repeat(900) } })?.message.length, 500)
})

t.test('what config wrote stays as it was', async t => {
  const inner = Object.freeze({ a: 1 })
  const { apply } = compileShape([{ default: { inner } }, { move: { b: 'inner.b' } }], context)
  t.strictSame(apply({ b: 2 }), { inner: { a: 1, b: 2 } })
  t.strictSame(apply({}), { inner: { a: 1 } })
})
