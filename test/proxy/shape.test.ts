import fc from 'fast-check'
import t from 'tap'
import type { ShapeStep } from '../../src/config/routes.ts'
import { compileShape, valueAt } from '../../src/proxy/shape.ts'

const wrap = (data: unknown, extra: Readonly<Record<string, unknown>> = {}) => ({ success: true, data, ...extra })
const shaped = (steps: readonly ShapeStep[], value: unknown) => compileShape(steps, wrap)(value)

t.test('no operation leaves the value as it is', async t => {
  const value = { a: [1] }
  t.equal(shaped([], value), value)
})

t.test('unwrap goes on with what is at a path, also through lists; null where there is nothing', async t => {
  t.same(shaped([{ unwrap: 'result.list' }], { result: { list: [1, 2] } }), [1, 2])
  t.equal(shaped([{ unwrap: 'a.1.b' }], { a: [{}, { b: 'x' }] }), 'x')
  t.equal(shaped([{ unwrap: 'a' }], { a: false }), false)
  for (const value of [{}, { result: null }, { result: 'text' }, { result: {} }, [], null, 5, 'result', true]) t.equal(shaped([{ unwrap: 'result.list' }], value), null, JSON.stringify(value))
})

t.test('unwrap finds only what is there by itself, not what objects are born with', async t => {
  for (const path of ['constructor', '__proto__', 'toString', 'constructor.name', '__proto__.constructor', 'a.length.constructor', 'hasOwnProperty']) t.equal(shaped([{ unwrap: path }], { a: 'text' }), null, path)
  t.equal(valueAt(JSON.parse('{"__proto__": {"x": 1}}'), ['__proto__', 'x']), 1)
})

t.test('pick keeps the members that are named, and makes up none', async t => {
  t.same(shaped([{ pick: ['b', 'a', 'toString'] }], { a: 1, b: null, c: 3 }), { b: null, a: 1 })
})

t.test('rename gives members other names; what had the new name gives way', async t => {
  t.same(shaped([{ rename: { subject: 'title', absent: 'x' } }], { subject: 'hello', id: 1 }), { id: 1, title: 'hello' })
  t.same(shaped([{ rename: { subject: 'title' } }], { title: 'old', subject: 'new' }), { title: 'new' })
  t.same(shaped([{ rename: { a: 'b', b: 'a' } }], { a: 1, b: 2 }), { a: 2, b: 1 })
  t.same(shaped([{ rename: { a: 'a' } }], { a: 1 }), { a: 1 })
})

t.test('default fills what is absent or null, and nothing else', async t => {
  t.same(shaped([{ default: { read: false, count: 9, name: 'x', tags: [] } }], { read: null, count: 0, name: '' }), { read: false, count: 0, name: '', tags: [] })
  t.same(shaped([{ default: { toString: 'own', constructor: 1 } }], {}), { toString: 'own', constructor: 1 })
})

t.test('each does its operations to every item', async t => {
  t.same(shaped([{ each: [{ rename: { a: 'b' } }, { default: { c: 1 } }, { pick: ['b', 'c'] }] }], [{ a: 1, x: 0 }, { c: 5 }, null, 7, [{ a: 1 }]]), [{ b: 1, c: 1 }, { c: 5 }, null, 7, [{ a: 1 }]])
  t.same(shaped([{ each: [{ unwrap: 'node' }] }], [{ node: 1 }, {}]), [1, null])
  t.same(shaped([{ each: [{ pick: ['a'] }] }], []), [])
})

t.test('wrap puts the value under the envelope; as a list it counts the items', async t => {
  t.same(shaped([{ wrap: 'envelope' }], { a: 1 }), { success: true, data: { a: 1 } })
  t.same(shaped([{ wrap: 'envelope' }], null), { success: true, data: null })
  t.same(shaped([{ wrap: 'list' }], [1, 2, 3]), { success: true, data: [1, 2, 3], total: 3 })
  t.same(shaped([{ unwrap: 'nowhere' }, { wrap: 'list' }], {}), { success: true, data: [], total: 0 })
})

t.test('operations act in their order', async t => {
  t.same(shaped([{ rename: { a: 'b' } }, { pick: ['b'] }], { a: 1, b: 2 }), { b: 1 })
  t.same(shaped([{ pick: ['b'] }, { rename: { a: 'b' } }], { a: 1, b: 2 }), { b: 2 })
  t.same(shaped([{ default: { a: 1 } }, { rename: { a: 'b' } }], {}), { b: 1 })
  t.same(shaped([{ unwrap: 'result.list' }, { each: [{ rename: { noticeId: 'id' } }, { default: { read: false } }, { pick: ['id', 'read'] }] }, { wrap: 'list' }], { result: { list: [{ noticeId: 'n1', secret: 'x' }] } }), { success: true, data: [{ id: 'n1', read: false }], total: 1 })
})

t.test('what an operation does not fit passes as it is', async t => {
  const steps: ShapeStep[] = [{ pick: ['a'] }, { rename: { a: 'b' } }, { default: { a: 1 } }]
  for (const step of steps) for (const value of [null, true, 5, 'text', [{ a: 1 }]]) t.equal(shaped([step], value), value, JSON.stringify([step, value]))
  for (const value of [null, { a: 1 }, 'text', 5]) t.equal(shaped([{ each: [{ pick: ['b'] }] }], value), value)
})

t.test('a member called __proto__ is data: kept, renamed, picked, filled, and it changes no object', async t => {
  const value: unknown = JSON.parse('{"__proto__": {"admin": true}, "a": 1}')
  const results = [
    shaped([{ rename: { a: 'b' } }], value),
    shaped([{ pick: ['__proto__'] }], value),
    shaped([{ default: { x: 1 } }], value),
    shaped([{ rename: { a: '__proto__' } }], { a: { admin: true } }),
    shaped([{ default: JSON.parse('{"__proto__": {"admin": true}}') as Record<string, unknown> }], {})
  ]
  for (const result of results) {
    t.equal(Object.getPrototypeOf(result), Object.prototype)
    t.equal((result as { admin?: boolean }).admin, undefined)
    t.match(JSON.stringify(result), '"__proto__":{"admin":true}')
  }
  t.equal((({}) as { admin?: boolean }).admin, undefined)
})

const frozen = (value: unknown): unknown => {
  if (typeof value === 'object' && value !== null) {
    Object.values(value).forEach(frozen)
    Object.freeze(value)
  }
  return value
}

t.test('the input and the config stay as they were', async t => {
  const config: ShapeStep[] = [{ rename: { a: 'b' } }, { default: { list: [], inner: {} } }]
  const shape = compileShape(frozen(config) as ShapeStep[], wrap)
  const input = frozen({ a: { deep: [1] }, c: null })
  t.same(shape(input), { b: { deep: [1] }, c: null, list: [], inner: {} })
  t.same(shape(input), { b: { deep: [1] }, c: null, list: [], inner: {} })
})

const name = fc.oneof(fc.constantFrom('a', 'b', 'c', 'data', '0', 'length', '__proto__', 'constructor', 'toString', 'toJSON', 'hasOwnProperty', ''), fc.string({ maxLength: 4 }))
const simple: fc.Arbitrary<ShapeStep> = fc.oneof(
  fc.array(name, { minLength: 1, maxLength: 3 }).map(path => ({ unwrap: path.join('.') })),
  fc.array(name, { minLength: 1, maxLength: 4 }).map(pick => ({ pick })),
  fc.dictionary(name, name, { maxKeys: 4 }).map(rename => ({ rename })),
  fc.dictionary(name, fc.jsonValue({ maxDepth: 2 }), { maxKeys: 4 }).map(given => ({ default: given }))
)
const anyShape = fc.tuple(fc.array(fc.oneof(simple, fc.array(simple, { minLength: 1, maxLength: 3 }).map((each): ShapeStep => ({ each: each as NonNullable<ShapeStep['each']> }))), { maxLength: 5 }), fc.constantFrom<ShapeStep[]>([], [{ wrap: 'envelope' }], [{ wrap: 'list' }])).map(([steps, last]) => [...steps, ...last])
const tree = fc.letrec<{ value: unknown }>(tie => ({ value: fc.oneof({ maxDepth: 4 }, fc.jsonValue({ maxDepth: 0 }), fc.array(tie('value'), { maxLength: 4 }), fc.dictionary(name, tie('value'), { maxKeys: 4 })) })).value

t.test('any shape on any JSON gives JSON, never an error, and leaves its input as it was', async () => {
  fc.assert(fc.property(anyShape, tree, (steps, value) => {
    const written = JSON.stringify(value)
    const result = shaped(steps, frozen(JSON.parse(written)))
    if (typeof JSON.stringify(result) !== 'string') throw new Error('the result is no JSON')
    return JSON.stringify(value) === written
  }), { numRuns: 5000 })
})
