/** Which code a failure on the way to a back-end has. */
import t from 'tap'
import { responseError, upstreamError } from '../../src/proxy/response.ts'

const inside = 'connect to 10.1.2.3:8080'
const foreign = (code: unknown) => Object.assign(new Error(inside), { code })

const codes: Readonly<Record<string, string>> = {
  'upstream.refused':
    'ECONNREFUSED ENOTFOUND EAI_AGAIN EHOSTUNREACH ENETUNREACH EPROTO ' +
    'DEPTH_ZERO_SELF_SIGNED_CERT SELF_SIGNED_CERT_IN_CHAIN UNABLE_TO_VERIFY_LEAF_SIGNATURE ' +
    'UNABLE_TO_GET_ISSUER_CERT_LOCALLY CERT_HAS_EXPIRED ERR_TLS_CERT_ALTNAME_INVALID ' +
    'ERR_SSL_WRONG_VERSION_NUMBER',
  'upstream.reset': 'ECONNRESET EPIPE UND_ERR_SOCKET',
  'upstream.timeout.connect': 'ETIMEDOUT UND_ERR_CONNECT_TIMEOUT',
  'upstream.invalid':
    'HPE_INVALID_CONSTANT HPE_INVALID_CONTENT_LENGTH UND_ERR_HEADERS_OVERFLOW ' +
    'UND_ERR_RES_CONTENT_LENGTH_MISMATCH SOMETHING_NEW constructor __proto__ toString',
  'overloaded': 'EMFILE ENOBUFS EADDRNOTAVAIL',
  'gateway.stopping': 'UND_ERR_CLOSED UND_ERR_DESTROYED',
  'request.malformed': 'UND_ERR_REQ_CONTENT_LENGTH_MISMATCH UND_ERR_INVALID_ARG'
}

t.test(
  'a failure on the way to a back-end has a code, and its address stays in the log',
  async t => {
    for (const [code, names] of Object.entries(codes)) {
      for (const name of names.split(' ')) {
        const error = upstreamError(foreign(name))
        t.match(error, { code, cause: { message: inside } }, name)
        t.notMatch(error.message, '10.1.2.3')
      }
    }
    t.match(upstreamError(foreign('EPIPE')).cause, { message: inside }, 'what the log tells')
    const all = new AggregateError([foreign('ECONNREFUSED'), foreign('EPIPE')])
    t.equal(upstreamError(all).code, 'upstream.refused', 'a dial of several addresses')
    const things = [undefined, null, 'text', 5, {}, [], new Error('x'), foreign(''), { code: 5 }]
    for (const thrown of [...things, { errors: [] }, { errors: 'x' }]) {
      t.equal(upstreamError(thrown).code, 'upstream.invalid', JSON.stringify(thrown))
    }
  }
)

t.test('of a back-end’s message no more than 500 characters go on', async t => {
  const headers = { 'content-type': 'application/json' }
  for (const length of [500, 501, 60_000]) {
    const body = Buffer.from(JSON.stringify({ message: 'x'.repeat(length) }))
    const { message } = responseError({ status: 422, headers, body }, undefined)
    t.equal(message, 'x'.repeat(500), `${length}`)
  }
})
