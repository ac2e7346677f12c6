import t from 'tap'
import type { GatewayConfig } from '../../src/config/schema/gateway.ts'
import { createEnvelope, type Envelope } from '../../src/shaping/envelope.ts'
import { type ErrorCode, errorKinds, GatewayError } from '../../src/errors/errors.ts'

const base: GatewayConfig['envelope'] = {
  dialect: 'dual',
  successCode: 0,
  errorStatus: 'own',
  language: 'en',
  messages: {},
  fieldErrors: 'fieldErrors',
  requestId: true,
  inertToken: '',
  tokenHeaders: [],
  tokenCookies: [],
  tokenQuery: []
}
const dual = createEnvelope(base)
const antDesign = createEnvelope({ ...base, dialect: 'ant-design-pro' })
const baseResponse = createEnvelope({ ...base, dialect: 'base-response' })
const all: Readonly<Record<string, Envelope>> = {
  dual,
  'ant-design-pro': antDesign,
  'base-response': baseResponse
}

/** What the two kinds of console look at, as their own code has it. */
const antDesignFails = (body: unknown) => (body as { success?: unknown }).success !== true
const baseResponseFails = (body: unknown) => (body as { ok?: unknown }).ok !== true

t.test('a success looks as each console expects it', async t => {
  t.same(dual.success({ a: 1 }), {
    ok: true,
    code: 0,
    message: 'OK',
    success: true,
    data: { a: 1 }
  })
  t.same(antDesign.success({ a: 1 }), { success: true, data: { a: 1 } })
  t.same(baseResponse.success({ a: 1 }), { ok: true, code: 0, message: 'OK', data: { a: 1 } })
})

t.test('data is there also where there is nothing, and more members stand beside it', async t => {
  for (const envelope of Object.values(all)) {
    t.match(envelope.success(null), { data: null })
    t.match(envelope.success([], { total: 0 }), { data: [], total: 0 })
  }
})

t.test(
  'flat: the members stand beside the code, which no member of the value replaces',
  async t => {
    t.same(baseResponse.success({ rows: [1], total: 1, code: 500, ok: false }, {}, 'flat'), {
      ok: true,
      code: 0,
      message: 'OK',
      rows: [1],
      total: 1
    })
    t.same(antDesign.success({ data: { a: 1 }, success: false }, { type: 'x' }, 'flat'), {
      success: true,
      data: { a: 1 },
      type: 'x'
    })
    for (const value of [[1], 'text', null, 3]) {
      t.same(antDesign.success(value, {}, 'flat'), { success: true, data: value })
    }
    const hostile = JSON.parse('{"__proto__": {"ok": false}, "a": 1}') as unknown
    const body = baseResponse.success(hostile, {}, 'flat') as Record<string, unknown>
    t.equal(Object.getPrototypeOf(body), Object.prototype)
    t.equal(
      JSON.stringify(body),
      '{"ok":true,"code":0,"message":"OK","__proto__":{"ok":false},"a":1}'
    )
  }
)

t.test('none: the value is the whole body', async t => {
  for (const envelope of Object.values(all)) {
    t.same(envelope.success([1, 2], { total: 2 }, 'none'), [1, 2])
  }
})

t.test('an error looks as each console expects it', async t => {
  const error = new GatewayError('limit.exceeded')
  const { en: message } = errorKinds['limit.exceeded']
  t.same(dual.failure(error, 'r1'), {
    ok: false,
    code: 429,
    message,
    success: false,
    errorCode: 'limit.exceeded',
    errorMessage: message,
    showType: 1,
    requestId: 'r1'
  })
  t.same(antDesign.failure(error, 'r1'), {
    success: false,
    errorCode: 'limit.exceeded',
    errorMessage: message,
    showType: 1,
    requestId: 'r1'
  })
  t.same(baseResponse.failure(error, 'r1'), {
    ok: false,
    code: 429,
    message,
    errorCode: 'limit.exceeded',
    requestId: 'r1'
  })
})

t.test('in the dual dialect both kinds of console tell a success from an error', async t => {
  for (const body of [dual.success({}), dual.login({ type: 'account', authority: 'admin' })]) {
    t.notOk(antDesignFails(body) || baseResponseFails(body))
  }
  const body = dual.failure(new GatewayError('session.none'), 'r')
  t.ok(antDesignFails(body) && baseResponseFails(body))
})

t.test(
  'a sign-in’s result stands where each console looks, and its token is empty: the browser gets no credential',
  async t => {
    const result = { status: 'ok', type: 'mobile', currentAuthority: 'admin' }
    t.same(dual.login({ type: 'mobile', authority: 'admin' }), {
      ok: true,
      code: 0,
      message: 'OK',
      success: true,
      data: { authToken: '', ...result },
      ...result
    })
    t.same(antDesign.login({ type: 'mobile', authority: 'admin' }), {
      success: true,
      data: { authToken: '', ...result },
      ...result
    })
    t.same(baseResponse.login({ type: 'mobile', authority: 'admin' }), {
      ok: true,
      code: 0,
      message: 'OK',
      data: { authToken: '', ...result }
    })
  }
)

t.test(
  'a refusal that goes out with status 200 shows the sign-in page’s own alert: no success member',
  async t => {
    for (const envelope of Object.values(all)) {
      const body = envelope.loginRefused(new GatewayError('login.refused'), 'account', {
        requestId: 'r1',
        language: 'en'
      })
      t.match(body, {
        status: 'error',
        type: 'account',
        currentAuthority: 'guest',
        errorCode: 'login.refused',
        requestId: 'r1'
      })
      t.notOk('success' in body)
      t.not(body['ok'], true)
    }
  }
)

t.test('the code of a success is config’s', async t => {
  const envelope = createEnvelope({ ...base, successCode: 20_000 })
  t.match(envelope.success({}), { code: 20_000, ok: true })
  t.match(envelope.login({ type: 'account', authority: 'user' }), { code: 20_000 })
})

t.test('a message is the error’s own, else config’s, else the language’s', async t => {
  const envelope = createEnvelope({
    ...base,
    language: 'zh',
    messages: { 'login.refused': 'Nope.' }
  })
  t.match(envelope.failure(new GatewayError('session.none'), ''), {
    message: errorKinds['session.none'].zh,
    errorMessage: errorKinds['session.none'].zh
  })
  t.match(envelope.failure(new GatewayError('login.refused'), ''), { message: 'Nope.' })
  t.match(envelope.failure(new GatewayError('login.refused', { message: 'Very own.' }), ''), {
    message: 'Very own.',
    errorMessage: 'Very own.'
  })
})

t.test('every error in every dialect and language has a message to show', async t => {
  for (const language of ['en', 'zh'] as const) {
    for (const dialect of ['dual', 'ant-design-pro', 'base-response'] as const) {
      const envelope = createEnvelope({ ...base, dialect, language })
      for (const code of Object.keys(errorKinds) as ErrorCode[]) {
        const body = envelope.failure(new GatewayError(code), 'r')
        t.match(body[dialect === 'ant-design-pro' ? 'errorMessage' : 'message'], /\S/, code)
        t.equal(body['errorCode'], code)
      }
    }
  }
})

t.test('an upstream’s error keeps its status as the code', async t => {
  t.match(dual.failure(new GatewayError('upstream.error', { status: 409 }), 'r'), {
    code: 409,
    errorCode: 'upstream.error'
  })
})

t.test('what an error brings along stands beside, and its cause stays inside', async t => {
  const body = dual.failure(
    new GatewayError('session.none', {
      extra: { data: { isLogin: false } },
      cause: new Error('redis://10.0.0.1')
    }),
    'r'
  )
  t.match(body, { data: { isLogin: false } })
  t.notMatch(JSON.stringify(body), '10.0.0.1')
})
