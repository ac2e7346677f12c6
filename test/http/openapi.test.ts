/** The OpenAPI document of the running gateway: what it says is true. */
import { Validator } from '@seriousme/openapi-schema-validator'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import openapiTS, { astToString } from 'openapi-typescript'
import t, { type Test } from 'tap'
import ts from 'typescript'
import { parse } from 'yaml'
import { errorKinds } from '../../src/errors/errors.ts'
import { documentOf } from '../support/document.ts'
import { type Files, password, testGateway } from '../support/gateway.ts'
import { temporaryFolder } from '../support/temporary.ts'
import { testUpstream } from '../support/upstream.ts'

type Tree = Record<string, any>

/** A gateway and its document: OpenAPI 3.1, whose references lead to something. */
async function documented(t: Test, files: Files) {
  const gateway = await testGateway(t.after, files)
  const described = await documentOf(gateway)
  const { document } = described
  t.same(await new Validator().validate(structuredClone(document)), { valid: true })
  const text = JSON.stringify(document)
  const names = text.match(/"operationId":"[^"]*"/g) ?? []
  t.equal(new Set(names).size, names.length, 'each operation has a name of its own')
  for (const [, place = ''] of text.matchAll(/"\$ref":"#\/([^"]*)"/g)) {
    const target = place.split('/').reduce<any>((at, step) => at?.[step], document)
    t.ok(target, place)
  }
  return { ...described, signIn: gateway.signIn }
}

const routes = parse(`
endpoints: { profile: { upstream: b, rewrite: /user, shape: user } }
aliases: { /api/currentUser: /api/account/profile, /api/all/*: /api/items/* }
routes:
  items:
    path: /api/items/*
    rewrite: /*
    methods: [GET, POST]
    shape: list
    contract: { file: items.yaml }
  nested: { shape: wrapped, contract: { file: nested.yaml } }
  other-items: { path: /api/items/*, methods: [DELETE], access: { roles: [admin] } }
  plain: { access: public, shape: plain, errorStatus: ok }
  same: { rewrite: /api/plain, access: public, shape: same }
  composed:
    access: public
    shape: wrapped
    parts:
      a: { upstream: b, rewrite: /api/plain, shape: same }
      n: { upstream: b, rewrite: /none, into: x, required: false }
  pa--ged: { path: /api/paged, rewrite: /items, access: public, shape: paged }
  pa-ged: { path: /api/paged2, rewrite: /items, access: public, shape: paged }
  constructor: {}
  chat: { methods: [GET, POST], websocket: {} }
  loose: { websocket: {}, errorStatus: ok }
shapes:
  user: [{ pick: [nick, email] }]
  list: [{ status: { path: code, ok: [0] } }, { unwrap: list }, { wrap: list }]
  plain:
    - status: { path: code, ok: [0] }
    - default: { note: '' }
    - pick: [note, at]
    - convert: { at: date-seconds }
    - wrap: envelope
  same: [{ pick: [code] }]
  wrapped: [{ convert: { code: number } }, { wrap: envelope }]
  paged:
    - paging: { list: list, total: count, current: page, each: [{ convert: { id: string } }] }
`) as Tree

/** The contracts of two routes. */
const code = {
  'items.yaml': `
type: array
items: { $ref: '#/definitions/Item' }
definitions:
  Item:
    type: object
    required: [id]
    properties:
      id: { type: string }
      below: { type: array, items: { $ref: '#/definitions/Item' } }
`,
  'nested.yaml': `
$ref: '#/$defs/API.Page%3Citem%3E'
$defs:
  API.Page<item>:
    type: object
    properties:
      data: { type: array, items: { $ref: '#/$defs/API.Page<item>/definitions/a~1b' } }
    definitions:
      a/b: { type: object, properties: { id: { type: string }, next: { $ref: '#' } } }
`
}

t.test('the document of a config with all there is', async t => {
  const files = { backend: 'http://b.internal', routes, code }
  const { document } = await documented(t, files)
  const { servers, paths, components } = document
  t.equal(servers[0].url, '/')
  t.match(paths['/api/chat'].get.responses['101'].description, /WebSocket/)
  t.match(paths['/api/loose'].get.responses['101'].description, /WebSocket/)
  t.notOk(paths['/api/chat'].post.responses['101'])
  t.notOk(paths['/api/plain'].get.responses['101'])
  t.notOk(Object.hasOwn(components.schemas, 'ConstructorData'), 'a route may be called so')
  t.equal(paths['/api/constructor'].get.responses[200].content['application/json'], undefined)
  const { properties, required } = components.schemas.FailureDual
  t.same(properties.errorCode.enum, Object.keys(errorKinds))
  const additionalProperties = { type: 'array', items: { type: 'string' } }
  t.match(properties.fieldErrors, { type: 'object', additionalProperties })
  t.notOk(required.includes('fieldErrors'), 'not every error has some')
  t.notMatch(JSON.stringify(document), /\$defs|"definitions"/)
  await compiles(
    t,
    document,
    `declare const items: Schemas['ItemsData'], page: Schemas['NestedData']
    export const ids: Array<string | undefined> = [
      items[0]?.below?.[0]?.id, page.data?.[0]?.next?.data?.[0]?.id
    ]`
  )
  const envelope = { dialect: 'ant-design-pro', errorStatus: 'ok', fieldErrors: 'errors' }
  const gateway = { server: { mount: '/x' }, envelope }
  const { document: other } = await documented(t, { ...files, gateway })
  t.equal(other['servers'][0].url, '/x')
  t.ok('errors' in other['components'].schemas.FailureAntDesignPro.properties)
})

/** With what openapi-typescript makes of the document. */
async function compiles(t: Test, document: Tree, code: string): Promise<void> {
  const folder = temporaryFolder()
  const use = join(folder, 'use.ts')
  const types = `import type { components } from './paths.ts'\ntype Schemas = components['schemas']\n`
  writeFileSync(join(folder, 'paths.ts'), astToString(await openapiTS(document as never)))
  writeFileSync(use, types + code)
  const program = ts.createProgram([use], {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    allowImportingTsExtensions: true,
    types: [],
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler
  })
  const faults = ts.getPreEmitDiagnostics(program).map(({ messageText }) => messageText)
  t.same(faults, [])
}

t.test('what the document says of answers is true of the running gateway', async t => {
  const bodies: Tree = {
    '/user': { nick: 'al', email: 'a@example.com' },
    '/api/plain': { code: 0, at: 1795239000 },
    '/items': { code: 0, list: [{ id: 'a', below: [{ id: 'b' }] }], count: 3, page: 1 },
    '/denied': { code: 403, msg: 'no' }
  }
  const backend = await testUpstream(t.after, (request, response) => {
    const body = bodies[request.url ?? '']
    response
      .writeHead(body === undefined ? 404 : 200, { 'content-type': 'application/json' })
      .end(JSON.stringify(body ?? { message: 'none' }))
  })
  const { document, call, signIn } = await documented(t, { backend: backend.url, routes, code })
  const cookie = await signIn()
  const at = '/api/items/{rest}'
  const login = '/api/auth/admin/login'
  for (const [status, path, options] of [
    [200, login, { json: { username: 'alice', password } }],
    [401, login, { json: { username: 'alice', password: 'wrong' } }],
    [400, login, { json: { username: 7 } }],
    [401, '/api/account/profile', {}],
    [200, '/api/currentUser', { cookie }],
    [200, '/api/session', { cookie }],
    [200, '/api/session/list', { cookie }],
    [200, '/api/session/extend', { cookie, json: {} }],
    [200, '/api/session/close', { cookie, json: { others: true } }],
    [200, '/api/items/items', { at, cookie }],
    [403, '/api/items/denied', { at, cookie }],
    [404, '/api/items/none', { at, cookie }],
    [401, '/api/items/items', { at }],
    [200, '/api/plain', {}],
    [200, '/api/same', {}],
    [200, '/api/paged', {}],
    [200, '/api/composed', {}],
    [200, '/api/account/logout', { cookie }]
  ] as const) {
    t.match(await call(path, options), { status, fault: undefined }, path)
  }
  const { json: composed } = await call('/api/composed')
  t.match(composed, { data: { code: 0 }, missing: ['n'] })
  t.equal(document['components'].securitySchemes.session.name, 'console_sid')
})

t.test('answers of config are described by their methods, places and status', async t => {
  const { document } = await documented(t, {
    routes: parse(`
endpoints:
  logout: { methods: [POST], answer: { json: { bye: true }, inEnvelope: none } }
routes:
  menus: { path: /api/menus, methods: [GET, POST], answer: { json: [{ a: 1 }, null] } }
  made: { path: /api/made, access: public, answer: { json: { code: 1 }, status: 201 } }
`) as Tree
  })
  const { paths } = document
  t.same(Object.keys(paths['/api/account/logout']), ['post'])
  const { get, post } = paths['/api/menus']
  t.equal(post.requestBody, undefined)
  t.ok(get.responses[401])
  const schemaOf = (operation: Tree, status = 200) =>
    operation['responses'][status].content['application/json'].schema
  t.match(schemaOf(get).properties, { success: { type: 'boolean' }, data: {} })
  t.same(schemaOf(paths['/api/account/logout'].post), {})
  t.ok(schemaOf(paths['/api/made'].get, 201).properties.data)
})

/** The component that a reference leads to. */
const componentOf = (document: Tree, place: string) =>
  document['components'].schemas[place.split('/').at(-1) ?? '']

const shaped = { shape: 'whole' }

/** Before a back-end that answers 404 to everything. */
async function before404(t: Test, routes: object, gateway: Tree = {}) {
  const { url } = await testUpstream(t.after, (_request, response) => {
    response.writeHead(404, { 'content-type': 'application/json' }).end('{"message":"none"}')
  })
  const shapes = { whole: [{ wrap: 'envelope' }] }
  return await documented(t, { gateway, backend: url, routes: { shapes, ...routes } })
}

t.test('a status of envelope.custom.errors stands in the document beside 200', async t => {
  const routes = { shaped: { ...shaped, methods: ['GET', 'POST'] } }
  const { responseOf, call } = await before404(t, { routes }, { extends: 'gin-vue-admin' })
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
  const { document, responseOf, call, signIn } = await before404(
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
  const { document, responseOf, call, signIn } = await before404(t, { routes: { gone, busy } })
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

  const problem = await before404(t, { routes: { gone } }, { envelope: { dialect: 'problem' } })
  const cookie = await problem.signIn()
  t.equal((await problem.call('/api/gone', { cookie })).fault, undefined)
  t.match(problem.responseOf('GET', '/api/gone', 403)?.['content'], {
    'application/json': { schema: {} },
    'application/problem+json': { schema: { $ref: String } }
  })
})

t.test('the own errors of a back-end stand in the document, also with errorStatus ok', async t => {
  const routes = { plain: { errorStatus: 'ok' } }
  const { responseOf, call, signIn } = await before404(t, { routes })
  const own = await call('/api/plain', { cookie: await signIn() })
  t.match(own, { status: 404, json: { message: 'none' } })
  t.match(responseOf('GET', '/api/plain', 'default')?.['content'], { '*/*': {} })
  t.match(responseOf('GET', '/api/plain', 200)?.['description'], 'failure', 'another one is 200')
})
