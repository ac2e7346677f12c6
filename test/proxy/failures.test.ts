import t from 'tap'
import { responseError, upstreamError } from '../../src/proxy/failures.ts'

const failed = (code: unknown, message = 'connect to 10.1.2.3:8080') =>
  upstreamError(Object.assign(new Error(message), { code }))

const named: Readonly<Record<string, readonly string[]>> = {
  'upstream.refused': [
    'ECONNREFUSED',
    'ENOTFOUND',
    'EAI_AGAIN',
    'EHOSTUNREACH',
    'ENETUNREACH',
    'EPROTO',
    'DEPTH_ZERO_SELF_SIGNED_CERT',
    'SELF_SIGNED_CERT_IN_CHAIN',
    'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
    'CERT_HAS_EXPIRED',
    'ERR_TLS_CERT_ALTNAME_INVALID',
    'ERR_SSL_WRONG_VERSION_NUMBER'
  ],
  'upstream.reset': ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'],
  'upstream.timeout.connect': ['ETIMEDOUT', 'UND_ERR_CONNECT_TIMEOUT'],
  'upstream.invalid': [
    'HPE_INVALID_CONSTANT',
    'HPE_INVALID_CONTENT_LENGTH',
    'UND_ERR_HEADERS_OVERFLOW',
    'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
    'SOMETHING_NEW',
    '',
    'constructor',
    '__proto__',
    'toString'
  ],
  'overloaded': ['EMFILE', 'ENOBUFS', 'EADDRNOTAVAIL'],
  'gateway.stopping': ['UND_ERR_CLOSED', 'UND_ERR_DESTROYED'],
  'request.malformed': ['UND_ERR_REQ_CONTENT_LENGTH_MISMATCH', 'UND_ERR_INVALID_ARG']
}
for (const [code, foreign] of Object.entries(named)) {
  t.test(`a failure on the way to a back-end is ${code} where it should be`, async t => {
    for (const name of foreign) t.equal(failed(name).code, code, name)
  })
}

t.test('no internal address goes further than the log', async t => {
  const error = failed('ECONNREFUSED')
  t.notMatch(error.message, '10.1.2.3')
  t.match(error.cause, { message: 'connect to 10.1.2.3:8080' })
})

t.test('whatever is thrown has a code', async t => {
  for (const thrown of [
    undefined,
    null,
    'text',
    5,
    {},
    [],
    new Error('x'),
    { errors: [] },
    { errors: 'x' },
    { code: 5 }
  ]) {
    t.equal(upstreamError(thrown).code, 'upstream.invalid', JSON.stringify(thrown))
  }
})

t.test('a dial that failed on every address is named by the first', async t => {
  t.equal(
    upstreamError(new AggregateError([Object.assign(new Error('::1'), { code: 'ECONNREFUSED' })]))
      .code,
    'upstream.refused'
  )
})

t.test('of a back-end’s message no more than 500 characters go on', async t => {
  const headers = { 'content-type': 'application/json' }
  const messageOf = (length: number) =>
    responseError(
      { status: 422, headers, body: Buffer.from(JSON.stringify({ message: 'x'.repeat(length) })) },
      undefined
    ).message
  t.equal(messageOf(500), 'x'.repeat(500))
  t.equal(messageOf(501), 'x'.repeat(500))
  t.equal(messageOf(60_000), 'x'.repeat(500))
})
