import t from 'tap'
import { documentOf } from '../support/document.ts'
import { password, testGateway } from '../support/gateway.ts'
import { testUpstream } from '../support/upstream.ts'

/** What a reference leads to. */
const schemaAt = (document: Record<string, any>, place: string) =>
  place
    .split('/')
    .slice(1)
    .reduce<any>((at, step) => at?.[step], document)

const backend = (url: string) => ({
  upstreams: { b: { url } },
  shapes: { whole: [{ wrap: 'envelope' }] }
})

const shaped = { path: '/api/shaped', upstream: 'b', shape: 'whole' }
const plain = { path: '/api/plain', upstream: 'b' }

async function failingUpstream(undo: (end: () => unknown) => void) {
  return await testUpstream(undo, (_request, response) => {
    response.writeHead(404, { 'content-type': 'application/json' }).end('{"message":"none"}')
  })
}

t.test('a status of envelope.custom.errors stands in the document beside 200', async t => {
  const { url } = await failingUpstream(t.after)
  const gateway = await testGateway(t.after, {
    gateway: { extends: 'gin-vue-admin' },
    routes: { ...backend(url), routes: { shaped: { ...shaped, methods: ['GET', 'POST'] } } }
  })
  const { responseOf, call } = await documentOf(gateway)
  const { status, fault } = await call('/api/shaped')
  t.equal(status, 401)
  t.equal(fault, undefined)
  t.match(responseOf('GET', '/api/shaped', 401)?.['description'], 'session.none')
  t.match(responseOf('GET', '/api/shaped', 200)?.['description'], 'Success or failure')
  t.ok(responseOf('POST', '/api/shaped', '2XX'), 'a back-end may answer 201')
  t.notOk(responseOf('GET', '/api/shaped', 403), 'no other error has its own status')
})

t.test('errors with the status 200 stand beside the success in the document', async t => {
  const { url } = await failingUpstream(t.after)
  const gateway = await testGateway(t.after, {
    gateway: {
      envelope: {
        dialect: 'custom',
        successCode: '0000',
        custom: {
          members: { message: 'msg', requestId: false },
          errors: {
            'session.*': { code: '8888', status: 200 },
            'upstream.*': { code: '7', status: 502 },
            '*': { code: '500' }
          }
        }
      }
    },
    routes: {
      ...backend(url),
      routes: { shaped, plain, other: { ...shaped, path: '/api/other', dialect: 'dual' } }
    }
  })
  const { document, responseOf, call } = await documentOf(gateway)
  for (const path of ['/api/shaped', '/api/plain', '/api/session', '/api/account/profile']) {
    const { status, fault, json } = await call(path)
    t.match(json, { code: '8888', errorCode: 'session.none' })
    t.equal(status, 200, path)
    t.equal(fault, undefined, path)
    t.notOk(responseOf('GET', path, 401), path)
  }
  for (const path of ['/api/shaped', '/api/session', '/api/account/profile']) {
    const { content } = responseOf('GET', path, 200) ?? {}
    const [, { $ref: failure }] = content['application/json'].schema.anyOf
    t.match(JSON.stringify(schemaAt(document, failure)), 'session.none')
  }
  t.same(responseOf('GET', '/api/plain', 200)?.['content']['*/*'], {})
  t.equal((await call('/api/other')).status, 401, 'another dialect has no entries')
  t.match(responseOf('GET', '/api/other', 401)?.['description'], 'session.none')

  const cookie = await gateway.signIn()
  const failed = await call('/api/shaped', { cookie })
  t.equal(failed.status, 502, 'not 404: the entry names the upstream’s errors')
  t.equal(failed.fault, undefined)
  const own = await call('/api/plain', { cookie })
  t.equal(own.status, 404)
  t.equal(own.fault, undefined)
})

t.test(
  'an answer with the status of an error stands in the document beside that error',
  async t => {
    const gone = { access: { roles: ['admin'] }, answer: { json: { reason: 'gone' }, status: 403 } }
    const answer = { ...gone.answer, inEnvelope: 'none' }
    const gateway = await testGateway(t.after, {
      routes: {
        routes: {
          gone: { ...gone, answer, path: '/api/gone' },
          problem: { ...gone, answer, path: '/api/problem', dialect: 'problem' },
          busy: { ...gone, answer: { ...answer, status: 503 }, path: '/api/busy' }
        }
      }
    })
    const { document, responseOf, call } = await documentOf(gateway)
    const [alice, bob] = [await gateway.signIn(), await gateway.signIn('bob')]
    for (const [cookie, body] of [
      [alice, { reason: 'gone' }],
      [bob, { errorCode: 'route.forbidden' }]
    ] as const) {
      const { status, json, fault } = await call('/api/gone', { cookie })
      t.equal(status, 403)
      t.match(json, body)
      t.equal(fault, undefined)
    }
    const { content: ofGone } = responseOf('GET', '/api/gone', 403) ?? {}
    const [, failure] = ofGone['application/json'].schema.anyOf
    t.match(JSON.stringify(schemaAt(document, failure.$ref)), 'route.forbidden')

    t.equal((await call('/api/problem', { cookie: alice })).fault, undefined)
    const { content } = responseOf('GET', '/api/problem', 403) ?? {}
    t.match(content, {
      'application/json': { schema: {} },
      'application/problem+json': { schema: { $ref: String } }
    })
    t.ok(responseOf('GET', '/api/busy', 503))
  }
)

t.test('the own errors of a back-end stand in the document, also with errorStatus ok', async t => {
  const { url } = await failingUpstream(t.after)
  const gateway = await testGateway(t.after, {
    routes: { ...backend(url), routes: { plain: { ...plain, errorStatus: 'ok' } } }
  })
  const { responseOf } = await documentOf(gateway)
  const cookie = await gateway.signIn()
  const { status, json } = await gateway.call('/api/plain', { cookie })
  t.equal(status, 404)
  t.same(json, { message: 'none' })
  t.match(responseOf('GET', '/api/plain', 'default')?.['content'], { '*/*': {} })
  t.match(responseOf('GET', '/api/plain', 200)?.['description'], 'failure', 'another one is 200')
})

t.test('the status of an answer at an own endpoint stands in the document', async t => {
  const answer = { json: { done: true }, status: 201 }
  const gateway = await testGateway(t.after, {
    routes: {
      endpoints: {
        login: { answer },
        logout: { answer },
        profile: { answer },
        refresh: { path: '/api/refresh', answer }
      }
    }
  })
  const { responseOf, call } = await documentOf(gateway)
  const login = '/api/auth/admin/login'
  const signIn = { json: { username: 'alice', password } }
  const { headers } = await gateway.call(login, signIn)
  const cookie = headers.getSetCookie()[0]?.split(';', 1)[0] ?? ''
  for (const [path, options] of [
    [login, signIn],
    ['/api/account/profile', { cookie }],
    ['/api/refresh', { cookie, json: {} }],
    ['/api/account/logout', { cookie, json: {} }]
  ] as const) {
    const { status, fault } = await call(path, options)
    t.equal(status, 201, path)
    t.equal(fault, undefined, path)
    t.notOk(responseOf('json' in options ? 'POST' : 'GET', path, 200), path)
  }
})
