import fc from 'fast-check'
import t from 'tap'
import advice from '../../src/errors/advice.json' with { type: 'json' }
import {
  type ErrorCode,
  errorKinds,
  GatewayError,
  toGatewayError
} from '../../src/errors/errors.ts'
import en from '../../src/errors/texts.en.json' with { type: 'json' }
import zh from '../../src/errors/texts.zh.json' with { type: 'json' }
import { seed } from '../support/seed.ts'

const kinds = Object.entries(errorKinds)

t.test(
  'every code has a message in English and in Chinese, an error status and a way to be shown',
  async t => {
    for (const [code, { status, en, zh, showType }] of kinds) {
      t.match(code, /^[a-z]+(\.[a-z-]+){0,2}$/)
      t.ok(Number.isInteger(status) && status >= 400 && status <= 599, code)
      t.match(en, /^[A-Z].{8,}\.$/, code)
      t.match(zh, /[\u4e00-\u9fff].*。$/u, code)
      t.ok([0, 1, 2, 3, 9].includes(showType), code)
    }
  }
)

t.test('texts and advice are of the codes that there are', t => {
  for (const texts of [en, zh, advice]) t.strictSame(Object.keys(texts), Object.keys(errorKinds))
  t.end()
})

t.test('each code has the status of the contract', async t => {
  const contract: Readonly<Record<string, number>> = {
    'session.none': 401,
    'session.idle': 401,
    'session.absolute': 401,
    'session.revoked': 401,
    'session.replaced': 401,
    'login.refused': 401,
    'login.challenge': 400,
    'login.blocked': 403,
    'login.expired-password': 403,
    'route.forbidden': 403,
    'origin.refused': 403,
    'route.unknown': 404,
    'route.method': 405,
    'request.malformed': 400,
    'request.path': 400,
    'request.too-large': 413,
    'request.type': 415,
    'limit.exceeded': 429,
    'login.locked': 429,
    'request.headers': 431,
    'upstream.refused': 502,
    'upstream.reset': 502,
    'upstream.invalid': 502,
    'shape.not-json': 502,
    'shape.too-large': 502,
    'session.unavailable': 503,
    'overloaded': 503,
    'upstream.timeout': 504,
    'upstream.timeout.connect': 504,
    'upstream.timeout.idle': 504,
    'upstream.timeout.total': 504
  }
  for (const [code, status] of Object.entries(contract)) {
    t.equal(errorKinds[code as ErrorCode].status, status, code)
  }
})

t.test('only a session that is over sends the console to its sign-in page', async t => {
  for (const [code, { status, showType }] of kinds) {
    t.equal(showType === 9, code.startsWith('session.') && status === 401, code)
  }
})

t.test('no message names a package, an address, or the inside of the gateway', async t => {
  for (const [code, { en, zh }] of kinds) {
    t.notMatch(`${en} ${zh}`, /fastify|undici|redis|node|upstream|https?:|\d{2,}/i, code)
  }
})

t.test(
  'an error has the status of its code, or the one that it was given, also under Fastify’s name',
  async t => {
    t.match(new GatewayError('route.unknown'), {
      status: 404,
      statusCode: 404,
      code: 'route.unknown',
      name: 'GatewayError',
      message: errorKinds['route.unknown'].en
    })
    t.match(new GatewayError('upstream.error', { status: 409, message: 'Taken.' }), {
      status: 409,
      statusCode: 409,
      message: 'Taken.'
    })
    const cause = new Error('inside')
    t.equal(new GatewayError('overloaded', { cause }).cause, cause)
    t.notOk('cause' in new GatewayError('overloaded'))
  }
)

t.test('an error of ours stays the very same', async t => {
  const error = new GatewayError('login.refused')
  t.equal(toGatewayError(error), error)
})

t.test('what Fastify and its plugins throw at a client’s mistake has a code of ours', async t => {
  const thrown: ReadonlyArray<readonly [object, ErrorCode]> = [
    [{ code: 'FST_ERR_CTP_INVALID_MEDIA_TYPE', statusCode: 415 }, 'request.type'],
    [{ code: 'FST_ERR_CTP_BODY_TOO_LARGE', statusCode: 413 }, 'request.too-large'],
    [{ code: 'FST_ERR_CTP_EMPTY_JSON_BODY', statusCode: 400 }, 'request.malformed'],
    [{ code: 'FST_ERR_CTP_INVALID_JSON_BODY', statusCode: 400 }, 'request.malformed'],
    [{ code: 'FST_ERR_CTP_INVALID_CONTENT_LENGTH', statusCode: 400 }, 'request.malformed'],
    [{ code: 'FST_ERR_VALIDATION', statusCode: 400 }, 'request.malformed'],
    [{ code: 'FST_ERR_BAD_URL', statusCode: 400 }, 'request.path'],
    [{ code: 'FST_ERR_SOMETHING_NEW', statusCode: 413 }, 'request.too-large'],
    [{ statusCode: 415 }, 'request.type'],
    [{ statusCode: 418 }, 'request.malformed'],
    [{ statusCode: 400 }, 'request.malformed'],
    [{ statusCode: 500 }, 'gateway.fault'],
    [{ statusCode: 302 }, 'gateway.fault'],
    [{ statusCode: '400' }, 'gateway.fault'],
    [{ code: 'ENOENT' }, 'gateway.fault']
  ]
  for (const [error, code] of thrown) {
    t.equal(
      toGatewayError(Object.assign(new Error('inside'), error)).code,
      code,
      JSON.stringify(error)
    )
  }
})

t.test('whatever is thrown, its own message goes no further than the cause', async t => {
  const inside = 'connect ECONNREFUSED 10.1.2.3:6379 at /srv/app/src'
  const known = [
    'FST_ERR_CTP_INVALID_JSON_BODY',
    'FST_ERR_VALIDATION',
    'ECONNRESET',
    'ECONNREFUSED',
    undefined
  ]
  for (const code of known) {
    for (const statusCode of [undefined, 400, 413, 415, 429, 500, 503]) {
      const error = Object.assign(new Error(inside), { code, statusCode })
      const ours = toGatewayError(error)
      t.equal(ours.message, errorKinds[ours.code].en)
      t.equal(ours.cause, error)
      t.notMatch(
        JSON.stringify(
          Object.entries(ours).filter(([name]) => name !== 'detail' && name !== 'cause')
        ),
        '10.1.2.3'
      )
    }
  }
})

t.test('anything at all can be thrown and becomes an error of ours', async t => {
  for (const thrown of [
    undefined,
    null,
    0,
    '',
    'text',
    true,
    Symbol('x'),
    5n,
    [],
    {},
    () => {},
    { code: 'constructor' },
    { code: '__proto__' },
    { code: 'toString', statusCode: Number.NaN }
  ]) {
    t.ok(errorKinds[toGatewayError(thrown).code], typeof thrown)
  }
  fc.assert(
    fc.property(
      fc.anything(),
      fc.oneof(fc.string(), fc.constantFrom('constructor', 'toString', 'valueOf')),
      fc.anything(),
      (thrown, code, statusCode) => {
        for (const error of [toGatewayError(thrown), toGatewayError({ code, statusCode })]) {
          if (
            !(error.code in errorKinds) ||
            error.status < 400 ||
            error.message !== errorKinds[error.code].en
          ) {
            throw new Error('not one of ours')
          }
        }
      }
    ),
    { seed }
  )
})
