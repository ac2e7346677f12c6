import t, { type Test } from 'tap'
import { documentOf } from '../support/document.ts'
import { testGateway } from '../support/gateway.ts'
import { testUpstream } from '../support/upstream.ts'

/** The component that a reference leads to. */
const componentOf = (document: Record<string, any>, place: string) =>
  document['components'].schemas[place.split('/').at(-1) ?? '']

const shaped = { shape: 'whole' }

/** A gateway before a back-end that answers 404 to everything, and its document. */
async function documented(t: Test, routes: object, gateway: Record<string, unknown> = {}) {
  const { url } = await testUpstream(t.after, (_request, response) => {
    response.writeHead(404, { 'content-type': 'application/json' }).end('{"message":"none"}')
  })
  const shapes = { whole: [{ wrap: 'envelope' }] }
  const files = { gateway, backend: url, routes: { shapes, ...routes } }
  const running = await testGateway(t.after, files)
  return { ...(await documentOf(running)), signIn: running.signIn }
}

t.test('a status of envelope.custom.errors stands in the document beside 200', async t => {
  const routes = { shaped: { ...shaped, methods: ['GET', 'POST'] } }
  const { responseOf, call } = await documented(t, { routes }, { extends: 'gin-vue-admin' })
  t.match(await call('/api/shaped'), { status: 401, fault: undefined })
  t.match(responseOf('GET', '/api/shaped', 401)?.['description'], 'session.none')
  t.match(responseOf('GET', '/api/shaped', 200)?.['description'], 'Success or failure')
  t.ok(responseOf('POST', '/api/shaped', '2XX'), 'a back-end may answer 201')
  t.notOk(responseOf('GET', '/api/shaped', 403), 'no other error has its own status')
})

t.test('errors with the status 200 stand beside the success in the document', async t => {
  const errors = {
    'session.*': { code: '8888', status: 200 },
    'upstream.*': { code: '7', status: 502 },
    '*': { code: '500' }
  }
  const custom = { members: { message: 'msg', requestId: false }, errors }
  const { document, responseOf, call, signIn } = await documented(
    t,
    { routes: { shaped, plain: {} } },
    { envelope: { dialect: 'custom', successCode: '0000', custom } }
  )
  for (const path of ['/api/shaped', '/api/session', '/api/account/profile', '/api/plain']) {
    const json = { code: '8888', errorCode: 'session.none' }
    t.match(await call(path), { status: 200, fault: undefined, json }, path)
    t.notOk(responseOf('GET', path, 401), path)
    if (path === '/api/plain') continue
    const { content } = responseOf('GET', path, 200) ?? {}
    const [, { $ref: failure }] = content['application/json'].schema.anyOf
    t.match(JSON.stringify(componentOf(document, failure)), 'session.none')
  }
  t.same(responseOf('GET', '/api/plain', 200)?.['content']['*/*'], {})

  const cookie = await signIn()
  // Not 404: the entry names the upstream’s errors.
  t.match(await call('/api/shaped', { cookie }), { status: 502, fault: undefined })
  t.match(await call('/api/plain', { cookie }), { status: 404, fault: undefined })
})

t.test('an answer with the status of an error stands beside that error', async t => {
  const answer = { json: { reason: 'gone' }, status: 403, inEnvelope: 'none' }
  const gone = { access: { roles: ['admin'] }, answer }
  const busy = { ...gone, answer: { ...answer, status: 503 } }
  const { document, responseOf, call, signIn } = await documented(t, { routes: { gone, busy } })
  const [alice, bob] = [await signIn(), await signIn('bob')]
  for (const [cookie, json] of [
    [alice, { reason: 'gone' }],
    [bob, { errorCode: 'route.forbidden' }]
  ] as const) {
    t.match(await call('/api/gone', { cookie }), { status: 403, json, fault: undefined })
  }
  const { content: ofGone } = responseOf('GET', '/api/gone', 403) ?? {}
  const [, failure] = ofGone['application/json'].schema.anyOf
  t.match(JSON.stringify(componentOf(document, failure.$ref)), 'route.forbidden')

  t.ok(responseOf('GET', '/api/busy', 503))

  const problem = await documented(t, { routes: { gone } }, { envelope: { dialect: 'problem' } })
  const cookie = await problem.signIn()
  t.equal((await problem.call('/api/gone', { cookie })).fault, undefined)
  t.match(problem.responseOf('GET', '/api/gone', 403)?.['content'], {
    'application/json': { schema: {} },
    'application/problem+json': { schema: { $ref: String } }
  })
})

t.test('the own errors of a back-end stand in the document, also with errorStatus ok', async t => {
  const routes = { plain: { errorStatus: 'ok' } }
  const { responseOf, call, signIn } = await documented(t, { routes })
  const own = await call('/api/plain', { cookie: await signIn() })
  t.match(own, { status: 404, json: { message: 'none' } })
  t.match(responseOf('GET', '/api/plain', 'default')?.['content'], { '*/*': {} })
  t.match(responseOf('GET', '/api/plain', 200)?.['description'], 'failure', 'another one is 200')
})
