import t from 'tap'
import { Type } from 'typebox'
import { asNode, visit } from '../../../src/config/schema/visit.ts'

const paths = (schema: Parameters<typeof asNode>[0], value: unknown) => {
  const seen: string[] = []
  visit(asNode(schema), value, ({ path }) => {
    seen.push(path.join('.'))
  })
  return seen
}

t.test('every value that the schema covers is visited, outermost first, and no other', async t => {
  const schema = Type.Object({
    a: Type.Object({ b: Type.Array(Type.String()) }),
    names: Type.Record(Type.String({ pattern: '^[a-z]+$' }), Type.Integer())
  })
  t.same(
    paths(schema, { a: { b: ['x', 'y'], unknown: 1 }, names: { one: 1, TWO: 2 }, other: {} }),
    ['', 'a', 'a.b', 'a.b.0', 'a.b.1', 'names', 'names.one']
  )
})

t.test('where anything may stand, everything below is visited too', async t => {
  t.same(paths(Type.Object({ any: Type.Unknown() }), { any: { a: [{ b: 1 }] } }), [
    '',
    'any',
    'any.a',
    'any.a.0',
    'any.a.0.b'
  ])
})

t.test('of a union the branch is visited that the value means', async t => {
  const union = Type.Union([
    Type.Object({ kind: Type.Literal('a'), x: Type.String() }),
    Type.Object({ kind: Type.Literal('b'), y: Type.String() }),
    Type.String()
  ])
  t.same(paths(union, { kind: 'b', x: 1, y: 2 }), ['', 'kind', 'y'])
  t.same(paths(union, { kind: 'a', x: 1, y: 2 }), ['', 'kind', 'x'])
  t.same(paths(union, { kind: 'c', x: 1 }), [''])
  t.same(paths(union, 'text'), [''])
})

t.test('a value is replaced where it stands: in a mapping, in a list, and at the root', async t => {
  const schema = Type.Object({ list: Type.Array(Type.String()), text: Type.String() })
  const upper = visit(asNode(schema), { list: ['a', 'b'], text: 'c' }, ({ value, put }) => {
    if (typeof value === 'string') put(value.toUpperCase())
  })
  t.same(upper, { list: ['A', 'B'], text: 'C' })
  t.equal(
    visit(asNode(Type.String()), 'x', ({ put }) => put('y')),
    'y'
  )
})

t.test('what was put in is visited in the place of what it replaced', async t => {
  const seen: unknown[] = []
  visit(
    asNode(Type.Object({ list: Type.Array(Type.String()) })),
    { list: ['old'] },
    ({ schema, value, put }) => {
      if (schema.type === 'array') put(['new', 'newer'])
      if (schema.type === 'string') seen.push(value)
    }
  )
  t.same(seen, ['new', 'newer'])
})

t.test('a member called __proto__ is a member', async t => {
  const value = JSON.parse('{"names":{"__proto__":"x"}}') as { names: object }
  const schema = Type.Object({
    names: Type.Record(Type.String({ pattern: '^.+$' }), Type.String())
  })
  visit(asNode(schema), value, ({ value: found, put }) => {
    if (found === 'x') put('y')
  })
  t.same(Object.entries(value.names), [['__proto__', 'y']])
  t.equal(Object.getPrototypeOf(value.names), Object.prototype)
})
