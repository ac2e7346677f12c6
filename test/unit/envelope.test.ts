/** The outer object of every answer, in each dialect. */
import fc from 'fast-check'
import t from 'tap'
import { loadConfig } from '../../src/config/read/load.ts'
import { type CustomEnvelope, type ResponseCode } from '../../src/config/schema/envelope.ts'
import type { GatewayConfig } from '../../src/config/schema/gateway.ts'
import { presetsOfKind } from '../../src/config/schema/presets.ts'
import { type ErrorCode, errorKinds, GatewayError } from '../../src/errors/errors.ts'
import { createEnvelope } from '../../src/shaping/envelope.ts'
import { textFolder } from '../support/config-files.ts'
import { testGateway } from '../support/gateway.ts'
import { raw, request } from '../support/raw.ts'
import { seed } from '../support/seed.ts'
import { testUpstream } from '../support/upstream.ts'

type Settings = GatewayConfig['envelope']
type Members = Record<string, unknown>

const envelopeIn = (text: string): Settings =>
  loadConfig(textFolder(t.after, { 'gateway.yaml': text }), {}).gateway.envelope
const defaults = envelopeIn('envelope: { dialect: custom, custom: {} }')
const { custom: standard } = defaults
const settingsOf = (changes: Partial<Settings>): Settings => ({ ...defaults, ...changes })

interface Changes {
  readonly successCode?: ResponseCode
  readonly members?: Partial<CustomEnvelope['members']>
  readonly custom?: Partial<Omit<CustomEnvelope, 'members'>>
}

function customOf({ successCode = 0, members, custom }: Changes) {
  const all = { ...standard, ...custom, members: { ...standard.members, ...members } }
  return createEnvelope(settingsOf({ successCode, custom: all }))
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

const members = { a: 1, ok: false, success: false, code: 500 }

/** Of a success of `[1]`, a flat one of `members`, the error `soldOut`, and a sign-in. */
const bodies: Readonly<Record<string, readonly unknown[]>> = {
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
  ],
  'problem': [
    [1],
    members,
    {
      type: 'about:blank',
      title: 'Conflict',
      status: 409,
      detail: 'Sold out.',
      code: 'upstream.error',
      requestId: 'r1',
      until: 1
    },
    {}
  ]
}

t.test('each dialect has the members that its consoles read', async t => {
  for (const [dialect, [success, flat, failure, signedIn]] of Object.entries(bodies)) {
    const envelope = createEnvelope(settingsOf({ dialect } as Partial<Settings>))
    t.strictSame(envelope.success([1], { n: 1 }), success, dialect)
    t.strictSame(envelope.success(members, { n: 1 }, 'flat'), flat, dialect)
    t.strictSame(envelope.success([1], { n: 1 }, 'none'), [1], dialect)
    t.strictSame(envelope.failure(soldOut, 'r1'), failure, dialect)
    t.strictSame(envelope.login({ type: 'mobile', authority: 'admin' }), signedIn, dialect)
  }
  const { failure } = createEnvelope(settingsOf({ dialect: 'problem' }))
  t.equal(failure(error('upstream.error', { status: 799 }), '')['title'], 'Error')
})

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
  t.strictSame(beside.success(null), { code: 200, msg: 'OK', data: null })
  t.equal(beside.dataName, false)
  const hostile = JSON.parse('{"__proto__": {"ok": false}, "a": 1}') as unknown
  t.equal(
    JSON.stringify(beside.success(hostile)),
    '{"code":200,"msg":"OK","__proto__":{"ok":false},"a":1}'
  )

  const clash = customOf({ members: { code: 'until', success: 'status' } })
  const thrown = error('maintenance', { extra: { until: 0, status: true } })
  t.match(clash.failure(thrown, ''), { until: 503, status: false })
})

const entries = {
  'session.*': { code: 50_008, status: 200 },
  'session.unavailable': { code: 503 },
  'upstream.timeout.*': { code: 5 },
  'upstream.timeout': { status: 200 },
  'upstream.*': { code: 6 },
  '*': { code: 500 }
}
const exact = { custom: { errors: entries } }
const typed = { successCode: '0000', custom: { errors: { 'session.*': { code: '8888' } } } }

const codesOf: ReadonlyArray<readonly [Changes, GatewayError, code: ResponseCode]> = [
  [exact, error('session.idle'), 50_008],
  [exact, error('session.unavailable'), 503],
  [exact, error('upstream.timeout.idle'), 5],
  [exact, error('upstream.timeout'), 504],
  [exact, error('upstream.reset'), 6],
  [exact, error('login.refused'), 500],
  [typed, error('session.none'), '8888'],
  [typed, error('route.forbidden'), '403'],
  [typed, soldOut, '601'],
  // A back-end’s number stays, unless it means success, refresh, or config says.
  [{}, soldOut, 601],
  [{ custom: { errors: { '*': { code: 500 } } } }, soldOut, 601],
  [{ custom: { errors: { 'upstream.error': { code: 7 } } } }, soldOut, 7],
  [{ successCode: 601 }, soldOut, 409],
  [{ successCode: '0601' }, soldOut, '409'],
  [{ custom: { alsoSuccess: ['601'] } }, soldOut, 409],
  [{ successCode: '0000', custom: { refreshCodes: ['601'] } }, soldOut, '409']
]

t.test('custom: an error has the code of its most exact entry, else of its status', async t => {
  for (const [changes, thrown, code] of codesOf) {
    t.equal(customOf(changes).failure(thrown, '')['code'], code, JSON.stringify([changes, thrown]))
  }
  const { statusOf } = customOf(exact)
  t.equal(statusOf('session.idle'), 200)
  t.equal(statusOf('session.unavailable'), undefined)
})

const codes = fc.oneof(
  fc.constantFrom<ResponseCode>(0, 1, 200, 401, 500, 20_000, '0', '00', '0000', '200', 'ok', '5e2'),
  fc.integer({ min: -1, max: 1000 }),
  fc.integer({ min: 0, max: 1000 }).map(String)
)
const entry = fc.record({ code: codes }, { requiredKeys: [] })
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
    dialect: fc.constantFrom(
      'dual',
      'ant-design-pro',
      'base-response',
      'custom',
      'problem',
      'none'
    ),
    successCode: codes,
    custom: customs,
    fieldErrors: fc.constantFrom('fieldErrors', 'code', 'ok', 'success', 'status', false)
  })
  .map(changes => settingsOf(changes as Partial<Settings>))

/** The envelopes of all consoles' presets. */
const presets = presetsOfKind('console').map(name => envelopeIn(`extends: ${name}`))

/** Of the gateway, and of a back-end with a number of its own. */
const errors = fc.oneof(
  fc.constantFrom(...(Object.keys(errorKinds) as ErrorCode[])).map(code => {
    const extra = { until: 0, ok: true, success: true, status: '0' }
    return error(code, { extra, fieldErrors: { code: ['0'] } })
  }),
  fc
    .tuple(fc.integer({ min: 400, max: 999 }), fc.integer({ min: -1, max: 30_000 }))
    .map(([status, code]) => error('upstream.error', { status, extra: { code } }))
)

const standardFlags = {
  'dual': ['ok', 'success'],
  'ant-design-pro': ['success'],
  'base-response': ['ok']
}

t.test('no error reads as a success, by === or by ==, in any config and preset', async () => {
  const isSafe = (body: Members, thrown: GatewayError, envelope: Settings) => {
    const { dialect, custom, successCode } = envelope
    if (dialect === 'problem' || dialect === 'none') return body['code'] === thrown.code
    const { success, code } = dialect === 'custom' ? custom.members : standard.members
    const flags = dialect === 'custom' ? [success] : standardFlags[dialect]
    const codes = [successCode, ...(dialect === 'custom' ? custom.alsoSuccess : [])]
    return (
      !flags.some(flag => flag !== false && body[flag] === true) &&
      !(code !== false && code in body && codes.some(each => body[code] == each))
    )
  }
  fc.assert(
    fc.property(fc.oneof(settings, fc.constantFrom(...presets)), errors, (envelope, thrown) => {
      return isSafe(createEnvelope(envelope).failure(thrown, 'r1'), thrown, envelope)
    }),
    { seed, numRuns: 5000 }
  )
})

t.test('problem: every way of refusing names its content type', async t => {
  const backend = await testUpstream(t.after, (_request, response) => {
    response.writeHead(500).end('<p>')
  })
  const gateway = await testGateway(t.after, {
    gateway: { envelope: { dialect: 'problem' } },
    backend: backend.url,
    routes: { routes: { page: { access: 'public' }, socket: { websocket: {} } } }
  })
  const handshake = ['Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==']
  const upgrade = ['Connection: upgrade', 'Upgrade: websocket', ...handshake]
  for (const [status, bytes] of [
    [401, request('GET /api/account/profile')],
    [500, request('GET /api/page')],
    [400, request('GET /api/%zz')],
    [400, 'nonsense\r\n\r\n'],
    [417, request('POST /', ['Expect: money', 'Content-Length: 0'])],
    [401, request('GET /api/socket', upgrade)]
  ] as const) {
    const { head, body, status: actual } = await raw(gateway.url, bytes)
    const what = bytes.slice(0, 40)
    t.equal(actual, status, what)
    t.match(head, /\r\ncontent-type: application\/problem\+json; charset=utf-8\r\n/i, what)
    t.match(JSON.parse(body), { type: 'about:blank', status, title: /\w/, detail: /\w/ }, what)
  }
})
