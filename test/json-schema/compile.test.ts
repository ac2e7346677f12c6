import t from 'tap'
import { compileSchema, schemaProblems } from '../../src/json-schema/compile.ts'

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
const { deviations, refusal } = compileSchema(notices)
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
  t.end()
})

t.test(
  'a number in its own digits is a number, and what is nested without end breaks nothing',
  t => {
    const raw = (JSON as unknown as { rawJSON: (text: string) => unknown }).rawJSON(
      '12345678901234567890'
    )
    t.same(of({ id: '1', counts: { a: raw } }), [])
    t.same(of({ id: raw }), ['retyped [].id'])
    let deep: unknown = { id: 'x', fresh: 1 }
    for (let level = 0; level < 50_000; level++) deep = { id: 'x', parent: deep }
    t.same(deviations([deep]), [{ kind: 'invalid', path: '(all)' }])
    t.end()
  }
)

t.test('what is wrong with a schema is told with its place', t => {
  const told = (schema: Record<string, unknown>) =>
    schemaProblems(schema).map(({ path, message }) => `${path.join('.')}: ${message}`)
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
    'properties.a.$ref: there is nothing at "#/definitions/None": a contract must hold all that it refers to'
  ])
  t.match(told({ properties: { a: { pattern: '(' } } }), [
    /^properties\.a\.pattern: Invalid regular expression/
  ])
  t.same(told({ properties: { a: { format: 'dat' } } }), ['properties.a: unknown format "dat"'])
  t.match(told({ items: [{ type: 'string' }] }), [/^items: .*prefixItems/])
  t.same(told({ required: 'a', minItems: 'b' }).length, 2)
  t.end()
})
