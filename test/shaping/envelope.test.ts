/** The outer object of every answer, in each dialect. */
import fc from 'fast-check'
import t from 'tap'
import type { CustomEnvelope } from '../../src/config/schema/custom-envelope.ts'
import { loadConfig } from '../../src/config/load/load.ts'
import { dialects } from '../../src/config/schema/envelope.ts'
import type { GatewayConfig } from '../../src/config/schema/gateway.ts'
import { presetsOfKind } from '../../src/config/schema/presets.ts'
import type { ResponseCode } from '../../src/config/schema/response-codes.ts'
import { type ErrorCode, errorKinds, GatewayError } from '../../src/errors/errors.ts'
import { createEnvelope } from '../../src/shaping/envelope.ts'
import { compileStatus } from '../../src/shaping/status.ts'
import { textFolder } from '../support/config-files.ts'
import { testGateway } from '../support/gateway.ts'
import { raw } from '../support/raw.ts'
import { seed } from '../support/seed.ts'
import { json, testUpstream } from '../support/upstream.ts'

type Settings = GatewayConfig['envelope']
type Members = Record<string, unknown>

const standard: CustomEnvelope = {
  members: {
    code: 'code',
    message: 'message',
    data: 'data',
    success: false,
    requestId: 'requestId',
    errorCode: 'errorCode',
    showType: false
  },
  successMessage: 'OK',
  alsoSuccess: [],
  refreshCodes: [],
  errors: {}
}

const settingsOf = (changes: Partial<Settings>): Settings => ({
  dialect: 'dual',
  successCode: 0,
  errorStatus: 'own',
  language: 'en',
  messages: {},
  custom: standard,
  fieldErrors: 'fieldErrors',
  requestId: true,
  inertToken: '',
  tokenHeaders: [],
  tokenCookies: [],
  tokenQuery: [],
  ...changes
})

interface Changes {
  readonly successCode?: ResponseCode
  readonly members?: Partial<CustomEnvelope['members']>
  readonly custom?: Partial<Omit<CustomEnvelope, 'members'>>
}

function customOf({ successCode = 0, members, custom }: Changes) {
  const all = { ...standard, ...custom, members: { ...standard.members, ...members } }
  return createEnvelope(settingsOf({ dialect: 'custom', successCode, custom: all }))
}

const error = (code: ErrorCode, detail = {}) => new GatewayError(code, detail)

const soldOut = error('upstream.error', {
  status: 409,
  message: 'Sold out.',
  extra: { code: 601, until: 1, status: 200, type: 'x' },
  cause: new Error('redis://10.0.0.1')
})
const ok = { ok: true, code: 0, message: 'OK' }
const refused = { errorCode: 'upstream.error', requestId: 'r1', until: 1, status: 200, type: 'x' }
const shown = { success: false, errorMessage: 'Sold out.', showType: 2, ...refused }
const numbered = { ok: false, code: 601, message: 'Sold out.' }
const result = { status: 'ok', type: 'mobile', currentAuthority: 'admin' }
const login = { data: { authToken: '', ...result } }

/** Of a success of `[1]`, a flat one of `members`, the error `soldOut`, and a sign-in. */
const bodies: Readonly<Record<string, readonly Members[]>> = {
  'dual': [
    { ...ok, success: true, data: [1], n: 1 },
    { ...ok, success: true, a: 1, n: 1 },
    { ...numbered, ...shown },
    { ...ok, success: true, ...login, ...result }
  ],
  'ant-design-pro': [
    { success: true, data: [1], n: 1 },
    { success: true, a: 1, ok: false, code: 500, n: 1 },
    { code: 601, ...shown },
    { success: true, ...login, ...result }
  ],
  'base-response': [
    { ...ok, data: [1], n: 1 },
    { ...ok, a: 1, success: false, n: 1 },
    { ...numbered, ...refused },
    { ...ok, ...login }
  ],
  'custom': [
    { code: 0, message: 'OK', data: [1], n: 1 },
    { code: 0, message: 'OK', a: 1, ok: false, success: false, n: 1 },
    { code: 601, message: 'Sold out.', ...refused },
    { code: 0, message: 'OK', data: {} }
  ]
}
const members = { a: 1, ok: false, success: false, code: 500 }

t.test('each dialect has the members that its consoles read, and wins over a value’s', async t => {
  for (const [dialect, [success, flat, failure, signedIn]] of Object.entries(bodies)) {
    const envelope = createEnvelope(settingsOf({ dialect } as Partial<Settings>))
    t.strictSame(envelope.success([1], { n: 1 }), success, dialect)
    t.strictSame(envelope.success(members, { n: 1 }, 'flat'), flat, dialect)
    t.match(envelope.success([1], {}, 'flat'), { data: [1] }, dialect)
    t.strictSame(envelope.success([1], { n: 1 }, 'none'), [1], dialect)
    t.match(envelope.success(null), { data: null }, dialect)
    t.strictSame(envelope.failure(soldOut, 'r1'), failure, dialect)
    t.strictSame(envelope.login({ type: 'mobile', authority: 'admin' }), signedIn, dialect)
  }
})

t.test('problem and none: a success has no envelope', async t => {
  for (const dialect of ['problem', 'none'] as const) {
    const { success } = createEnvelope(settingsOf({ dialect }))
    for (const placement of ['data', 'flat', 'none'] as const) {
      t.equal(success(members, { n: 1 }, placement), members)
    }
  }
  const { failure } = createEnvelope(settingsOf({ dialect: 'problem' }))
  t.strictSame(failure(soldOut, 'r1'), {
    type: 'about:blank',
    title: 'Conflict',
    status: 409,
    detail: 'Sold out.',
    code: 'upstream.error',
    requestId: 'r1',
    until: 1
  })
  t.equal(failure(error('upstream.error', { status: 799 }), '')['title'], 'Error')
})

t.test(
  'a refusal with status 200 shows the sign-in page’s own alert: no success member',
  async t => {
    for (const dialect of ['dual', 'ant-design-pro', 'base-response'] as const) {
      const { loginRefused } = createEnvelope(settingsOf({ dialect }))
      const reader = { requestId: 'r1', language: 'en' } as const
      const body = loginRefused(error('login.refused'), 'account', reader)
      t.match(body, {
        status: 'error',
        type: 'account',
        currentAuthority: 'guest',
        requestId: 'r1'
      })
      t.notOk('success' in body)
      t.not(body['ok'], true)
    }
  }
)

t.test(
  'a message is the error’s own, else config’s, else that of its entry or language',
  async t => {
    const settings = { language: 'zh', messages: { 'login.refused': 'Nope.' } } as const
    const { failure } = createEnvelope(settingsOf(settings))
    const own = error('login.refused', { message: 'Very own.' })
    for (const [thrown, message] of [
      [error('session.none'), errorKinds['session.none'].zh],
      [error('login.refused'), 'Nope.'],
      [own, 'Very own.']
    ] as const) {
      t.match(failure(thrown, ''), { message, errorMessage: message })
    }
    const custom = customOf({ custom: { errors: { '*': { message: 'Sorry.' } } } })
    t.match(custom.failure(error('login.refused'), ''), { message: 'Sorry.' })
    t.match(custom.failure(own, ''), { message: 'Very own.' })
  }
)

t.test('custom: members have config’s names, or are left out', async t => {
  const { success, failure, dataName } = customOf({
    successCode: 200,
    members: { success: 'success', data: 'result', requestId: false, errorCode: false },
    custom: { successMessage: '' }
  })
  const expected = { success: true, code: 200, message: '', result: [1], total: 1 }
  t.strictSame(success([1], { total: 1 }), expected)
  t.equal(dataName, 'result')
  const message = errorKinds['route.forbidden'].en
  t.strictSame(failure(error('route.forbidden'), 'r1'), { success: false, code: 403, message })

  const beside = customOf({ successCode: 200, members: { message: 'msg', data: false } })
  t.strictSame(beside.success({ rows: [], code: 500 }), { code: 200, msg: 'OK', rows: [] })
  t.strictSame(beside.success('text'), { code: 200, msg: 'OK', data: 'text' })
  t.equal(beside.dataName, false)
  const hostile = JSON.parse('{"__proto__": {"ok": false}, "a": 1}') as unknown
  t.equal(
    JSON.stringify(beside.success(hostile)),
    '{"code":200,"msg":"OK","__proto__":{"ok":false},"a":1}'
  )

  const clash = customOf({ members: { code: 'until', success: 'status' } })
  const thrown = error('maintenance', { extra: { until: 0, status: true } })
  t.match(clash.failure(thrown, ''), { until: 503, status: false })
  const reader = { requestId: '', language: 'en' } as const
  t.match(clash.loginRefused(error('login.refused'), 'account', reader), { status: false })
})

t.test('custom: an error has the code and status of its most exact entry', async t => {
  const { failure, statusOf } = customOf({
    custom: {
      errors: {
        'session.*': { code: 50_008, status: 200 },
        'session.unavailable': { code: 503 },
        'upstream.timeout.*': { code: 5 },
        'upstream.timeout': { message: 'Too slow.' },
        'upstream.*': { code: 6 },
        '*': { code: 500 }
      }
    }
  })
  for (const [code, expected] of [
    ['session.idle', 50_008],
    ['session.unavailable', 503],
    ['upstream.timeout.idle', 5],
    ['upstream.timeout', 504],
    ['upstream.reset', 6],
    ['login.refused', 500]
  ] as const) {
    t.equal(failure(error(code), '')['code'], expected, code)
  }
  t.equal(statusOf('session.idle'), 200)
  t.equal(statusOf('session.unavailable'), undefined)
})

t.test('custom: codes have the type of the success code, and config’s own keep theirs', async t => {
  const { success, failure } = customOf({
    successCode: '0000',
    custom: { errors: { 'session.*': { code: '8888' }, 'login.locked': { code: 7 } } }
  })
  t.match(success({}), { code: '0000' })
  for (const [thrown, code] of [
    [error('session.none'), '8888'],
    [error('login.locked'), 7],
    [error('route.forbidden'), '403'],
    [soldOut, '601']
  ] as const) {
    t.equal(failure(thrown, '')['code'], code)
  }
})

t.test('a back-end’s number stays, unless it means success, refresh, or config says', async t => {
  const settings: ReadonlyArray<readonly [Changes, code: ResponseCode]> = [
    [{}, 601],
    [{ custom: { errors: { '*': { code: 500 } } } }, 601],
    [{ custom: { errors: { 'upstream.error': { code: 7 } } } }, 7],
    [{ successCode: 601 }, 409],
    [{ successCode: '0601' }, '409'],
    [{ custom: { alsoSuccess: ['601'] } }, 409],
    [{ successCode: '0000', custom: { refreshCodes: ['601'] } }, '409']
  ]
  for (const [changes, code] of settings) {
    t.equal(customOf(changes).failure(soldOut, '')['code'], code, JSON.stringify(changes))
  }
})

const codes = fc.oneof(
  fc.constantFrom<ResponseCode>(0, 1, 200, 401, 500, 20_000, '0', '00', '0000', '200', 'ok', '5e2'),
  fc.integer({ min: -1, max: 1000 }),
  fc.integer({ min: 0, max: 1000 }).map(String)
)
const entry = fc.record({ code: codes, message: fc.string({ minLength: 1 }) }, { requiredKeys: [] })
const names = fc.constantFrom('code', 'status', 'ok', 'success', 'until', 'data', 'msg', 'type')
const customs = fc
  .record({
    distinct: fc.uniqueArray(names, { minLength: 4, maxLength: 4 }),
    hasFlag: fc.boolean(),
    alsoSuccess: fc.array(codes, { maxLength: 3 }),
    refreshCodes: fc.array(codes, { maxLength: 2 }),
    errors: fc.dictionary(
      fc.constantFrom('*', 'session.*', 'upstream.*', 'upstream.error', 'login.refused'),
      entry
    )
  })
  .map(({ distinct: [code = '', flag = '', data = '', message = ''], hasFlag, ...rest }) => ({
    ...standard,
    ...rest,
    members: { ...standard.members, code, data, message, success: hasFlag ? flag : false }
  }))
const settings = fc
  .record({
    dialect: fc.constantFrom(...dialects),
    successCode: codes,
    custom: customs,
    fieldErrors: fc.constantFrom('fieldErrors', 'code', 'ok', 'success', 'status', false)
  })
  .map(changes => settingsOf(changes as Partial<Settings>))

/** The envelopes of all consoles' presets. */
const presets = presetsOfKind('console').map(
  name =>
    loadConfig(textFolder(t.after, { 'gateway.yaml': `extends: ${name}` }), {}).gateway.envelope
)

/** Errors of the gateway, and what a shape makes of a back-end's body. */
const errors = fc.oneof(
  fc.constantFrom(...(Object.keys(errorKinds) as ErrorCode[])).map(code =>
    error(code, {
      extra: { until: 0, ok: true, success: true, status: '0' },
      fieldErrors: { code: ['0'] }
    })
  ),
  fc
    .record({
      status: fc.integer({ min: 400, max: 999 }),
      code: fc.integer({ min: -1, max: 30_000 })
    })
    .map(({ status, code }) => error('upstream.error', { status, extra: { code } })),
  fc
    .record({ code: codes, status: codes, errorCode: codes, ok: fc.boolean(), data: fc.anything() })
    .map(
      body =>
        compileStatus({ status: { path: 'ok', ok: ['never'], otherwise: 502 } })(body) ??
        error('upstream.error')
    )
)

const standardFlags = {
  'dual': ['ok', 'success'],
  'ant-design-pro': ['success'],
  'base-response': ['ok']
}

t.test(
  'no error reads as a success, by === or by ==, in any dialect, config and preset',
  async t => {
    const isSuccess = (body: Members, name: string, code: ResponseCode) =>
      Object.hasOwn(body, name) && (body[name] === code || (body[name] as ResponseCode) == code)
    fc.assert(
      fc.property(fc.oneof(settings, fc.constantFrom(...presets)), errors, (envelope, thrown) => {
        const { failure, loginRefused } = createEnvelope(envelope)
        const { dialect, custom = standard, successCode } = envelope
        const bodies = [
          failure(thrown, 'r1'),
          loginRefused(thrown, 'account', { requestId: 'r1', language: 'en' })
        ]
        for (const body of bodies.map(each => JSON.parse(JSON.stringify(each)) as Members)) {
          if (dialect === 'problem' || dialect === 'none') {
            if (body['code'] !== thrown.code) return false
            continue
          }
          const isCustom = dialect === 'custom'
          const flags = isCustom ? [custom.members.success] : standardFlags[dialect]
          if (flags.some(flag => flag !== false && body[flag] === true)) return false
          const name = isCustom ? (custom.members.code as string) : 'code'
          const successes = [successCode, ...(isCustom ? custom.alsoSuccess : [])]
          if (successes.some(code => isSuccess(body, name, code))) return false
        }
        return true
      }),
      { seed, numRuns: 5000 }
    )
    t.pass()
  }
)

t.test('problem: every way of refusing names its content type', async t => {
  const backend = await testUpstream(t.after, (asked, response, seen) => {
    if (seen.url === '/page') return void response.writeHead(500).end('<p>')
    json(200, { id: 1 })(asked, response, seen)
  })
  const page = { upstream: 'b', access: 'public', rewrite: '/page' }
  const gateway = await testGateway(t.after, {
    gateway: { envelope: { dialect: 'problem' } },
    routes: {
      upstreams: { b: { url: backend.url } },
      routes: {
        item: { path: '/api/item', upstream: 'b', access: 'public', shape: 'item' },
        page: { ...page, path: '/api/page' },
        plain: { ...page, path: '/api/plain', dialect: 'base-response' },
        socket: { path: '/api/socket', upstream: 'b', access: 'session', websocket: {} }
      },
      shapes: { item: [{ pick: ['id'] }, { wrap: 'envelope' }] }
    }
  })
  const item = await gateway.call('/api/item')
  t.same(item.json, { id: 1 })
  t.match(item.headers.get('content-type'), /^application\/json/)

  const { host } = new URL(gateway.url)
  const request = (line: string, ...fields: string[]) =>
    [`${line} HTTP/1.1`, `host: ${host}`, ...fields, '', ''].join('\r\n')
  const upgrade = [
    'connection: upgrade',
    'upgrade: websocket',
    'sec-websocket-version: 13',
    'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==',
    `origin: http://${host}`
  ]
  const cases: ReadonlyArray<readonly [status: number, bytes: string]> = [
    [401, request('GET /api/account/profile')],
    [404, request('GET /api/nowhere')],
    [500, request('GET /api/page')],
    [400, request('GET /api/%zz')],
    [400, 'GET /api/page HTTP/1.1\r\n\r\n'],
    [400, 'nonsense\r\n\r\n'],
    [431, request('GET /', `x: ${'x'.repeat(20_000)}`)],
    [417, request('POST /', 'expect: money', 'content-length: 0')],
    [405, request('CONNECT x:1')],
    [401, request('GET /api/socket', ...upgrade)]
  ]
  for (const [status, bytes] of cases) {
    const { head, body, status: actual } = await raw(gateway.url, bytes)
    const what = bytes.slice(0, 40)
    t.equal(actual, status, what)
    t.match(head, /\r\ncontent-type: application\/problem\+json; charset=utf-8\r\n/i, what)
    t.match(JSON.parse(body), { type: 'about:blank', status, title: /\w/, detail: /\w/ }, what)
  }
  const plain = await gateway.call('/api/plain')
  t.match(plain.headers.get('content-type'), /^application\/json/)
  t.match(plain.json, { ok: false, code: 500 })
})
