import t from 'tap'
import { Type } from 'typebox'
import { nearest } from '../../../src/config/schema/faults.ts'
import { read } from '../../../src/config/read/read.ts'
import { asNode, type Path } from '../../../src/config/schema/node.ts'

t.test('the nearest known name is suggested for a slip, and none for another word', async t => {
  const known = ['notices', 'orders', 'profile', 'x']
  for (const [given, meant] of [
    ['notice', 'notices'],
    ['Notices', 'notices'],
    ['noitces', 'notices'],
    ['order', 'orders'],
    ['proflie', 'profile'],
    ['y', 'x']
  ] as const) {
    t.equal(nearest(given, known), ` Did you mean "${meant}"?`, given)
  }
  for (const given of ['customers', 'abcdefgh', 'ordinary-people']) {
    t.equal(nearest(given, known), '', given)
  }
  t.equal(nearest('anything', []), '')
})

t.test('the nearest of several is suggested, not the first that is near', t => {
  t.equal(
    nearest('cookies', ['cookie-name', 'cookie', 'cooks', 'cookiez']),
    ' Did you mean "cookie"?'
  )
  t.end()
})

const faultsOf = (schema: Parameters<typeof asNode>[0], value: unknown) => {
  const found: string[] = []
  const report = (path: Path, message: string) => found.push(`${path.join('.')}: ${message}`)
  read(asNode(schema), value, { environment: {}, fileOf: String, readText: () => '', report })
  return found
}

t.test('what is found is shown, cut where it is long', async t => {
  const [message = ''] = faultsOf(
    Type.String({ minLength: 1 }),
    Array.from({ length: 100 }, () => 'item')
  )
  t.match(message, /^: expected a text that is not empty, found \["item",.*…$/)
  t.ok(message.length < 120)
})

t.test('a step says which operations there are when it is none or two of them', async t => {
  const step = Type.Object(
    { pick: Type.Optional(Type.String()), wrap: Type.Optional(Type.String()) },
    { additionalProperties: false, minProperties: 1, maxProperties: 1 }
  )
  t.same(faultsOf(step, {}), [': expected one of pick, wrap'])
  t.same(faultsOf(step, { pick: 'a', wrap: 'b' }), [
    ': expected exactly one of pick, wrap; found pick, wrap'
  ])
  t.same(faultsOf(step, { wrap: 'b' }), [])
})

t.test('a mapping of free names says how many members it may have', async t => {
  const fields = Type.Record(Type.String({ pattern: '^.+$' }), Type.String(), {
    minProperties: 1,
    maxProperties: 2
  })
  t.same(faultsOf(fields, {}), [': expected at least one member, found none'])
  t.same(faultsOf(fields, { a: '', b: '', c: '' }), [': expected at most 2 members, found 3'])
  t.same(faultsOf(fields, { a: '', b: '' }), [])
})

t.test('a list says when it is empty or holds an item twice', async t => {
  const list = Type.Array(Type.String(), { minItems: 1, uniqueItems: true })
  t.same(faultsOf(list, []), [': expected at least one item, found none'])
  t.same(faultsOf(list, ['a', 'b', 'a']), [': must not list an item twice'])
})

t.test('a union says what it is made of', async t => {
  t.same(faultsOf(Type.Union([Type.String(), Type.Integer()]), null), [
    ': expected a text that is not empty or a whole number, found null'
  ])
  t.same(
    faultsOf(
      Type.Union([
        Type.Object({ kind: Type.Literal('a') }),
        Type.Object({ kind: Type.Literal('b') })
      ]),
      { kind: 'c' }
    ),
    [': expected "kind" to be one of a, b, found {"kind":"c"}']
  )
})
