/** How an answer deviates from its schema. Faults of schemas: config/check/contracts.yaml. */
import t from 'tap'
import { parse } from 'yaml'
import { parseKeepingDigits } from '../../src/json/digits.ts'
import { compileContract, type JsonSchema } from '../../src/contract/schema.ts'

const notices = parse(`
type: array
items: { $ref: '#/definitions/Notice' }
definitions:
  Notice:
    type: object
    required: [id]
    properties:
      id: { type: string }
      at: { type: [string, 'null'], format: date-time }
      parent: { anyOf: [{ $ref: '#/definitions/Notice' }, { type: 'null' }] }
      by:
        oneOf:
          - { type: object, required: [user], properties: { user: { type: string } } }
          - { type: object, required: [robot], properties: { robot: { type: string } } }
      counts: { type: object, additionalProperties: { type: number } }
      open: { type: object, properties: { known: {} }, additionalProperties: true }
      sealed: { type: object, properties: { known: {} }, additionalProperties: false }
    allOf: [{ properties: { tag: { enum: [a, b] } } }]
`) as JsonSchema
const object = (properties: object, more: object = {}) => ({ type: 'object', properties, ...more })
const text = { type: 'string' }

const kinds = (schema: JsonSchema, value: unknown) =>
  compileContract(schema)
    .deviations(value)
    .map(({ kind, path }) => `${kind} ${path}`)

const all = {
  at: null,
  parent: { id: '0' },
  by: { robot: 'r' },
  counts: { a: 1 },
  open: { known: 1, more: 2 },
  tag: 'a'
}

/** Notices, each with an id unless it says otherwise. */
const answers: ReadonlyArray<readonly [items: object[], ...deviations: string[]]> = [
  [[]],
  [[all]],
  [[{ id: undefined }, { id: undefined }, { id: 1 }], 'missing [].id', 'retyped [].id'],
  [[{ at: 'yesterday', tag: 'c' }], 'invalid [].tag', 'invalid [].at'],
  [[{ fresh: 1 }, { fresh: 2, other: 3 }], 'new [].fresh', 'new [].other'],
  [[{ parent: { id: '0', fresh: 1 } }], 'new [].parent.fresh'],
  // Of a union, the one branch that could be meant is told, and else that none fits.
  [[{ parent: {} }], 'missing [].parent.id'],
  [[{ parent: 7 }], 'retyped [].parent'],
  [[{ by: {} }], 'retyped [].by'],
  [[{ by: { user: 'u', fresh: 1 } }], 'new [].by.fresh'],
  [[{ by: { user: { name: 'u' } } }], 'retyped [].by'],
  // A schema that says what else may be there is believed.
  [[{ open: { anything: 1 }, counts: { anything: 1 } }]],
  [[{ sealed: { anything: 1 } }], 'new [].sealed.anything'],
  // Names that may be data are not told.
  [[{ counts: { 'ann@example.com': 'x' } }], 'retyped [].counts.*'],
  [[{ 'ann@example.com': 'x' }], 'new [].*'],
  [[{ toString: 'x' }], 'new [].toString']
]

t.test('what differs is told by kind and path, each once', t => {
  for (const [items, ...deviations] of answers) {
    const answer = JSON.parse(JSON.stringify(items.map(item => ({ id: '1', ...item })))) as unknown
    t.same(kinds(notices, answer), deviations, JSON.stringify(items))
  }
  for (const answer of [{ data: [] }, null]) t.same(kinds(notices, answer), ['retyped (all)'])
  t.end()
})

t.test('of a long list the first items are looked at, unless the schema counts them', t => {
  const row = { a: 1, author: 'ann' }
  const rows = [...Array.from({ length: 4999 }, () => row), { ...row, b: 1 }]
  const author = { anyOf: [{ type: 'object' }, { type: 'array' }] }
  const list = { type: 'array', items: { properties: { a: text, author } } }
  const retyped = ['retyped [].a', 'retyped [].author']
  t.same(kinds(list, rows), retyped)
  t.same(kinds({ ...list, minItems: 4000 }, rows), [...retyped, 'new [].b'])
  t.end()
})

t.test('a number that a double cannot hold is a number', t => {
  const long = parseKeepingDigits('{"n":1541815603606036481}')
  for (const [n, ...deviations] of [
    [{ type: 'number' }],
    [object({ id: {} }), 'retyped n'],
    [{ anyOf: [{ type: 'object' }, { type: 'string' }] }, 'retyped n'],
    [{ not: { type: 'number' } }, 'invalid n'],
    [{ maximum: 10 }, 'invalid n']
  ] as const) {
    t.same(kinds(object({ n }), long), deviations)
    t.equal(compileContract(object({ n })).refusal(long)?.path, deviations[0] && 'n')
  }
  t.end()
})

const menus = { menus: { type: 'array', items: { $ref: '#/$defs/Menu' } } }
const children = { type: 'array', items: { $ref: '#/$defs/Menu' } }
const byName = object(menus, { $defs: { Menu: object({ id: text, children }) } })
const byRoot = object({ id: text, next: { $ref: '#' } })
const nested = (item: object) => ({
  menus: [{ id: '1', children: [{ id: '2', children: [item, { id: '4' }] }] }]
})
const condition = { properties: { x: { type: 'number' }, y: {} }, patternProperties: { '^z': {} } }
const ofKind = object({ kind: text })
const unless = { if: { properties: { kind: { const: 'b' } } }, else: condition }
const gone = { properties: { state: { const: 'gone' } }, required: ['state'] }
const named = { propertyNames: { anyOf: [{ const: 'a' }, { pattern: '^x' }] } }

const schemas: ReadonlyArray<readonly [JsonSchema, value: unknown, ...deviations: string[]]> = [
  // Of a tree, no member that the schema names is new.
  [byName, nested({ id: '3' })],
  [
    byName,
    nested({ id: 3, icon: 'x' }),
    'retyped menus[].children[].children[].id',
    'new menus[].children[].children[].icon'
  ],
  [byRoot, { id: '1', next: { id: 3, icon: 'x' } }, 'retyped next.id', 'new next.icon'],
  [
    { additionalProperties: object({ age: { type: 'number' } }) },
    { ann: { age: 'x', size: 1 } },
    'retyped *.age',
    'new *.size'
  ],
  // A member that only a condition names is not new beside another difference.
  [{ ...ofKind, dependentSchemas: { kind: condition } }, { kind: 'a', x: 's', z: 1 }, 'retyped x'],
  [{ ...ofKind, ...unless }, { kind: 'a', x: 's', y: 1, z: 1 }, 'retyped x'],
  [{ ...ofKind, ...unless }, { kind: 'b', y: 1 }, 'new y'],
  // What a member must not be, or some item has, names no members.
  [{ type: 'object', not: gone }, { id: 1 }],
  [{ type: 'array', contains: gone }, [{ state: 'gone', id: 1 }]],
  [named, { b: 1, c: 1 }, 'retyped (all)', 'invalid (all)']
]

t.test('schemas may lead to themselves, and hold for some values only', t => {
  for (const [schema, value, ...deviations] of schemas) {
    t.same(kinds(schema, value), deviations, JSON.stringify(schema))
  }
  t.end()
})
