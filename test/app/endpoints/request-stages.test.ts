/** The stages of a proxied request by themselves, and which of them a route has. */
import Fastify from 'fastify'
import t from 'tap'
import { ProxiedExchange } from '../../../src/app/endpoints/exchange.ts'
import {
  compileProxied,
  type ProxiedOptions,
  type ProxiedRoute
} from '../../../src/app/endpoints/proxied.ts'
import {
  requestHeadersStage,
  type RequestStage,
  rewriteStage
} from '../../../src/app/endpoints/request-stages.ts'
import { createRewrite } from '../../../src/proxy/path.ts'
import { tokenNamesOf } from '../../../src/proxy/token-names.ts'
import { noTimeOuts as timeOuts } from '../../support/time-outs.ts'

const bounds = {
  timeoutMs: 1000,
  timeOuts,
  collectBytes: 1000,
  collectOnly: false,
  maxBodyBytes: 1000
}

/** The exchange of a real request after a stage. */
async function run(stage: RequestStage, target: string): Promise<ProxiedExchange> {
  const app = Fastify()
  const { promise, resolve, reject } = Promise.withResolvers<ProxiedExchange>()
  app.decorateRequest('exchange', undefined)
  app.decorateRequest('onResponseClose', null as never)
  app.get('/*', (request, reply) => {
    request.onResponseClose = []
    const exchange = new ProxiedExchange(request, reply, bounds)
    try {
      stage(exchange)
      resolve(exchange)
    } catch (error) {
      reject(error as Error)
    }
    reply.send()
  })
  await app.inject(target)
  await app.close()
  return await promise
}

t.test('rewrite: the public path becomes the upstream’s, the query stays', async t => {
  const stage = rewriteStage(createRewrite(['/api/*'], '/v1/*', '/base'))
  t.equal((await run(stage, '/api/x')).path, '/base/v1/x')
  t.equal((await run(stage, '/api/x?a=%20b')).path, '/base/v1/x?a=%20b')
  await t.rejects(run(stage, '/elsewhere'), { code: 'request.path' })
})

t.test('request headers: made of what the request is', async t => {
  const stage = requestHeadersStage(
    (_headers, { requestId }, hasBody, isRead) => ({ id: requestId, of: `${hasBody} ${isRead}` }),
    () => undefined
  )
  const { headers, request } = await run(stage, '/api/x')
  t.same(headers, { id: request.id, of: 'false true' })
})

const route: ProxiedRoute = {
  name: 'r',
  paths: ['/api/r'],
  methods: ['GET', 'POST'],
  access: 'public',
  upstream: {
    config: { credential: 'none', identity: true },
    origin: 'http://127.0.0.1:1',
    base: ''
  } as ProxiedRoute['upstream'],
  upstreamName: 'b',
  upstreamPath: '/r',
  timeoutMs: 1000,
  timeOuts,
  touch: true,
  errorStatus: 'own',
  maxBody: 1000,
  passAuthorization: false,
  passCookies: [],
  passRefusedHeaders: [],
  setCookies: [],
  redirects: 'refuse',
  touchesByStream: false
}
const options = {
  identity: {},
  tokenNames: tokenNamesOf({ tokenHeaders: [], tokenCookies: [], tokenQuery: [] }),
  mount: '',
  forwardedHost: () => undefined,
  countMissing: () => {}
} as unknown as ProxiedOptions
const shaping = {
  shape: (body: unknown) => body,
  shapeNothing: () => null,
  maxShaped: 1,
  tooLarge: 'refuse' as const
}

const namesOf = (more: Partial<ProxiedRoute>) => {
  const { stages } = compileProxied({ ...route, ...more }, options)
  return {
    request: stages.request.map(({ name }) => name).join(' '),
    response: stages.response.map(({ name }) => name).join(' ')
  }
}

t.test('a route has the stages that its config asks for, in one order', async t => {
  t.same(namesOf({}), {
    request: 'rewriteTarget buildRequestHeaders',
    response: 'copyHeaders mergeVary rewriteRedirect refuseErrors sendEmpty sendHead relayBody'
  })
  t.same(namesOf({ methods: ['POST'], observe: () => {} }), {
    request: 'rewriteTarget buildRequestHeaders',
    response: 'copyHeaders mergeVary rewriteRedirect refuseErrors sendEmpty observeJson relayBody'
  })
  const parts = { parts: [], into: [], missing: 'missing' }
  t.same(namesOf({ shaping: { ...shaping, parts } }), {
    request: 'rewriteTarget buildRequestHeaders startParts',
    response:
      'copyHeaders mergeVary rewriteRedirect refuseErrors shapeEmpty sendRedirect ' +
      'sendShapedHead shapeBody'
  })
})
