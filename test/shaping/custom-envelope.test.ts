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
import { seed } from '../support/seed.ts'

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

interface Changes {
  readonly successCode?: ResponseCode
  readonly members?: Partial<CustomEnvelope['members']>
  readonly custom?: Partial<Omit<CustomEnvelope, 'members'>>
}

function envelopeOf({ successCode = 0, members, custom }: Changes) {
  const settings: Settings = {
    dialect: 'custom',
    successCode,
    errorStatus: 'own',
    language: 'en',
    messages: {},
    custom: { ...standard, ...custom, members: { ...standard.members, ...members } },
    fieldErrors: 'fieldErrors',
    requestId: true,
    inertToken: '',
    tokenHeaders: [],
    tokenCookies: [],
    tokenQuery: []
  }
  return createEnvelope(settings)
}

const error = (code: ErrorCode, detail = {}) => new GatewayError(code, detail)

t.test('the members have config’s names, or are left out', async t => {
  const { success, failure, dataName } = envelopeOf({
    successCode: 200,
    members: { success: 'success', data: 'result', requestId: false, errorCode: false },
    custom: { successMessage: '' }
  })
  t.same(success([1], { total: 1 }), {
    success: true,
    code: 200,
    message: '',
    result: [1],
    total: 1
  })
  t.equal(dataName, 'result')
  t.same(failure(error('route.forbidden'), 'r1'), {
    success: false,
    code: 403,
    message: errorKinds['route.forbidden'].en
  })
})

t.test('data: false puts the members of every object beside the code', async t => {
  const { success, dataName } = envelopeOf({
    successCode: 200,
    members: { message: 'msg', data: false }
  })
  t.same(success({ rows: [], total: 0, code: 500 }), { code: 200, msg: 'OK', rows: [], total: 0 })
  t.same(success('text'), { code: 200, msg: 'OK', data: 'text' })
  t.equal(dataName, false)
})

t.test('each error has the code and status of its entry: the most exact one', async t => {
  const { failure, statusOf } = envelopeOf({
    custom: {
      errors: {
        'session.*': { code: 50_008, status: 200 },
        'session.unavailable': { code: 503 },
        'upstream.timeout.*': { code: 5 },
        'upstream.timeout': { message: 'Too slow.' },
        'upstream.*': { code: 6 },
        '*': { code: 500, message: 'Sorry.' }
      }
    }
  })
  const codeOf = (code: ErrorCode) => failure(error(code), '')['code']
  t.equal(codeOf('session.idle'), 50_008)
  t.equal(codeOf('session.unavailable'), 503)
  t.equal(codeOf('upstream.timeout.idle'), 5)
  t.equal(codeOf('upstream.timeout'), 504)
  t.equal(codeOf('upstream.reset'), 6)
  t.equal(codeOf('login.refused'), 500)
  t.equal(statusOf('session.idle'), 200)
  t.equal(statusOf('session.unavailable'), undefined)
  t.equal(failure(error('upstream.timeout'), '')['message'], 'Too slow.')
  t.equal(failure(error('login.refused'), '')['message'], 'Sorry.')
  t.equal(failure(error('login.refused', { message: 'Own.' }), '')['message'], 'Own.')
})

t.test('codes have the type of the success code, and config’s own keep theirs', async t => {
  const { success, failure } = envelopeOf({
    successCode: '0000',
    custom: { errors: { 'session.*': { code: '8888' }, 'login.locked': { code: 7 } } }
  })
  t.match(success({}), { code: '0000' })
  t.equal(failure(error('session.none'), '')['code'], '8888')
  t.equal(failure(error('login.locked'), '')['code'], 7)
  t.equal(failure(error('route.forbidden'), '')['code'], '403')
  t.equal(failure(error('upstream.error', { extra: { code: 601 } }), '')['code'], '601')
})

t.test('a back-end’s number stays, unless it means success, refresh, or config says', async t => {
  const backEnds = (number: number, changes: Changes) =>
    envelopeOf(changes).failure(
      error('upstream.error', { status: 409, extra: { code: number } }),
      ''
    )['code']
  t.equal(backEnds(601, {}), 601)
  t.equal(backEnds(601, { custom: { errors: { '*': { code: 500 } } } }), 601)
  t.equal(backEnds(601, { custom: { errors: { 'upstream.error': { code: 7 } } } }), 7)
  t.equal(backEnds(601, { successCode: 601 }), 409)
  t.equal(backEnds(601, { successCode: '601' }), '409')
  t.equal(backEnds(601, { successCode: '0601' }), '409')
  t.equal(backEnds(601, { custom: { alsoSuccess: ['601'] } }), 409)
  t.equal(backEnds(9999, { successCode: '0000', custom: { refreshCodes: ['9999'] } }), '409')
})

t.test('other members of an error never replace the envelope’s', async t => {
  const { failure } = envelopeOf({ members: { code: 'until', success: 'ok' } })
  t.match(failure(error('maintenance', { extra: { until: 0, ok: true } }), ''), {
    until: 503,
    ok: false
  })
})

t.test('a refused sign-in under 200 is no success', async t => {
  const { loginRefused } = envelopeOf({ members: { success: 'success', code: 'status' } })
  t.match(loginRefused(error('login.refused'), 'account', { requestId: '', language: 'en' }), {
    success: false,
    status: 401
  })
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
const settings = fc.record({
  dialect: fc.constantFrom(...dialects),
  successCode: codes,
  errorStatus: fc.constant('own' as const),
  language: fc.constant('en' as const),
  messages: fc.constant({}),
  custom: customs,
  fieldErrors: fc.constantFrom('fieldErrors', 'code', 'ok', 'success', 'status', false),
  requestId: fc.constant(true),
  inertToken: fc.constant(''),
  tokenHeaders: fc.constant([]),
  tokenCookies: fc.constant([]),
  tokenQuery: fc.constant([])
}) as fc.Arbitrary<Settings>

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
          if (dialect === 'problem') {
            if (body['status'] !== thrown.status || body['code'] !== thrown.code) return false
            continue
          }
          if (dialect === 'none') {
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
