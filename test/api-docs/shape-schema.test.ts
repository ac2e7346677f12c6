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
        properties: { id: { type: 'string' }, when: { type: 'string', format: 'date-time' } }
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
    t.same(dataOf({ at: { path: 'x.y', operations: [{ pick: ['a'] }] } }), {
      type: 'object',
      properties: {
        x: { type: 'object', properties: { y: { type: 'object', properties: { a: {} } } } }
      }
    })
    t.same(dataOf({ pick: ['a'] }, { jsonata: 'a' }), {})
    t.end()
  }
)

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
