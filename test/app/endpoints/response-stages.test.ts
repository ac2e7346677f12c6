/** Each stage of a proxied response by itself, on a real reply. */
import { Readable } from 'node:stream'
import Fastify from 'fastify'
import t from 'tap'
import {
  errorStage,
  observeStage,
  redirectStage,
  relayStage,
  responseHeadersStage,
  type ResponseStage,
  runResponseStages,
  sendEmpty,
  sendHead,
  sendRedirect,
  sendShapedHead,
  shapeEmptyStage,
  shapeStage,
  varyStage
} from '../../../src/app/endpoints/response-stages.ts'
import { ProxiedExchange } from '../../../src/app/endpoints/exchange.ts'
import { GatewayError } from '../../../src/errors.ts'
import { Trail } from '../../../src/observability/trail.ts'
import { createRewrite } from '../../../src/proxy/path.ts'
import { CollectedBody, type UpstreamResponse } from '../../../src/proxy/response.ts'
import { noTimeOuts as timeOuts } from '../../support/time-outs.ts'

const bounds = {
  timeoutMs: 1000,
  timeOuts,
  collectBytes: 1000,
  collectOnly: false,
  maxBodyBytes: 1000
}

interface Options {
  readonly method?: 'GET' | 'HEAD'
  readonly before?: Record<string, string>
}

/** Runs stages, and sends `rest` where none of them has sent the response. */
async function run(
  stages: readonly ResponseStage[],
  response: UpstreamResponse,
  { method = 'GET', before = {} }: Options = {}
) {
  const app = Fastify({ exposeHeadRoutes: false })
  app.decorateRequest('exchange', undefined)
  app.decorateRequest('live', undefined)
  app.decorateRequest('onResponseClose', null as never)
  app.decorateReply('standardHeaders', { getter: () => ({}) })
  app.route({
    method,
    url: '/public/x',
    handler: (request, reply) => {
      request.onResponseClose = []
      request.trail = new Trail(request.id, method, request.url, request.ip)
      const exchange = new ProxiedExchange(request, reply.headers(before), bounds)
      reply.code(response.status)
      const sendRest: ResponseStage = () => {
        reply.send('rest')
        return true
      }
      runResponseStages([...stages, sendRest], exchange, response)
    }
  })
  app.setErrorHandler((error, _request, reply) => {
    reply.code(500).send(error instanceof GatewayError ? error.code : String(error))
  })
  const { statusCode: status, headers, body } = await app.inject({ method, url: '/public/x' })
  await app.close()
  return { status, headers, body }
}

const collected = (text = '') => new CollectedBody(Buffer.from(text))
const whole = (status: number, headers: UpstreamResponse['headers'] = {}, text = '') => ({
  status,
  headers,
  body: collected(text)
})
const json = { 'content-type': 'application/json' }

t.test(
  'response headers: those for the client are copied, unless one write takes them',
  async t => {
    const choose = () => ({ 'x-kept': 'yes' })
    const shaped = responseHeadersStage(choose, false)
    t.match(await run([shaped], whole(200)), { headers: { 'x-kept': 'yes' }, body: 'rest' })
    const relayed = responseHeadersStage(choose, true)
    t.notOk('x-kept' in (await run([relayed], whole(200))).headers, 'left to relayStage')
    t.match(await run([relayed, relayStage()], whole(200, {}, 'b')), {
      headers: { 'x-kept': 'yes' },
      body: 'b'
    })
  }
)

t.test('vary: joins what CORS has set; a header that it varies by no more is left out', async t => {
  const upstream = whole(200, { vary: 'Accept-Encoding, Accept' })
  const before = { vary: 'Origin' }
  t.match(await run([varyStage()], upstream, { before }), {
    headers: { vary: 'Origin, Accept-Encoding, Accept' }
  })
  t.match(await run([varyStage('accept-encoding')], upstream, { before }), {
    headers: { vary: 'Origin, Accept' }
  })
})

t.test('redirect: within the upstream to the public path, elsewhere only where it may', async t => {
  const rewrite = createRewrite(['/public/*'], '/internal/*', '')
  const stage = (redirects: 'refuse' | 'pass') =>
    redirectStage({
      origin: 'http://up.test',
      origins: new Set(['http://up.test', 'http://up2.test']),
      rewrite,
      redirects
    })
  const to = (location: string) => whole(302, { location })
  t.match(await run([stage('refuse')], to('/internal/y?q=1')), {
    status: 302,
    headers: { location: '/public/y?q=1' }
  })
  t.match(await run([stage('refuse')], to('/internal/ui?q=1#/orders/7')), {
    headers: { location: '/public/ui?q=1#/orders/7' }
  })
  t.match(await run([stage('refuse')], to('http://up2.test/internal/z')), {
    status: 302,
    headers: { location: '/public/z' }
  })
  for (const location of ['/other', '', 'https://else.test/', 'javascript:alert(1)']) {
    t.match(await run([stage('refuse')], to(location)), { body: 'upstream.redirect' }, location)
  }
  t.match(await run([stage('pass')], to('https://else.test/')), {
    headers: { location: 'https://else.test/' }
  })
  t.match(await run([stage('pass')], to('javascript:alert(1)')), { body: 'upstream.redirect' })
})

t.test('errors: pages are refused everywhere, JSON on shaped routes only', async t => {
  t.match(await run([errorStage(true)], whole(404, json)), { status: 404, body: 'rest' })
  t.match(await run([errorStage(false)], whole(404, json)), { body: 'upstream.error' })
  t.match(await run([errorStage(true)], whole(404)), { body: 'upstream.error' })
  t.match(await run([errorStage(true)], whole(200)), { body: 'rest' })
})

t.test('what has no body is sent without one', async t => {
  for (const status of [204, 205, 304]) {
    t.match(await run([sendEmpty], whole(status)), { status, body: '' })
  }
  t.match(await run([sendEmpty], whole(200)), { body: 'rest' })
  t.match(
    await run([sendHead], whole(200), { method: 'HEAD', before: { 'content-length': '9' } }),
    {
      headers: { 'content-length': '9' },
      body: ''
    }
  )
  t.match(await run([sendShapedHead], whole(200), { method: 'HEAD' }), {
    headers: { 'content-type': 'application/json; charset=utf-8' }
  })
  t.match(await run([sendRedirect], whole(302), { before: { 'content-type': 'text/html' } }), {
    status: 302,
    body: ''
  })
})

t.test('observe: sees whole JSON, and sends nothing', async t => {
  const seen: string[] = []
  const stage = observeStage(bytes => seen.push(String(bytes)))
  t.match(await run([stage], whole(200, json, '1')), { body: 'rest' })
  await run([stage], whole(200, {}, '2'))
  await run([stage], whole(206, json, '3'))
  await run([stage], { status: 200, headers: json, body: Readable.from(['4']) })
  t.same(seen, ['1'])
})

t.test('relay: bytes in one write, a stream as a stream', async t => {
  t.match(await run([relayStage()], whole(200, {}, 'bytes')), {
    headers: { 'content-length': '5' },
    body: 'bytes'
  })
  const stream = Readable.from([Buffer.from('stream')])
  t.match(await run([relayStage()], { status: 200, headers: {}, body: stream }), { body: 'stream' })
})

t.test('shape: the body is read and shaped; what is empty or too large is not', async t => {
  const shaping = {
    shape: (body: unknown) => ({ data: body }),
    shapeNothing: () => ({ data: null }),
    maxShaped: 10,
    tooLarge: 'refuse' as const
  }
  t.same((await run([shapeStage(shaping)], whole(200, json, '{"a":1}'))).body, '{"data":{"a":1}}')
  const large = whole(200, json, '"more than ten bytes"')
  t.match(await run([shapeStage(shaping)], large), { body: 'shape.too-large' })
  t.match(await run([shapeStage({ ...shaping, tooLarge: 'pass' })], large), {
    body: '"more than ten bytes"'
  })
  t.match(await run([shapeEmptyStage(shaping)], whole(204)), { status: 204, body: '' })
  t.match(await run([shapeEmptyStage(shaping)], whole(304)), { body: 'upstream.invalid' })
  t.match(await run([shapeEmptyStage(shaping)], whole(200)), { body: '{"data":null}' })
  t.match(await run([shapeEmptyStage(shaping)], whole(200, json, '{}')), { body: 'rest' })
})

t.test(
  'a stage that fails is answered with its error, and the upstream’s body is ended',
  async t => {
    const body = new Readable({ read() {} }).on('error', () => {})
    const fails: ResponseStage = () => {
      throw new GatewayError('upstream.invalid')
    }
    t.match(await run([fails], { status: 200, headers: {}, body }), { body: 'upstream.invalid' })
    t.ok(body.destroyed)
  }
)
