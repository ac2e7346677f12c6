import t from 'tap'
import type { ShapeStep } from '../../src/config/schema/shapes.ts'
import { describeShape } from '../../src/api-docs/shape-schema.ts'

const dataOf = (...steps: ShapeStep[]) =>
  describeShape(steps, { item: [{ pick: ['id', 'title'] }] }).data

t.test(
  'a shape tells the members that it picks, renames and makes, and the types that it knows',
  t => {
    t.same(dataOf({ unwrap: 'a' }), {})
    t.same(
      dataOf(
        { pick: ['id', 'at'] },
        { rename: { at: 'when' } },
        { convert: { id: 'string', when: 'date-seconds' } }
      ),
      {
        type: 'object',
        properties: {
          id: { type: ['string', 'null'] },
          when: { type: ['string', 'null'], format: 'date-time' }
        }
      }
    )
    t.same(
      dataOf({ default: { read: false, note: null } }, { constant: { kind: 'notice', list: [] } }),
      {
        type: 'object',
        properties: {
          read: { type: 'boolean' },
          note: {},
          kind: { const: 'notice' },
          list: { type: 'array' }
        },
        required: ['read', 'note', 'kind', 'list']
      }
    )
    t.same(dataOf({ map: { state: { 0: 'new', '*': 'old' }, open: { 0: 'new' } } }), {
      type: 'object',
      properties: { state: { enum: ['new', 'old'] }, open: {} }
    })
    t.same(dataOf({ constant: { a: 1, b: 2 } }, { drop: ['a'] }), {
      type: 'object',
      properties: { b: { const: 2 } },
      required: ['b']
    })
    t.same(dataOf({ constant: { a: 1 } }, { move: { a: 'x.y' } }), {
      type: 'object',
      properties: { x: { type: 'object', properties: { y: { const: 1 } } } }
    })
    t.same(dataOf({ constant: { a: 1, b: 2 } }, { move: { a: 'b', b: 'a' } }), {
      type: 'object',
      properties: { a: { const: 2 }, b: { const: 1 } }
    })
    t.same(dataOf({ constant: { a: 1, b: 2 } }, { move: { b: 'x.b', a: 'x' } }), {
      type: 'object',
      properties: { x: { type: 'object', properties: { b: { const: 2 } } } }
    })
    t.same(dataOf({ at: { path: 'x.y', operations: [{ pick: ['a'] }] } }), {
      type: 'object',
      properties: {
        x: { type: 'object', properties: { y: { type: 'object', properties: { a: {} } } } }
      }
    })
    t.same(dataOf({ pick: ['a', 'b'] }, { lift: 'a' }), {
      type: 'object',
      properties: { b: {} }
    })
    t.same(dataOf({ nest: { as: 'rows', count: 'n' } }), {
      type: 'object',
      properties: { rows: { type: 'array', items: {} }, n: { type: 'integer', minimum: 0 } },
      required: ['rows', 'n']
    })
    t.end()
  }
)

t.test('a default is among the values of its member, and takes the place of null', t => {
  const memberOf = (...steps: ShapeStep[]) =>
    (dataOf(...steps)['properties'] as Record<string, unknown>)['a']
  const convert = (kind: 'number' | 'date-text' | 'string') => ({ convert: { a: kind } })
  t.same(memberOf(convert('number'), { default: { a: 0 } }), { type: 'number' })
  t.same(memberOf(convert('number'), { default: { a: '-' } }), {
    anyOf: [{ type: 'number' }, { const: '-' }]
  })
  t.same(memberOf(convert('number'), { default: { a: null } }), { type: ['number', 'null'] })
  t.same(memberOf(convert('date-text'), { default: { a: '' } }), {
    anyOf: [{ type: 'string', format: 'date-time' }, { const: '' }]
  })
  t.same(memberOf({ default: { a: '' } }, convert('string')), { type: 'string' })
  t.same(memberOf({ constant: { a: 1 } }, { default: { a: [] } }), {
    anyOf: [{ const: 1 }, { type: 'array' }]
  })
  t.same(memberOf({ constant: { a: null } }, { default: { a: 1 } }), { const: 1 })
  const map = { map: { a: { 0: 'unread', 1: null, '*': 'unknown' } } }
  t.same(memberOf(map, { default: { a: 'none' } }), { enum: ['unread', 'unknown', 'none'] })
  t.same(memberOf(map, { default: { a: null } }), { enum: ['unread', null, 'unknown'] })
  t.end()
})

t.test('a member that moves out of an object is not required there', t => {
  t.same(
    dataOf(
      { at: { path: 'user', operations: [{ default: { name: 'x', age: 1 } }] } },
      { move: { 'user.name': 'author', 'other.b': 'c' } }
    ),
    {
      type: 'object',
      properties: {
        user: { type: 'object', properties: { age: { type: 'number' } }, required: ['age'] },
        author: { type: 'string' },
        c: {}
      }
    }
  )
  t.end()
})

t.test('members may be called like those of every object', t => {
  for (const steps of [
    [{ pick: ['toString'] }],
    [{ rename: { valueOf: 'toString' } }],
    [{ pick: [] }, { move: { 'a.valueOf': 'toString' } }],
    [
      { convert: { toString: 'string' } },
      { pick: ['toString'] },
      { at: { path: 'toString', operations: [] } }
    ]
  ]) {
    const { properties } = dataOf(...steps) as { properties: Record<string, unknown> }
    t.type(properties['toString'], 'object', JSON.stringify(steps))
  }
  t.end()
})

t.test('lists tell their items, and what stands beside `data`', t => {
  const items = { type: 'object', properties: { id: {}, title: {} } }
  t.match(
    describeShape([{ each: [{ use: 'item' }] }, { wrap: 'list' }], {
      item: [{ pick: ['id', 'title'] }]
    }),
    { data: { type: 'array', items }, isWrapped: true, requiredBeside: ['total'] }
  )
  const paged = describeShape(
    [{ paging: { list: 'l', current: 'c', pageSize: 's', each: [{ use: 'item' }] } }],
    { item: [{ pick: ['id', 'title'] }] }
  )
  t.same(
    [paged.data, Object.keys(paged.beside), paged.requiredBeside],
    [{ type: 'array', items }, ['total', 'current', 'pageSize'], ['total']]
  )
  t.match(describeShape([{ pick: ['a'] }, { wrap: 'envelope' }], {}), {
    data: { properties: { a: {} } },
    isWrapped: true,
    beside: {}
  })
  t.match(describeShape([{ pick: ['a'] }], {}), { isWrapped: false })
  t.end()
})
