import t from 'tap'
import { parseKeepingDigits } from '../../src/json/digits.ts'
import type { ShapeStep } from '../../src/config/schema/shapes.ts'
import { loadConfig } from '../../src/config/load/load.ts'
import { valueAt } from '../../src/json/values.ts'
import { compileShape, type ShapeContext } from '../../src/shaping/shape.ts'
import { configFolder } from '../support/gateway.ts'

const wrap = (data: unknown, extra: Readonly<Record<string, unknown>> = {}) => ({
  success: true,
  data,
  ...extra
})
const context = (shapes: ShapeContext['shapes'] = {}): ShapeContext => ({
  wrap,
  shapes
})
const shaped = (steps: readonly ShapeStep[], value: unknown, shapes: ShapeContext['shapes'] = {}) =>
  compileShape(steps, context(shapes)).apply(value)
const refused = (steps: readonly ShapeStep[], value: unknown) =>
  compileShape(steps, context()).refusal(value)

t.test('no operation leaves the value as it is', async t => {
  const value = { a: [1] }
  t.equal(shaped([], value), value)
})

t.test(
  'unwrap goes on with what is at a path, also through lists; null where there is nothing',
  async t => {
    t.same(shaped([{ unwrap: 'result.list' }], { result: { list: [1, 2] } }), [1, 2])
    t.equal(shaped([{ unwrap: 'a.1.b' }], { a: [{}, { b: 'x' }] }), 'x')
    t.equal(shaped([{ unwrap: 'a' }], { a: false }), false)
    for (const value of [
      {},
      { result: null },
      { result: 'text' },
      { result: {} },
      [],
      null,
      5,
      'result',
      true
    ]) {
      t.equal(shaped([{ unwrap: 'result.list' }], value), null, JSON.stringify(value))
    }
  }
)

t.test('unwrap finds only what is there by itself, not what objects are born with', async t => {
  for (const path of [
    'constructor',
    '__proto__',
    'toString',
    'constructor.name',
    '__proto__.constructor',
    'a.length.constructor',
    'hasOwnProperty'
  ]) {
    t.equal(shaped([{ unwrap: path }], { a: 'text' }), null, path)
  }
  t.equal(valueAt(JSON.parse('{"__proto__": {"x": 1}}'), ['__proto__', 'x']), 1)
})

t.test('pick keeps the members that are named, and makes up none', async t => {
  t.same(shaped([{ pick: ['b', 'a', 'toString'] }], { a: 1, b: null, c: 3 }), { b: null, a: 1 })
})

t.test('rename gives members other names; what had the new name gives way', async t => {
  t.same(shaped([{ rename: { subject: 'title', absent: 'x' } }], { subject: 'hello', id: 1 }), {
    id: 1,
    title: 'hello'
  })
  t.same(shaped([{ rename: { subject: 'title' } }], { title: 'old', subject: 'new' }), {
    title: 'new'
  })
  t.same(shaped([{ rename: { a: 'b', b: 'a' } }], { a: 1, b: 2 }), { a: 2, b: 1 })
  t.same(shaped([{ rename: { a: 'a' } }], { a: 1 }), { a: 1 })
})

t.test('default fills what is absent or null, and nothing else', async t => {
  t.same(
    shaped([{ default: { read: false, count: 9, name: 'x', tags: [] } }], {
      read: null,
      count: 0,
      name: ''
    }),
    { read: false, count: 0, name: '', tags: [] }
  )
  t.same(shaped([{ default: { toString: 'own', constructor: 1 } }], {}), {
    toString: 'own',
    constructor: 1
  })
})

t.test('each does its operations to every item', async t => {
  t.same(
    shaped(
      [{ each: [{ rename: { a: 'b' } }, { default: { c: 1 } }, { pick: ['b', 'c'] }] }],
      [{ a: 1, x: 0 }, { c: 5 }, null, 7, [{ a: 1 }]]
    ),
    [{ b: 1, c: 1 }, { c: 5 }, null, 7, [{ a: 1 }]]
  )
  t.same(shaped([{ each: [{ unwrap: 'node' }] }], [{ node: 1 }, {}]), [1, null])
  t.same(shaped([{ each: [{ pick: ['a'] }] }], []), [])
})

t.test(
  'a single object in the place of a list is its only item, and shows nothing that its operations leave out',
  async t => {
    t.same(shaped([{ each: [{ pick: ['id'] }] }, { wrap: 'list' }], { id: 1, secret: 'x' }), {
      success: true,
      data: [{ id: 1 }],
      total: 1
    })
    t.same(
      shaped([{ paging: { list: 'list', each: [{ pick: ['id'] }] } }], {
        list: { id: 1, secret: 'x' }
      }),
      { success: true, data: [{ id: 1 }], total: 1 }
    )
  }
)

t.test('wrap flat hands the whole value to the envelope, to stand beside its code', async t => {
  const calls: unknown[] = []
  const { apply } = compileShape([{ rename: { list: 'rows' } }, { wrap: 'flat' }], {
    ...context(),
    wrap: (...call) => calls.push(call)
  })
  void apply({ list: [1], total: 1 })
  t.same(calls, [[{ rows: [1], total: 1 }, undefined, 'flat']])
})

t.test('wrap puts the value under the envelope; as a list it counts the items', async t => {
  t.same(shaped([{ wrap: 'envelope' }], { a: 1 }), { success: true, data: { a: 1 } })
  t.same(shaped([{ wrap: 'envelope' }], null), { success: true, data: null })
  t.same(shaped([{ wrap: 'list' }], [1, 2, 3]), { success: true, data: [1, 2, 3], total: 3 })
  t.same(shaped([{ unwrap: 'nowhere' }, { wrap: 'list' }], {}), {
    success: true,
    data: [],
    total: 0
  })
})

t.test(
  'an empty list may come as null, {} or an empty text; a single item is a list of one, and nothing is lost',
  async t => {
    for (const empty of [null, {}, '', []]) {
      t.same(
        shaped([{ wrap: 'list' }], empty),
        { success: true, data: [], total: 0 },
        JSON.stringify(empty)
      )
    }
    for (const single of [{ id: 1 }, 'x', 0, false]) {
      t.same(
        shaped([{ wrap: 'list' }], single),
        { success: true, data: [single], total: 1 },
        JSON.stringify(single)
      )
    }
  }
)

t.test('drop leaves members out', async t => {
  t.same(shaped([{ drop: ['secret', 'absent', 'toString'] }], { id: 1, secret: 'x' }), { id: 1 })
  t.same(shaped([{ drop: ['a'] }, { default: { a: 1 } }], { a: 5 }), { a: 1 })
  t.same(shaped([{ rename: { a: 'b' } }, { drop: ['b'] }], { a: 1, c: 2 }), { c: 2 })
})

t.test('constant sets members, whatever they were', async t => {
  t.same(shaped([{ constant: { type: 'event', tags: [1] } }], { type: 'x', id: 1 }), {
    type: 'event',
    id: 1,
    tags: [1]
  })
})

t.test('map gives values other values; * stands for the rest', async t => {
  const map = { state: { 0: 'unread', 1: 'read', true: 'yes', null: 'none' } }
  for (const [from, to] of [
    [0, 'unread'],
    ['0', 'unread'],
    [1, 'read'],
    [true, 'yes'],
    [null, 'none'],
    [7, 7],
    ['x', 'x'],
    [[0], [0]]
  ] as const) {
    t.same(shaped([{ map }], { state: from }), { state: to }, JSON.stringify(from))
  }
  t.same(shaped([{ map }], { id: 1 }), { id: 1 }, 'an absent member stays absent')
  for (const odd of [7, 'constructor', [0], {}]) {
    t.same(
      shaped([{ map: { state: { 0: 'unread', '*': 'other' } } }], { state: odd }),
      { state: 'other' },
      JSON.stringify(odd)
    )
  }
  t.same(shaped([{ map: { state: { 0: { deep: [1] } } } }], { state: 0 }), { state: { deep: [1] } })
})

t.test(
  'convert makes numbers, texts and booleans of each other; what would lose something stays',
  async t => {
    const converted = (kind: string, value: unknown) =>
      (shaped([{ convert: { v: kind } }], { v: value }) as { v: unknown }).v
    for (const [value, number] of [
      ['12', 12],
      [' -1.5 ', -1.5],
      ['1e3', 1000],
      [true, 1],
      [5, 5],
      ['9007199254740993', '9007199254740993'],
      ['1.234567890123456789', '1.234567890123456789'],
      ['9007199254740990.7', '9007199254740990.7'],
      ['1e-400', '1e-400'],
      ['0.1', 0.1],
      ['-0', -0],
      ['0x10', '0x10'],
      ['', ''],
      ['12px', '12px'],
      [null, null],
      ['1e999', '1e999'],
      ['007', '007']
    ] as const) {
      t.equal(converted('number', value), number, JSON.stringify(value))
    }
    for (const id of ['1541815603606036480', '1152921504606846976', '100000000000000000000000']) {
      t.equal(converted('string', parseKeepingDigits(id)), id)
    }
    for (const [value, text] of [
      [12, '12'],
      [-0.5, '-0.5'],
      [true, 'true'],
      ['x', 'x'],
      [null, null]
    ] as const) {
      t.equal(converted('string', value), text, JSON.stringify(value))
    }
    for (const [value, flag] of [
      [1, true],
      [0, false],
      ['Y', true],
      ['no', false],
      ['TRUE', true],
      ['', false],
      [2, 2],
      ['maybe', 'maybe'],
      [null, null],
      [true, true]
    ] as const) {
      t.equal(converted('boolean', value), flag, JSON.stringify(value))
    }
    t.same(converted('string', { a: 1 }), { a: 1 })
  }
)

t.test('convert makes ISO dates of seconds, milliseconds and text', async t => {
  const converted = (kind: string, value: unknown) =>
    (shaped([{ convert: { v: kind } }], { v: value }) as { v: unknown }).v
  const moment = '2026-11-21T05:30:00.000Z'
  for (const value of [1795239000, '1795239000', '1795239000.000000000001']) {
    t.equal(converted('date-seconds', value), moment)
  }
  t.equal(converted('date-seconds', 1795239000.25), '2026-11-21T05:30:00.250Z')
  t.equal(converted('date-milliseconds', 1795239000000), moment)
  for (const text of [
    moment,
    '2026-11-21T05:30:00Z',
    '2026-11-21 05:30:00',
    '2026/11/21 5:30',
    '2026-11-21T13:30:00+08:00',
    '2026-11-21 13:30:00+0800',
    '2026-11-21T05:30:00.000000000Z',
    'Sat, 21 Nov 2026 05:30:00 GMT'
  ]) {
    t.equal(converted('date-text', text), moment, text)
  }
  t.equal(converted('date-text@+08:00', '2026-11-21 13:30:00'), moment)
  t.equal(converted('date-text@+08:00', '2026-11-21 05:30:00Z'), moment, 'its own zone counts more')
  t.equal(converted('date-text', '2026-11-21'), '2026-11-21T00:00:00.000Z')
  for (const value of [
    '2026-02-31 00:00:00',
    'Sat, 30 Feb 2026 00:00:00 GMT',
    'Sat, 21 Nov 2026 25:00:00 GMT',
    '2026-13-01',
    'yesterday',
    '',
    '25:00',
    '2026-11-21 24:61:00',
    null,
    true,
    1795239000
  ]) {
    t.equal(converted('date-text', value), value, String(value))
  }
  for (const value of [1e300, 'x', null, true, 9e15]) {
    t.equal(converted('date-seconds', value), value, String(value))
  }
})

t.test('unwrap tells of a path that is not there, and not of a null that is', t => {
  const missing: string[] = []
  const { apply } = compileShape([{ unwrap: 'data.items' }], {
    ...context(),
    onMissing: path => {
      missing.push(path)
    }
  })
  for (const body of [{ data: { items: null } }, { data: { items: [] } }]) apply(body)
  t.same(missing, [])
  for (const body of [[{ id: 1 }], {}, { data: null }, { data: 'x' }, { data: {} }]) {
    t.equal(apply(body), null)
  }
  t.equal(missing.length, 5)
  t.end()
})

t.test('map knows the empty text, as it knows any other', async t => {
  const steps = [{ map: { state: { '': 'none', '*': 'some' } } }]
  t.same(shaped(steps, { state: '' }), { state: 'none' })
  t.same(shaped(steps, { state: 'x' }), { state: 'some' })
  const folder = await configFolder({ routes: { shapes: { x: steps } } })
  t.same(loadConfig(folder, {}).routes.shapes, { x: steps })
})

t.test('move takes members out of and into objects within objects', async t => {
  t.same(
    shaped([{ move: { 'user.name': 'author', 'id': 'ref.id' } }], {
      id: 1,
      user: { name: 'Alice', age: 5 }
    }),
    { user: { age: 5 }, author: 'Alice', ref: { id: 1 } }
  )
  t.same(shaped([{ move: { a: 'b.c.d' } }], { a: 1, b: { x: 1 } }), { b: { x: 1, c: { d: 1 } } })
  t.same(
    shaped([{ move: { a: 'b.c' } }], { a: 1, b: 'text' }),
    { a: 1, b: 'text' },
    'nothing is lost where the new place cannot be'
  )
  t.same(shaped([{ move: { 'a.b': 'c' } }], { a: 5 }), { a: 5 })
  t.same(
    shaped([{ move: { 'list.0.id': 'first' } }], { list: [{ id: 1, x: 1 }, { id: 2 }] }),
    { list: [{ x: 1 }, { id: 2 }], first: 1 },
    'a member of a list item is moved, not copied'
  )
  for (const path of ['list.length', 'list.7']) {
    t.same(shaped([{ move: { [path]: 'n' } }], { list: [1] }), { list: [1] })
  }
  for (const value of [null, 5, [1]]) t.same(shaped([{ move: { a: 'b' } }], value), value)
  t.equal(
    JSON.stringify(shaped([{ move: { a: '__proto__.admin' } }], { a: true })),
    '{"__proto__":{"admin":true}}'
  )
})

t.test('move of several pairs moves all of them at once', async t => {
  t.same(shaped([{ move: { a: 'b', b: 'a' } }], { a: 1, b: 2 }), { a: 2, b: 1 })
  t.same(shaped([{ move: { a: 'b', b: 'c' } }], { a: 1, b: 2 }), { b: 1, c: 2 })
  t.same(shaped([{ move: { 'x.a': 'x.b', 'x.b': 'x.a' } }], { x: { a: 1, b: 2, c: 3 } }), {
    x: { a: 2, b: 1, c: 3 }
  })
  for (const move of [
    { 'user': 'author', 'user.name': 'name' },
    { 'user.name': 'name', 'user': 'author' }
  ]) {
    t.same(
      shaped([{ move }], { user: { name: 'Alice', age: 5 } }),
      { author: { age: 5 }, name: 'Alice' },
      'a value of an inner path is moved, not copied'
    )
  }
  for (const move of [
    { a: 'x', b: 'x.b' },
    { b: 'x.b', a: 'x' }
  ]) {
    t.same(shaped([{ move }], { a: { n: 1 }, b: 2 }), { x: { n: 1, b: 2 } })
  }
  t.same(
    shaped([{ move: { a: 'b.c', b: 'd' } }], { a: 1, b: 'text' }),
    { b: { c: 1 }, d: 'text' },
    'the place of a value that is moved too is free'
  )
  t.same(
    shaped([{ move: { a: 'b.c', x: 'y', y: 'x' } }], { a: 1, b: 'text', x: 2, y: 3 }),
    { a: 1, b: 'text', x: 3, y: 2 },
    'a value without a place stays; the others are moved'
  )
})

t.test('at works on what is at a path, and leaves the rest', async t => {
  t.same(
    shaped([{ at: { path: 'user.tags', operations: [{ each: [{ pick: ['id'] }] }] } }], {
      n: 1,
      user: { x: 1, tags: [{ id: 1, y: 2 }] }
    }),
    { n: 1, user: { x: 1, tags: [{ id: 1 }] } }
  )
  t.same(shaped([{ at: { path: 'user.tags', operations: [{ unwrap: 'x' }] } }], { n: 1 }), { n: 1 })
})

t.test('paging turns a list with its count into a page', async t => {
  const steps: ShapeStep[] = [
    {
      paging: {
        list: 'page.list',
        total: 'page.count',
        current: 'page.no',
        pageSize: 'page.size',
        each: [{ pick: ['id'] }]
      }
    }
  ]
  t.same(shaped(steps, { page: { list: [{ id: 1, x: 2 }], count: 37, no: '2', size: 1 } }), {
    success: true,
    data: [{ id: 1 }],
    total: 37,
    current: 2,
    pageSize: 1
  })
  t.same(shaped(steps, { page: { list: {}, count: null } }), { success: true, data: [], total: 0 })
  t.same(shaped([{ paging: { list: 'list' } }], { list: [1, 2] }), {
    success: true,
    data: [1, 2],
    total: 2
  })
})

t.test('use stands for the operations of another shape', async t => {
  const shapes = {
    item: [{ rename: { a: 'b' } }],
    page: [{ each: [{ use: 'item' }] }, { wrap: 'list' as const }]
  }
  t.same(shaped([{ unwrap: 'x' }, { use: 'page' }], { x: [{ a: 1 }] }, shapes), {
    success: true,
    data: [{ b: 1 }],
    total: 1
  })
})

t.test(
  'status tells a failure that a back-end hides behind 200, with its message and number',
  async t => {
    const steps: ShapeStep[] = [
      { status: { path: 'code', ok: [0, '200', null], statuses: { 40001: 404 }, otherwise: 502 } }
    ]
    for (const code of [0, '0', 200, '200', null]) {
      t.equal(refused(steps, { code }), undefined, JSON.stringify(code))
    }
    t.equal(refused(steps, {}), undefined, 'absent counts as null')
    for (const [code, status] of [
      [401, 401],
      ['403', 403],
      [40001, 404],
      [500, 500],
      [7, 502],
      ['E1', 502],
      [200.5, 502],
      [{}, 502],
      [99, 502],
      [600, 502]
    ] as const) {
      t.match(
        refused(steps, { code, msg: 'No such thing' }),
        { code: 'upstream.error', status, detail: { message: 'No such thing' } },
        JSON.stringify(code)
      )
    }
    t.equal(refused(steps, { code: 40001 })?.detail.extra?.['code'], 40001)
    const codeOf = (open: 'base-response' | 'ant-design-pro' | 'code-data', body: object) =>
      refused([{ open }], body)?.detail.extra?.['code']
    for (const success of [0, '0', 200, 204, 20000, '00200']) {
      t.equal(
        codeOf('base-response', { ok: false, code: success }),
        undefined,
        JSON.stringify(success)
      )
      t.equal(codeOf('ant-design-pro', { success: false, status: success, errorCode: 4711 }), 4711)
    }
    t.equal(codeOf('code-data', { code: 'E7', status: 0 }), undefined)
    t.equal(
      refused([{ status: { path: 'a.ok', ok: [true], otherwise: 409, message: 'a.why' } }], {
        a: { ok: false, why: 'x'.repeat(900) }
      })?.detail.message?.length,
      500
    )
    t.match(refused([{ status: { path: 'ok', ok: [true], otherwise: 502 } }], 'text'), {
      status: 502
    })
  }
)

t.test('open knows the dialects of back-ends', async t => {
  for (const [open, good, bad, status] of [
    ['ant-design-pro', { success: true, data: 1 }, { success: false, errorMessage: 'No' }, 502],
    ['base-response', { ok: true, data: 1 }, { ok: false, code: 403, message: 'No' }, 403],
    ['code-data', { code: 0, data: 1 }, { code: 404, msg: 'No' }, 404],
    ['code-data', { code: 20000, data: 1 }, { code: 50008, message: 'No' }, 502]
  ] as const) {
    t.equal(refused([{ open }], good), undefined)
    t.equal(shaped([{ open }], good), 1)
    t.match(refused([{ open }], bad), { status, detail: { message: 'No' } }, open)
  }
})

t.test('operations act in their order', async t => {
  t.same(shaped([{ rename: { a: 'b' } }, { pick: ['b'] }], { a: 1, b: 2 }), { b: 1 })
  t.same(shaped([{ pick: ['b'] }, { rename: { a: 'b' } }], { a: 1, b: 2 }), { b: 2 })
  t.same(shaped([{ default: { a: 1 } }, { rename: { a: 'b' } }], {}), { b: 1 })
  t.same(
    shaped(
      [
        { unwrap: 'result.list' },
        {
          each: [
            { rename: { noticeId: 'id' } },
            { default: { read: false } },
            { pick: ['id', 'read'] }
          ]
        },
        { wrap: 'list' }
      ],
      { result: { list: [{ noticeId: 'n1', secret: 'x' }] } }
    ),
    { success: true, data: [{ id: 'n1', read: false }], total: 1 }
  )
})

t.test('what an operation does not fit passes as it is', async t => {
  const steps: ShapeStep[] = [{ pick: ['a'] }, { rename: { a: 'b' } }, { default: { a: 1 } }]
  for (const step of steps) {
    for (const value of [null, true, 5, 'text', [{ a: 1 }]]) {
      t.equal(shaped([step], value), value, JSON.stringify([step, value]))
    }
  }
  for (const value of [null, {}, 'text', 5]) {
    t.equal(shaped([{ each: [{ pick: ['b'] }] }], value), value)
  }
})

t.test(
  'a member called __proto__ is data: kept, renamed, picked, filled, and it changes no object',
  async t => {
    const value: unknown = JSON.parse('{"__proto__": {"admin": true}, "a": 1}')
    const results = [
      shaped([{ rename: { a: 'b' } }], value),
      shaped([{ pick: ['__proto__'] }], value),
      shaped([{ default: { x: 1 } }], value),
      shaped([{ rename: { a: '__proto__' } }], { a: { admin: true } }),
      shaped(
        [{ default: JSON.parse('{"__proto__": {"admin": true}}') as Record<string, unknown> }],
        {}
      )
    ]
    for (const result of results) {
      t.equal(Object.getPrototypeOf(result), Object.prototype)
      t.equal((result as { admin?: boolean }).admin, undefined)
      t.match(JSON.stringify(result), '"__proto__":{"admin":true}')
    }
    t.equal(({} as { admin?: boolean }).admin, undefined)
  }
)

const frozen = (value: unknown): unknown => {
  if (typeof value === 'object' && value !== null) {
    Object.values(value).forEach(frozen)
    Object.freeze(value)
  }
  return value
}

t.test('the input and the config stay as they were', async t => {
  const config: ShapeStep[] = [{ rename: { a: 'b' } }, { default: { list: [], inner: {} } }]
  const shape = compileShape(frozen(config) as ShapeStep[], context()).apply
  const input = frozen({ a: { deep: [1] }, c: null })
  t.same(shape(input), { b: { deep: [1] }, c: null, list: [], inner: {} })
  t.same(shape(input), { b: { deep: [1] }, c: null, list: [], inner: {} })
})
