import fc from 'fast-check'
import t from 'tap'
import { parseKeepingDigits } from '../../src/json/digits.ts'
import { errorFormats, readErrorBody } from '../../src/json/error-body.ts'
import { testGateway } from '../support/gateway.ts'
import { json, testUpstream } from '../support/upstream.ts'
import { seed } from '../support/seed.ts'

type Format = keyof typeof errorFormats

const cases: ReadonlyArray<readonly [format: Format, body: unknown, expected: object]> = [
  ['drf', { detail: 'Not found.' }, { message: 'Not found.' }],
  [
    'drf',
    { title: ['This field is required.'], price: ['Too low.', 'Not whole.'] },
    {
      message: 'title: This field is required.',
      fieldErrors: { title: ['This field is required.'], price: ['Too low.', 'Not whole.'] }
    }
  ],
  [
    'drf',
    { non_field_errors: ['Ends before it begins.'], end: ['Too early.'] },
    { message: 'Ends before it begins.', fieldErrors: { end: ['Too early.'] } }
  ],
  [
    'drf',
    { lines: [{}, { price: ['Too low.'] }], address: { non_field_errors: ['Unknown.'] } },
    {
      message: 'lines.1.price: Too low.',
      fieldErrors: { 'lines.1.price': ['Too low.'], 'address': ['Unknown.'] }
    }
  ],
  ['drf', ['Already closed.'], { message: 'Already closed.' }],
  [
    'drf',
    [{}, { title: ['Too long.'] }],
    { message: '1.title: Too long.', fieldErrors: { '1.title': ['Too long.'] } }
  ],
  [
    'drf',
    { detail: 'Token is invalid.', code: 'token_not_valid', messages: [{ message: 'Expired.' }] },
    { message: 'Token is invalid.' }
  ],
  [
    'json-api',
    {
      errors: [
        { title: 'Invalid', detail: 'Too short.', source: { pointer: '/data/attributes/title' } },
        { detail: 'Unknown.', source: { pointer: '/data/relationships/author' } },
        { title: 'Bad page', source: { parameter: 'page' } }
      ]
    },
    {
      message: 'Too short.',
      fieldErrors: { title: ['Too short.'], author: ['Unknown.'], page: ['Bad page'] }
    }
  ],
  ['json-api', { errors: [{ title: 'Forbidden' }] }, { message: 'Forbidden' }],
  [
    'strapi',
    {
      data: null,
      error: {
        status: 400,
        name: 'ValidationError',
        message: '2 errors occurred',
        details: {
          errors: [
            { path: ['title'], message: 'title must be defined.', name: 'ValidationError' },
            { path: ['seo', 'text'], message: 'Too long.', name: 'ValidationError' }
          ]
        }
      }
    },
    {
      message: '2 errors occurred',
      fieldErrors: { 'title': ['title must be defined.'], 'seo.text': ['Too long.'] }
    }
  ],
  [
    'strapi',
    {
      data: null,
      error: { status: 404, name: 'NotFoundError', message: 'Not Found', details: {} }
    },
    { message: 'Not Found' }
  ],
  [
    'directus',
    {
      errors: [
        {
          message: 'Value is required.',
          extensions: { code: 'FAILED_VALIDATION', field: 'title', type: 'required' }
        }
      ]
    },
    { message: 'Value is required.', fieldErrors: { title: ['Value is required.'] } }
  ],
  [
    'problem',
    {
      type: 'https://example.net/validation-error',
      title: 'Your request is not valid.',
      errors: [{ detail: 'must be positive', pointer: '#/age' }]
    },
    { message: 'Your request is not valid.', fieldErrors: { age: ['must be positive'] } }
  ],
  [
    'problem',
    { 'title': 'Invalid', 'invalid-params': [{ name: 'color', reason: 'must be red' }] },
    { message: 'Invalid', fieldErrors: { color: ['must be red'] } }
  ],
  [
    'laravel',
    {
      message: 'The email field is required. (and 1 more error)',
      errors: { 'email': ['The email field is required.'], 'tags.0': ['Too long.'] }
    },
    {
      message: 'The email field is required. (and 1 more error)',
      fieldErrors: { 'email': ['The email field is required.'], 'tags.0': ['Too long.'] }
    }
  ],
  [
    'aspnet',
    {
      title: 'One or more validation errors occurred.',
      status: 400,
      errors: { 'UserName': ['Required.'], '$.price': ['Not a number.'], 'Lines[0].Qty': ['Low.'] }
    },
    {
      message: 'One or more validation errors occurred.',
      fieldErrors: {
        'userName': ['Required.'],
        'price': ['Not a number.'],
        'lines[0].qty': ['Low.']
      }
    }
  ]
]

t.test('each format gives its message and the errors of its fields', async t => {
  for (const [format, body, expected] of cases) {
    t.same(readErrorBody(body, format), expected, format)
  }
})

t.test('paths of one’s own; without a format only the usual message is read', async t => {
  const body = { error: { text: 'No.', fields: [{ key: 'a', why: 'Bad.' }] }, errors: { b: ['x'] } }
  const fields = { at: ['error.fields'], name: ['key'], text: ['why'] }
  t.same(readErrorBody(body, { message: ['error.text'], fields }), {
    message: 'No.',
    fieldErrors: { a: ['Bad.'] }
  })
  t.same(readErrorBody({ msg: 'No.', errors: { b: ['x'] } }), { message: 'No.' })
  t.same(readErrorBody({ msg: 'No.' }, 'strapi'), { message: 'No.' })
  t.same(readErrorBody({ message: '', error: 'Denied' }), { message: 'Denied' })
  t.same(readErrorBody(null), {})
})

t.test('a path as a list may have steps that are no texts', async t => {
  const [at, name, text] = [['errors'], ['path'], ['text']]
  const pathOf = (path: string) =>
    Object.keys(
      readErrorBody(parseKeepingDigits(`{"message":"m","errors":[{"path":${path},"text":"x"}]}`), {
        message: ['message'],
        fields: { at, name, text }
      }).fieldErrors ?? {}
    )
  t.same(pathOf('["rows", 7]'), ['rows.7'])
  t.same(pathOf('["rows", 12345678901234567890]'), ['rows.12345678901234567890'])
  t.same(pathOf('["rows", {"toString": 1}, ["a"], "id"]'), ['rows.id'])
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

t.test('any JSON is read without a throw, into texts by name', async t => {
  const formats = Object.keys(errorFormats) as Format[]
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 5 }), fc.constantFrom(...formats), (value, format) => {
      for (const body of [value, { errors: value, error: { details: { errors: value } } }]) {
        const { fieldErrors = {} } = readErrorBody(body, format)
        const texts = Object.values(fieldErrors).flat()
        if (!texts.every(text => typeof text === 'string' && text !== '')) return false
      }
      return true
    }),
    { seed, numRuns: 1000 }
  )
  t.pass()
})

t.test('on a shaped route the console gets both, with the true status', async t => {
  const body = { title: ['This field is required.'] }
  const backend = await testUpstream(t.after, json(422, body))
  const route = (more: object) => ({ upstream: 'b', access: 'public', rewrite: '/x', ...more })
  const gateway = await testGateway(t.after, {
    gateway: { envelope: { fieldErrors: 'errors' } },
    routes: {
      upstreams: { b: { url: backend.url, errors: 'drf' }, c: { url: backend.url } },
      routes: {
        shaped: route({ path: '/api/shaped', shape: 'item' }),
        plain: route({ path: '/api/plain' }),
        unread: route({ path: '/api/unread', shape: 'item', upstream: 'c' }),
        parts: {
          path: '/api/parts',
          access: 'public',
          parts: { a: { upstream: 'b', rewrite: '/x', required: true } }
        },
        problem: route({ path: '/api/problem', shape: 'item', dialect: 'problem' })
      },
      shapes: { item: [{ wrap: 'envelope' }] }
    }
  })
  for (const path of ['/api/shaped', '/api/parts', '/api/problem']) {
    const { status, json: answer } = await gateway.call(path)
    t.equal(status, 422, path)
    t.match(answer, { errors: body }, path)
    t.match(answer, { [path === '/api/problem' ? 'detail' : 'message']: /This field is required/ })
  }
  t.match(
    (await gateway.call('/api/plain')).json,
    { message: /This field is required/ },
    'case U8: on one without a shape too'
  )
  t.notOk('errors' in ((await gateway.call('/api/unread')).json as object))
})
