/** Errors in the forms of back-ends. In the console's envelope: http/error-bodies.test.ts. */
import fc from 'fast-check'
import t from 'tap'
import { type ErrorFormat, errorFormats, readErrorBody } from '../../src/json/error-body.ts'
import { seed } from '../support/seed.ts'

type Format = keyof typeof errorFormats

const low = (...names: string[]) => Object.fromEntries(names.map(name => [name, ['Low.']]))
const own: ErrorFormat = {
  message: ['error.text'],
  fields: { at: ['error.fields'], name: ['key'], text: ['why'] }
}

const jsonApi = (source: object) => ({ errors: [{ title: 'No.', detail: 'Low.', source }] })
const strapi = (error: object) => ({ error: { message: 'No.', details: { errors: [error] } } })

/** What a back-end says, its message, and its errors of fields. */
const cases: ReadonlyArray<
  readonly [Format | ErrorFormat | undefined, body: unknown, message: string, fields?: object]
> = [
  ['drf', { detail: 'Not found.' }, 'Not found.'],
  ['drf', { n: ['Low.', 'Odd.'] }, 'n: Low.', { n: ['Low.', 'Odd.'] }],
  ['drf', { non_field_errors: ['No.'], n: ['Low.'] }, 'No.', low('n')],
  ['drf', { rows: [{}, { n: ['Low.'] }] }, 'rows.1.n: Low.', low('rows.1.n')],
  ['drf', { at: { non_field_errors: ['Low.'] } }, 'at: Low.', low('at')],
  ['drf', ['Already closed.'], 'Already closed.'],
  ['drf', { detail: 'No.', code: 'no_token', messages: [{ message: 'x' }] }, 'No.'],
  ['json-api', jsonApi({ parameter: 'page' }), 'Low.', low('page')],
  ['json-api', jsonApi({ pointer: '/data/attributes/title' }), 'Low.', low('title')],
  ['json-api', { errors: [{ title: 'Forbidden.' }] }, 'Forbidden.'],
  ['strapi', strapi({ path: ['title'], message: 'Low.' }), 'No.', low('title')],
  ['strapi', strapi({ path: ['rows', 7, { toString: 1 }], message: 'Low.' }), 'No.', low('rows.7')],
  ['directus', { errors: [{ message: 'Low.', extensions: { field: 'n' } }] }, 'Low.', low('n')],
  ['problem', { title: 'No.', errors: [{ detail: 'Low.', pointer: '#/n' }] }, 'No.', low('n')],
  [
    'problem',
    { 'title': 'No.', 'invalid-params': [{ name: 'n', reason: 'Low.' }] },
    'No.',
    low('n')
  ],
  ['laravel', { message: 'No.', errors: { 'tags.0': ['Low.'] } }, 'No.', low('tags.0')],
  ['aspnet', { title: 'No.', errors: { UserName: ['Low.'] } }, 'No.', low('userName')],
  ['aspnet', { title: 'No.', errors: { '$.price': ['Low.'] } }, 'No.', low('price')],
  ['aspnet', { title: 'No.', errors: { 'Rows[0].Qty': ['Low.'] } }, 'No.', low('rows[0].qty')],
  [own, { error: { text: 'No.', fields: [{ key: 'n', why: 'Low.' }] } }, 'No.', low('n')],
  // Without a format only the usual message is read.
  [undefined, { msg: 'No.', errors: { n: ['Low.'] } }, 'No.'],
  [undefined, { message: '', error: 'Denied' }, 'Denied']
]

t.test('each format gives its message and the errors of its fields', async t => {
  for (const [format, body, message, fieldErrors] of cases) {
    const expected = { message, ...(fieldErrors && { fieldErrors }) }
    t.strictSame(readErrorBody(body, format), expected, JSON.stringify(body))
  }
  t.strictSame(readErrorBody(null), {})
})

t.test('no name reaches a prototype, and everything is bounded', async t => {
  const hostile = JSON.parse(
    '{"errors": {"__proto__": ["x"], "a.__proto__.b": ["x"], "constructor": ["x"], "ok": ["y"]}}'
  ) as unknown
  t.same(readErrorBody(hostile, 'laravel'), { message: 'ok: y', fieldErrors: { ok: ['y'] } })
  const many = Object.fromEntries(
    Array.from({ length: 500 }, (_, index) => [`f${index}`, Array(100).fill('x'.repeat(2000))])
  )
  const { message = '', fieldErrors = {} } = readErrorBody(many, 'drf')
  t.equal(message.length, 500)
  t.equal(Object.keys(fieldErrors).length, 50)
  t.ok(Object.values(fieldErrors).every(texts => texts.length === 10 && texts[0]?.length === 500))
  let deep: unknown = ['x']
  for (let depth = 0; depth < 5000; depth++) deep = { a: deep }
  t.same(readErrorBody(deep, 'drf'), {})
})

t.test('any JSON is read without a throw, into texts by name', async () => {
  const formats = fc.constantFrom(...(Object.keys(errorFormats) as Format[]))
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 5 }), formats, (value, format) =>
      [value, { errors: value, error: { details: { errors: value } } }]
        .flatMap(body => Object.values(readErrorBody(body, format).fieldErrors ?? {}).flat())
        .every(text => typeof text === 'string' && text !== '')
    ),
    { seed, numRuns: 1000 }
  )
})
