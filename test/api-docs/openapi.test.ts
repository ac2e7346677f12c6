import { Validator } from '@seriousme/openapi-schema-validator'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { join } from 'node:path'
import { rmSync, writeFileSync } from 'node:fs'
import openapiTS, { astToString } from 'openapi-typescript'
import t from 'tap'
import ts from 'typescript'
import { loadConfig } from '../../src/config/load/load.ts'
import { errorKinds } from '../../src/errors/errors.ts'
import { openApi } from '../../src/api-docs/openapi.ts'
import { configFolder, password, testGateway } from '../support/gateway.ts'
import { testUpstream } from '../support/upstream.ts'

type Tree = Record<string, any>

const contract = {
  schema: {
    type: 'array',
    items: { $ref: '#/definitions/Item' },
    definitions: {
      Item: {
        type: 'object',
        required: ['id'],
        properties: {
          id: { type: 'string' },
          below: { type: 'array', items: { $ref: '#/definitions/Item' } }
        }
      }
    }
  }
}
const routes = (url: string): Tree => ({
  upstreams: { b: { url } },
  endpoints: { profile: { from: 'upstream', upstream: 'b', rewrite: '/user', shape: 'user' } },
  aliases: { '/api/currentUser': '/api/account/profile', '/api/all/*': '/api/items/*' },
  routes: {
    'items': {
      path: '/api/items/*',
      rewrite: '/*',
      methods: ['GET', 'POST'],
      upstream: 'b',
      shape: 'list',
      contract
    },
    'other-items': {
      path: '/api/items/*',
      rewrite: '/*',
      methods: ['DELETE'],
      upstream: 'b',
      access: { roles: ['admin'] }
    },
    'plain': {
      path: '/api/plain',
      rewrite: '/plain',
      access: 'public',
      upstream: 'b',
      shape: 'plain',
      dialect: 'base-response',
      errorStatus: 'ok'
    },
    'same': {
      path: '/api/same',
      rewrite: '/plain',
      access: 'public',
      upstream: 'b',
      shape: 'same'
    },
    'composed': {
      path: '/api/composed',
      access: 'public',
      shape: 'picked',
      parts: {
        a: { upstream: 'b', rewrite: '/plain' },
        n: { upstream: 'b', rewrite: '/none', into: 'x', required: false }
      }
    },
    'pa--ged': {
      path: '/api/paged',
      rewrite: '/items',
      access: 'public',
      upstream: 'b',
      shape: 'paged'
    },
    'pa-ged': {
      path: '/api/paged2',
      rewrite: '/items',
      access: 'public',
      upstream: 'b',
      shape: 'paged'
    }
  },
  shapes: {
    user: [{ pick: ['nick', 'email'] }],
    list: [{ status: { path: 'code', ok: [0] } }, { unwrap: 'list' }, { wrap: 'list' }],
    plain: [
      { status: { path: 'code', ok: [0] } },
      { default: { note: '' } },
      { pick: ['note', 'at'] },
      { convert: { at: 'date-seconds' } },
      { wrap: 'envelope' }
    ],
    picked: [{ pick: ['at'] }, { convert: { at: 'number' } }, { wrap: 'envelope' }],
    same: [{ pick: ['code'] }],
    paged: [
      {
        paging: {
          list: 'list',
          total: 'count',
          current: 'page',
          each: [{ convert: { id: 'string' } }]
        }
      }
    ]
  }
})

const configs: Record<string, { gateway?: Tree; routes?: Tree }> = {
  'with nothing said': {},
  'with all there is': { routes: routes('http://b.internal') },
  'of another dialect, below a mount': {
    gateway: {
      server: { mount: '/x' },
      envelope: { dialect: 'ant-design-pro', errorStatus: 'ok' },
      login: { refusedStatus: 200 }
    },
    routes: routes('http://b.internal')
  }
}

for (const [which, files] of Object.entries(configs)) {
  t.test(`the document of a config ${which} is OpenAPI 3.1`, async t => {
    const folder = await configFolder(files)
    t.teardown(() => rmSync(folder, { recursive: true }))
    const config = loadConfig(folder, {})
    const document = openApi(config) as Tree
    t.same(await new Validator().validate(structuredClone(document)), { valid: true })
    const names = JSON.stringify(document).match(/"operationId":"[^"]*"/g) ?? []
    t.equal(new Set(names).size, names.length, 'each operation has a name of its own')
    for (const [, place = ''] of JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]*)"/g)) {
      t.ok(
        place.split('/').reduce<any>((at, step) => at?.[step], document),
        place
      )
    }
  })
}

const compilerOptions: ts.CompilerOptions = {
  strict: true,
  noEmit: true,
  skipLibCheck: true,
  allowImportingTsExtensions: true,
  types: [],
  lib: ['lib.es2022.d.ts'],
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.ESNext,
  moduleResolution: ts.ModuleResolutionKind.Bundler
}

const nested = {
  $ref: '#/$defs/API.Page%3Citem%3E',
  $defs: {
    'API.Page<item>': {
      type: 'object',
      properties: {
        data: { type: 'array', items: { $ref: '#/$defs/API.Page<item>/definitions/a~1b' } }
      },
      definitions: {
        'a/b': { type: 'object', properties: { id: { type: 'string' }, next: { $ref: '#' } } }
      }
    }
  }
}

t.test('what openapi-typescript makes of contracts with definitions compiles', async t => {
  const folder = await configFolder()
  t.teardown(() => rmSync(folder, { recursive: true }))
  const learned = {
    $ref: '#/definitions/API.NoticeIconList',
    definitions: {
      'API.NoticeIconList': {
        type: 'object',
        properties: { data: { type: 'array', items: { $ref: '#/definitions/API.Notice' } } }
      },
      'API.Notice': {
        type: 'object',
        properties: {
          id: { type: 'string' },
          below: { type: 'array', items: { $ref: '#/definitions/API.Notice' } }
        },
        required: ['id']
      }
    }
  }
  const upstream = { path: '/api/x', upstream: 'b', shape: 'x' }
  const config = loadConfig(
    await configFolder({
      routes: {
        upstreams: { b: { url: 'http://b.internal' } },
        routes: {
          learned: { ...upstream, path: '/api/learned', contract: { schema: learned } },
          nested: { ...upstream, path: '/api/nested', contract: { schema: nested } },
          items: { ...upstream, path: '/api/items', contract }
        },
        shapes: { x: [{ wrap: 'envelope' }] }
      }
    }),
    {}
  )
  const document = openApi(config)
  t.notMatch(JSON.stringify(document), /\$defs|"definitions"/)
  const declarations = astToString(await openapiTS(document as never))
  writeFileSync(join(folder, 'paths.ts'), declarations)
  writeFileSync(
    join(folder, 'use.ts'),
    `import type { components } from './paths.ts'
    type Schemas = components['schemas']
    declare const list: Schemas['LearnedData'], items: Schemas['ItemsData'], page: Schemas['NestedData']
    export const ids: Array<string | undefined> = [
      list.data?.[0]?.below?.[0]?.id, items[0]?.below?.[0]?.id, page.data?.[0]?.next?.data?.[0]?.id
    ]`
  )
  t.same(compile(folder), [])
})

function compile(folder: string): string[] {
  const program = ts.createProgram([join(folder, 'use.ts')], compilerOptions)
  const diagnostics = ts.getPreEmitDiagnostics(program)
  return diagnostics.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'))
}

t.test('what the document says of answers is true of the running gateway', async t => {
  const backend = await testUpstream(t.after, (request, response) => {
    const bodies: Tree = {
      '/user': { nick: 'al', email: 'a@example.com' },
      '/plain': { code: 0, at: 1795239000 },
      '/items': { code: 0, list: [{ id: 'a', below: [{ id: 'b' }] }], count: 3, page: 1 },
      '/denied': { code: 403, msg: 'no' }
    }
    const body = bodies[request.url ?? '']
    response
      .writeHead(body === undefined ? 404 : 200, { 'content-type': 'application/json' })
      .end(JSON.stringify(body ?? { message: 'none' }))
  })
  const gateway = await testGateway(t.after, { routes: routes(backend.url) })
  const document = (await (await gateway.ops('/openapi.json')).json()) as Tree
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  addFormats.default(ajv)
  ajv.addSchema(document, 'd')
  const cookie = await gateway.signIn()
  const check = async (
    method: string,
    path: string,
    status: number,
    { at = path, ...options }: { at?: string; cookie?: string; json?: unknown } = {}
  ) => {
    const answer = await gateway.call(path, { method, ...options })
    t.equal(answer.status, status, `${method} ${path}`)
    const { responses } = document['paths'][at][method.toLowerCase()]
    const keys = [String(status), `${String(status)[0]}XX`, 'default']
    const key = keys.find(each => responses[each] !== undefined) ?? ''
    const place = `/paths/${at.replaceAll('/', '~1')}/${method.toLowerCase()}/responses/${key}`
    const valid = ajv.validate(
      { $ref: `d#${encodeURI(place)}/content/application~1json/schema` },
      answer.json
    )
    t.ok(valid, `${method} ${path}: ${ajv.errorsText()}`)
    return answer
  }
  const paths = { items: '/api/items/{rest}' }
  await check('POST', '/api/auth/admin/login', 200, { json: { username: 'alice', password } })
  await check('POST', '/api/auth/admin/login', 401, {
    json: { username: 'alice', password: 'wrong' }
  })
  await check('POST', '/api/auth/admin/login', 400, { json: { username: 7 } })
  await check('GET', '/api/account/profile', 401)
  await check('GET', '/api/currentUser', 200, { cookie })
  await check('GET', '/api/session', 200, { cookie })
  await check('GET', '/api/session/list', 200, { cookie })
  await check('POST', '/api/session/extend', 200, { cookie, json: {} })
  await check('POST', '/api/session/close', 200, { cookie, json: { others: true } })
  await check('GET', '/api/items/items', 200, { at: paths.items, cookie })
  await check('GET', '/api/items/denied', 403, { at: paths.items, cookie })
  await check('GET', '/api/items/none', 404, { at: paths.items, cookie })
  await check('GET', '/api/items/items', 401, { at: paths.items })
  await check('GET', '/api/plain', 200)
  await check('GET', '/api/same', 200)
  await check('GET', '/api/paged', 200)
  t.match((await check('GET', '/api/composed', 200)).json, {
    data: { at: 1795239000 },
    missing: ['n']
  })
  await check('GET', '/api/account/logout', 200, { cookie })
  t.equal(document['servers'][0].url, '/')
  t.equal(document['components'].securitySchemes.session.name, 'console_sid')
})

t.test('every code of the table may be the code of an error', async t => {
  const folder = await configFolder({})
  t.teardown(() => rmSync(folder, { recursive: true }))
  const { components } = openApi(loadConfig(folder, {})) as Tree
  t.same(components.schemas.FailureDual.properties.errorCode.enum, Object.keys(errorKinds))
})

t.test('answers of config are described by their methods, types, places and status', async t => {
  const gateway = await testGateway(t.after, {
    routes: {
      endpoints: {
        login: { answer: { json: { token: '{token}', ends: '{absoluteEndsAt}' } } },
        logout: { methods: ['POST'], answer: { json: { bye: true }, inEnvelope: 'none' } },
        profile: { methods: ['POST'], answer: { json: { roles: '{roles}', mail: null } } },
        refresh: { path: '/api/refresh', answer: { json: { own: '{profile.a}' } } }
      },
      routes: {
        menus: {
          path: '/api/menus',
          methods: ['GET', 'POST'],
          answer: { json: [{ a: 1 }, null], byRole: { admin: 'x' } }
        },
        gone: {
          path: '/api/gone',
          access: 'public',
          answer: { json: { code: 1 }, status: 410, inEnvelope: 'none' }
        }
      }
    }
  })
  const document = (await (await gateway.ops('/openapi.json')).json()) as Tree
  const { paths } = document
  const validity = await new Validator().validate(JSON.parse(JSON.stringify(document)))
  t.ok(validity.valid, JSON.stringify(validity.errors))
  t.same(Object.keys(paths['/api/account/logout']), ['post'])
  t.same(Object.keys(paths['/api/account/profile']), ['post'])
  t.same(Object.keys(paths['/api/menus']), ['get', 'post'])
  t.equal(paths['/api/menus'].post.requestBody, undefined)
  const schemaOf = (operation: Tree, status = 200) =>
    operation['responses'][status].content['application/json'].schema
  t.match(schemaOf(paths['/api/menus'].get).properties.data, {
    type: ['array', 'string'],
    items: { type: ['object', 'null'] }
  })
  t.match(schemaOf(paths['/api/account/logout'].post), {
    type: 'object',
    properties: { bye: { type: 'boolean' } },
    required: ['bye']
  })
  t.match(schemaOf(paths['/api/gone'].get, 410).properties, { code: { type: 'number' } })
  t.match(schemaOf(paths['/api/auth/admin/login'].post).properties.data.properties, {
    token: { type: 'string' },
    ends: { type: 'number' }
  })
  t.same(schemaOf(paths['/api/account/profile'].post).properties.data.properties, {
    roles: { type: 'array', items: { type: 'string' } },
    mail: { type: 'null' }
  })
  t.same(schemaOf(paths['/api/refresh'].post), {}, 'a profile may hold anything')
  t.ok(paths['/api/menus'].get.responses[401])
})

t.test('a route may be called constructor', async t => {
  const gateway = await testGateway(t.after, {
    routes: {
      upstreams: { b: { url: 'http://127.0.0.1:9' } },
      routes: { constructor: { path: '/api/plain', upstream: 'b' } }
    }
  })
  const { paths, components } = (await (await gateway.ops('/openapi.json')).json()) as Tree
  t.notOk(Object.hasOwn(components.schemas, 'ConstructorData'))
  t.equal(paths['/api/plain'].get.responses[200].content['application/json'], undefined)
})

t.test('a route with websocket says so: 101', async t => {
  const chat = { path: '/api/chat', upstream: 'b', methods: ['GET', 'POST'] }
  const folder = await configFolder({
    routes: {
      upstreams: { b: { url: 'http://b.internal' } },
      routes: {
        chat: { ...chat, websocket: {} },
        quiet: { ...chat, path: '/api/quiet' },
        loose: { ...chat, path: '/api/loose', websocket: {}, errorStatus: 'ok' }
      }
    }
  })
  const document: Tree = openApi(loadConfig(folder, {}))
  const { '/api/chat': upgraded, '/api/quiet': plain, '/api/loose': loose } = document['paths']
  t.match(upgraded.get.responses['101'].description, /WebSocket/)
  t.match(loose.get.responses['101'].description, /WebSocket/)
  t.notOk(upgraded.post.responses['101'])
  t.notOk(plain.get.responses['101'])
  t.ok((await new Validator().validate(document)).valid)
})

t.test('failures may have field errors, unless config says otherwise', async t => {
  const failureOf = async (fieldErrors?: string | false) => {
    const envelope = fieldErrors === undefined ? {} : { fieldErrors }
    const folder = await configFolder({ gateway: { envelope } })
    t.teardown(() => rmSync(folder, { recursive: true }))
    return (openApi(loadConfig(folder, {})) as Tree)['components'].schemas.FailureDual as Tree
  }
  const schema = {
    type: 'object',
    additionalProperties: { type: 'array', items: { type: 'string' } }
  }
  const { properties, required } = await failureOf()
  t.match(properties.fieldErrors, schema)
  t.notOk(required.includes('fieldErrors'), 'not every error has some')
  t.match((await failureOf('errors'))['properties'].errors, schema)
  t.notOk('fieldErrors' in (await failureOf(false))['properties'])
})
