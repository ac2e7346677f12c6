import t from 'tap'
import { parseKeepingDigits } from '../../src/json/digits.ts'
import { compileSchema } from '../../src/json-schema/compile.ts'
import { forbidsCuts, sampledValue } from '../../src/json-schema/sampled-value.ts'

const numbers = (count: number) => Array.from({ length: count }, (_, index) => index)
const none = new Set<string>()

t.test('of a long list its first items are kept, and others up to its last one', t => {
  const kept = sampledValue(numbers(5000), none) as number[]
  t.equal(kept.length, 100)
  t.same(kept.slice(0, 50), numbers(50))
  t.equal(kept.at(-1), 4999)
  t.same(
    kept,
    kept.toSorted((a, b) => a - b)
  )
  t.equal(new Set(kept).size, 100)
  t.end()
})

t.test('lists within a long one keep fewer items', t => {
  const kept = sampledValue(
    numbers(200).map(() => ({ inner: numbers(200) })),
    none
  ) as Array<{ inner: number[] }>
  t.same([kept.length, kept[0]?.inner.length], [100, 10])
  t.end()
})

t.test('of a long map the members that the schema names are kept', t => {
  const map = Object.fromEntries(numbers(500).map(index => [`n${index}`, index]))
  const kept = Object.keys(sampledValue({ ...map, id: 'a' }, new Set(['id', 'n77'])) as object)
  t.equal(kept.length, 102)
  t.ok(['id', 'n77', 'n0', 'n499'].every(name => kept.includes(name)))
  t.end()
})

t.test('a value without long lists is not copied, and a number in its own digits stays one', t => {
  const short = { rows: [numbers(100), { a: { b: null } }] }
  t.equal(sampledValue(short, none), short)
  const long = parseKeepingDigits(`[${'12345678901234567890,'.repeat(200)}1]`)
  t.match(JSON.stringify(sampledValue(long, none)), /^\[12345678901234567890,/)
  t.end()
})

t.test('a schema with rules for the length of a list or map forbids cuts', t => {
  for (const schema of [
    { minItems: 11 },
    { properties: { a: { maxItems: 50 } } },
    { anyOf: [{ items: { minProperties: 11 } }] },
    { contains: { const: 1 } },
    { prefixItems: [{}, {}, {}, {}, {}, {}] },
    { enum: [1, numbers(20)] },
    { const: numbers(20) }
  ]) {
    t.ok(forbidsCuts(schema), JSON.stringify(schema))
  }
  t.notOk(forbidsCuts({ minItems: 2, prefixItems: [{}, {}], enum: [1, 'a', null], const: 'x' }))
  t.end()
})

const row = { type: 'object', properties: { id: { type: 'string' }, n: { type: 'number' } } }
const list = { type: 'object', properties: { rows: { type: 'array', items: row } } }
const rowsWith = (second: object, others: object) => ({
  rows: numbers(5000).map(index => (index === 4000 ? second : others))
})

t.test('the rest of a long list is looked at only where the sample keeps the contract', t => {
  const { sampledDeviations } = compileSchema(list)
  t.same(sampledDeviations(rowsWith({ id: 'a', n: 'x' }, { id: 'a', n: 1 })), [
    { kind: 'retyped', path: 'rows[].n' }
  ])
  t.same(sampledDeviations(rowsWith({ id: 1, n: 'x' }, { id: 1, n: 1 })), [
    { kind: 'retyped', path: 'rows[].id' }
  ])
  const counted = compileSchema({ ...list, properties: { rows: { minItems: 4000, items: row } } })
  t.same(counted.sampledDeviations(rowsWith({ id: 'a' }, { id: 'a' })), [])
  t.end()
})

t.test('a value that keeps its schema only by what a sample leaves out does not deviate', t => {
  const zeros = (other: unknown) => numbers(1000).map(index => (index === 777 ? other : 0))
  const listOf = (type: unknown) => ({ type: 'array', items: { type } })
  for (const [schema, kept, broken] of [
    [{ oneOf: [listOf('integer'), listOf(['integer', 'string'])] }, zeros('a'), zeros(1)],
    [{ not: { items: { const: 0 } } }, zeros(1), zeros(0)],
    [JSON.parse('{"if":{"items":{"const":0}},"then":false}'), zeros(1), zeros(0)]
  ] as const) {
    const { sampledDeviations } = compileSchema(schema)
    t.same(sampledDeviations(kept), [], JSON.stringify(schema))
    t.same(sampledDeviations(broken).length, 1, JSON.stringify(schema))
  }
  const { sampledDeviations } = compileSchema({ not: { items: { const: 0 } } })
  const long = parseKeepingDigits(`[${'0,'.repeat(777)}12345678901234567890${',0'.repeat(222)}]`)
  t.same(sampledDeviations(long), [], 'with a number in its own digits')
  t.end()
})
