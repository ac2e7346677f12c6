import t from 'tap'
import { parseKeepingDigits } from '../../src/json/digits.ts'
import { compileContract } from '../../src/contract/check.ts'
import { type JsonSchema, schemaProblem } from '../../src/contract/schema.ts'

const notices = {
  type: 'array',
  items: { $ref: '#/definitions/Notice' },
  definitions: {
    Notice: {
      type: 'object',
      required: ['id'],
      properties: {
        id: { type: 'string' },
        at: { type: ['string', 'null'], format: 'date-time' },
        parent: { anyOf: [{ $ref: '#/definitions/Notice' }, { type: 'null' }] },
        by: {
          oneOf: [
            { type: 'object', required: ['user'], properties: { user: { type: 'string' } } },
            { type: 'object', required: ['robot'], properties: { robot: { type: 'string' } } }
          ]
        },
        counts: { type: 'object', additionalProperties: { type: 'number' } },
        open: { type: 'object', properties: { known: {} }, additionalProperties: true },
        sealed: { type: 'object', properties: { known: {} }, additionalProperties: false }
      },
      allOf: [{ properties: { tag: { enum: ['a', 'b'] } } }]
    }
  }
}
const { deviations, refusal } = compileContract(notices)
const of = (...items: unknown[]) => deviations(items).map(({ kind, path }) => `${kind} ${path}`)

t.test('an answer that fits differs in nothing', t => {
  t.same(of(), [])
  t.same(
    of({
      id: '1',
      at: null,
      parent: { id: '0' },
      by: { robot: 'r' },
      counts: { a: 1 },
      open: { known: 1, more: 2 },
      tag: 'a'
    }),
    []
  )
  t.end()
})

t.test('missing, retyped, invalid and new members are told by path, each once', t => {
  t.same(of({}, {}, { id: 1 }), ['missing [].id', 'retyped [].id'])
  t.same(of({ id: '1', at: 'yesterday', tag: 'c' }), ['invalid [].tag', 'invalid [].at'])
  t.same(of({ id: '1', fresh: 1 }, { id: '2', fresh: 2, other: 3 }), [
    'new [].fresh',
    'new [].other'
  ])
  t.same(of({ id: '1', parent: { id: '0', fresh: 1 } }), ['new [].parent.fresh'])
  t.same(deviations({ data: [] }), [{ kind: 'retyped', path: '(all)' }])
  t.same(deviations(null), [{ kind: 'retyped', path: '(all)' }])
  t.end()
})

t.test('of a union, the one branch that could be meant is told, and else that none fits', t => {
  t.same(of({ id: '1', parent: {} }), ['missing [].parent.id'])
  t.same(of({ id: '1', parent: 7 }), ['retyped [].parent'])
  t.same(of({ id: '1', by: {} }), ['retyped [].by'])
  t.same(of({ id: '1', by: { user: 'u', fresh: 1 } }), ['new [].by.fresh'])
  t.same(of({ id: '1', by: { user: { name: 'u' } } }), ['retyped [].by'])
  t.end()
})

t.test('of a long list whose members all fail a union, each difference is told once', t => {
  const author = { anyOf: [{ type: 'object' }, { type: 'array' }] }
  const list = compileContract({
    type: 'object',
    properties: { rows: { type: 'array', items: { type: 'object', properties: { author } } } }
  })
  const rows = Array.from({ length: 5000 }, () => ({ author: 'ann' }))
  t.same(list.deviations({ rows }), [{ kind: 'retyped', path: 'rows[].author' }])
  t.end()
})

t.test('names that fail a union are told, several as well as one', t => {
  const names = compileContract({
    type: 'object',
    additionalProperties: true,
    propertyNames: { anyOf: [{ const: 'a' }, { pattern: '^x' }] }
  })
  const one = names.deviations({ b: 1 })
  t.not(one.length, 0)
  t.same(names.deviations({ b: 1, c: 1 }), one)
  t.end()
})

t.test('a schema that says what else may be there is believed', t => {
  t.same(of({ id: '1', open: { anything: 1 }, counts: { anything: 1 } }), [])
  t.same(of({ id: '1', sealed: { anything: 1 } }), ['new [].sealed.anything'])
  t.match(refusal([{ id: '1', sealed: { anything: 1 } }]), {
    kind: 'new',
    path: '[].sealed.anything'
  })
  t.end()
})

t.test('only what the schema refuses is a refusal: a new member is none', t => {
  t.equal(refusal([{ id: '1', fresh: 1 }]), undefined)
  t.same(refusal([{ id: '1', fresh: 1 }, { at: null }]), { kind: 'missing', path: '[].id' })
  t.same(refusal([{ id: '1', parent: { at: null } }]), { kind: 'missing', path: '[].parent.id' })
  t.end()
})

t.test('a member’s name that may be data is not told', t => {
  t.same(of({ id: '1', counts: { 'ann@example.com': 'x' } }), ['retyped [].counts.*'])
  t.same(of({ 'id': '1', 'ann@example.com': 'x' }), ['new [].*'])
  const member = { type: 'object', properties: { age: { type: 'number' } } }
  const members = compileContract({ type: 'object', additionalProperties: member })
  t.same(members.deviations({ ann: { age: 'x', size: 1 } }), [
    { kind: 'retyped', path: '*.age' },
    { kind: 'new', path: '*.size' }
  ])
  t.end()
})

t.test('a number that a double cannot hold is a number', t => {
  const long = parseKeepingDigits('{"n":1541815603606036481}')
  const check = (n: object) => {
    const schema = compileContract({ type: 'object', properties: { n } })
    return [schema.refusal(long), ...schema.deviations(long)].map(
      deviation => `${deviation?.kind} ${deviation?.path}`
    )
  }
  t.same(check({ type: 'object' }), ['retyped n', 'retyped n'])
  t.same(check({ type: 'object', properties: { id: {} } }), ['retyped n', 'retyped n'])
  t.same(check({ anyOf: [{ type: 'object' }, { type: 'string' }] }), ['retyped n', 'retyped n'])
  t.same(check({ not: { type: 'number' } }), ['invalid n', 'invalid n'])
  t.same(check({ maximum: 10 }), ['invalid n', 'invalid n'])
  t.same(check({ type: 'number' }), ['undefined undefined'])
  t.end()
})

const kinds = (schema: JsonSchema, value: unknown) =>
  compileContract(schema)
    .deviations(value)
    .map(({ kind, path }) => `${kind} ${path}`)

t.test('of a tree, no member that the schema names is new', t => {
  const menu = (id: unknown, children: object[] = [], more = {}) => ({
    id,
    name: 'n',
    ...more,
    children
  })
  const members = { id: { type: 'string' }, name: { type: 'string' } }
  const byName = {
    type: 'object',
    properties: { menus: { type: 'array', items: { $ref: '#/$defs/Menu' } } },
    $defs: {
      Menu: {
        type: 'object',
        properties: { ...members, children: { type: 'array', items: { $ref: '#/$defs/Menu' } } }
      }
    }
  }
  const place = 'menus[].children[].children[]'
  const nested = (id: unknown, more = {}) => ({
    menus: [menu('1', [menu('2', [menu(id, [], more), menu('4')])])]
  })
  t.same(kinds(byName, nested('3')), [])
  t.same(kinds(byName, nested(3)), [`retyped ${place}.id`])
  t.same(kinds(byName, nested('3', { icon: 'x' })), [`new ${place}.icon`])
  t.same(kinds(byName, nested(3, { icon: 'x' })), [`retyped ${place}.id`, `new ${place}.icon`])
  const byRoot = { type: 'object', properties: { ...members, next: { $ref: '#' } } }
  t.same(kinds(byRoot, { id: '1', next: { id: '2', next: { id: 3, icon: 'x' } } }), [
    'retyped next.next.id',
    'new next.next.icon'
  ])
  t.end()
})

t.test('a member that only a condition names is not new beside another difference', t => {
  const condition = {
    properties: { x: { type: 'number' }, y: {} },
    patternProperties: { '^z': {} }
  }
  const schema = { type: 'object', properties: { kind: { type: 'string' } } }
  const value = { kind: 'a', x: 's', y: 1, z: 1 }
  t.same(kinds({ ...schema, dependentSchemas: { kind: condition } }, value), ['retyped x'])
  const unless = { properties: { kind: { const: 'b' } } }
  t.same(kinds({ ...schema, if: unless, else: condition }, value), ['retyped x'])
  t.same(kinds({ ...schema, if: unless, else: condition }, { kind: 'b', y: 1 }), ['new y'])
  t.end()
})

t.test('what a member must not be, or some item has, names no members', t => {
  const state = { properties: { state: { const: 'gone' } }, required: ['state'] }
  t.same(kinds({ type: 'object', not: state }, { id: 1 }), [])
  t.same(kinds({ type: 'array', contains: state }, [{ state: 'gone', id: 1 }]), [])
  t.end()
})

t.test('what is wrong with a schema is told with its place', t => {
  const told = (schema: Record<string, unknown>) =>
    [schemaProblem(schema) ?? []].flat().map(each => `${each.path.join('.')}: ${each.message}`)
  t.same(told(notices), [])
  t.same(told({ $schema: 'http://json-schema.org/draft-07/schema#', $id: 'x', type: 'string' }), [])
  t.match(told({ $schema: 'http://json-schema.org/draft-04/schema#' }), [
    /^\$schema: expected JSON Schema 2020-12/
  ])
  t.same(told({ properties: { a: { type: 'strng' } } }), [
    'properties.a.type: is not a type of JSON Schema'
  ])
  t.same(told({ properties: { a: { requird: ['b'] } } }), [
    'properties.a.requird: unknown keyword: "requird"'
  ])
  t.same(told({ properties: { a: { $ref: '#/definitions/None' } } }), [
    "properties.a.$ref: can't resolve reference #/definitions/None"
  ])
  t.match(told({ properties: { a: { pattern: '(' } } }), [
    /^properties\.a\.pattern: Invalid regular expression/
  ])
  t.same(told({ properties: { a: { format: 'dat' } } }), [
    'properties.a.format: unknown format "dat"'
  ])
  t.match(told({ items: [{ type: 'string' }] }), [/^items: .*prefixItems/])
  t.same(told({ properties: { toString: { requird: [] } } }), [
    'properties.toString.requird: unknown keyword: "requird"'
  ])
  t.match(told({ $ref: '#a', $defs: { A: { $anchor: 'a' } } }), [
    '$defs.A.$anchor: unknown keyword: "$anchor"'
  ])
  t.end()
})
