/** Several config folders, of which a later one wins, and the .env of a folder. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { readOpsSocket } from '../../../src/config/read/files.ts'
import { loadConfig } from '../../../src/config/read/load.ts'
import { ConfigError } from '../../../src/config/schema/faults.ts'
import { createGateway } from '../../../src/index.ts'
import { testAuthority } from '../../support/authority.ts'
import { run } from '../../support/command.ts'
import { faultsOf, knownHash, textFolder } from '../../support/config-files.ts'

const base = textFolder(t.after, {
  'gateway.yaml': 'server: { hosts: [a, b], listen: 127.0.0.1:1 }\nlog: { level: "${LEVEL}" }',
  'routes.yaml': `upstreams: { b: { url: "http://b" } }
routes: { r: { path: /api/r, upstream: b }, s: { path: /api/s, upstream: b } }`,
  'limits.yaml': 'inFlightPerUser: 7',
  '.env': 'LEVEL=warn\nURL=http://base'
})
const prod = textFolder(t.after, {
  'gateway.yaml': 'server: { hosts: [c] }',
  'routes.yaml': 'upstreams: { b: { url: "${URL}" } }\nroutes: { s: null }',
  'limits.yaml': null,
  '.env': 'URL=http://prod'
})

t.test('a later folder overrides a former one key by key, and null removes a key', t => {
  const { folder, bases, gateway, routes, limits, inputs } = loadConfig([base, prod], {})
  t.match(gateway.server, { hosts: ['c'], listen: '127.0.0.1:1' })
  t.equal(gateway.log.level, 'warn')
  t.match(routes.upstreams, { b: { url: ['http://prod'] } })
  t.same(Object.keys(routes.routes), ['r'])
  t.equal(limits.inFlightPerUser, 7)
  t.same([folder, bases], [prod, [base]])
  for (const each of [base, prod]) {
    t.ok(Object.hasOwn(inputs, join(each, 'routes.yaml')))
    t.ok(Object.hasOwn(inputs, join(each, 'limits.yaml')), 'also one that may be made')
  }
  t.end()
})

t.test('of each key the place is known, with null, nothing and merged anchors', async t => {
  const below = textFolder(t.after, {
    'gateway.yaml': `paging: { page: p, size: s }
routes: { menu: { path: /m, methods: [GET, POST] }, codes: { path: /c, timeout: 1s, shape: s }, gone: { path: /g }, empty: { path: /e } }
shapes: { list: [{ unwrap: a }, { wrap: list }] }
login:
  sources:
    staff: { kind: users-file, file: staff.yaml }
    backend:
      kind: upstream-login
      user: { id: id }`
  })
  const above = textFolder(t.after, {
    'routes.yaml': `paging: { size: null }
shapes: { list: [{ wrap: envelope }] }
routes:
  menu: { methods: [PUT], upstream: b }
  gone: ~
  empty:
  none: null
  a: &usual
    timeout: wrong
    shape: &none null
  codes: *usual
  c: { <<: [{ more: 1 }, *usual], path: /c }
  d: { <<: *usual, timeout: 2s, shape: *none }`,
    'limits.yaml': `login:
  sources:
    others: { kind: users-file }
    backend:
      user: { name: nick }`
  })
  const { err } = await run(['check', '-c', below, '-c', above])
  const lines = err.replaceAll(`${below}/`, '').replaceAll(`${above}/`, '').split('\n')
  const wrong = 'expected a mapping with upstream, answer or parts, found'
  for (const line of [
    `gateway.yaml:2 routes.empty: ${wrong} {"path":"/e"}`,
    `routes.yaml:7 routes.none: ${wrong} null`,
    `routes.yaml:8 routes.a: ${wrong} {"timeout":"wrong","shape":null}`,
    `routes.yaml:11 routes.codes: ${wrong} {"timeout":"wrong","path":"/c"}`,
    `routes.yaml:12 routes.c: ${wrong} {"more":1,"timeout":"wrong","shape":null,"path":"/c"}`,
    `routes.yaml:13 routes.d: ${wrong} {"timeout":"2s","shape":null}`,
    'routes.yaml:4 routes.menu.upstream: there is no upstream "b".',
    'gateway.yaml:6 login.sources.staff.file: the file "staff.yaml" cannot be read (ENOENT)'
  ]) {
    t.ok(lines.includes(line), line)
  }
  t.notMatch(err, 'routes.gone')
})

t.test('a preset is below all of them', t => {
  const extending = textFolder(t.after, { 'gateway.yaml': 'extends: vben' })
  const removing = textFolder(t.after, { 'routes.yaml': 'paging: null' })
  t.not(loadConfig(extending, {}).routes.paging, undefined)
  t.equal(loadConfig([extending, removing], {}).routes.paging, undefined)
  t.end()
})

t.test('a file that config names is that of the last folder that has it', t => {
  const users = (name: string) => `users: { ${name}: { password: "${knownHash}" } }`
  const authority = readFileSync(testAuthority(t.teardown).certificate, 'utf8')
  const first = textFolder(t.teardown, {
    'users.yaml': users('base'),
    'secret': 'a'.repeat(32),
    'ca.pem': authority
  })
  const last = textFolder(t.teardown, {
    'gateway.yaml':
      'session: { secrets: ["file:secret"] }\nredis: { url: "rediss://h:1", ca: ca.pem }',
    'users.yaml': null
  })
  const userNames = () =>
    Object.keys(loadConfig([first, last], {}).users['users.yaml']?.users ?? {})
  t.same(userNames(), ['base'])
  const { session, redis } = loadConfig([first, last], {}).gateway
  t.same(session.secrets, ['a'.repeat(32)])
  t.equal(redis?.ca, authority)
  writeFileSync(join(last, 'users.yaml'), users('prod'))
  t.same(userNames(), ['prod'])
  t.end()
})

t.test('a fault names the file of its key, and the last folder where it is in none', async t => {
  const wrong = textFolder(t.after, {
    'gateway.yaml': 'log:\n  format: soap',
    'routes.yaml': null,
    'limits.yaml': null
  })
  const checked = async (...folders: string[]) =>
    await run(['check', ...folders.flatMap(folder => ['--config', folder])])
  const ofKey = /gateway\.yaml:2 log\.format: expected one of auto/
  t.match(await checked(wrong, base), { code: 1, err: ofKey })
  const { err } = await checked(wrong, prod)
  t.equal(
    err.split('\n')[0],
    `${prod}/limits.yaml there is no such file: write one, if only with {}`
  )
  t.match(err, `${prod}: 1 fault`)
  t.match(await checked(base, prod), { code: 0 })
})

t.test('commands find the socket that one of them names', t => {
  const socket = (text: string) =>
    textFolder(t.after, { 'gateway.yaml': `ops: { socket: ${text} }` })
  const named = socket('run')
  t.equal(readOpsSocket([named, prod], {}), join(prod, 'run'), 'as the gateway does')
  t.equal(readOpsSocket([named, socket('false')], {}), false)
  t.equal(readOpsSocket([base, prod], {}), undefined)
  t.end()
})

t.test('a reload reads all of them again', async t => {
  const listen = 'listen: 127.0.0.1:0'
  const below = textFolder(t.after, {
    'gateway.yaml': `server: { ${listen} }\nops: { ${listen}, socket: false }\nreload: { watch: false }`,
    'limits.yaml': 'inFlightPerUser: 7'
  })
  const above = textFolder(t.after, { 'limits.yaml': null })
  const gateway = await createGateway({ config: [below, above], env: {}, log: () => {} })
  t.teardown(() => gateway.stop({ noticeMs: 0 }))
  writeFileSync(join(below, 'limits.yaml'), 'inFlightPerUser: 8')
  t.match(JSON.stringify(await gateway.reload('operator')), /inFlightPerUser 7 → 8/)
})

const withSecrets = [
  'session: { secrets: ["${SESSION_SECRET}"], cookie: { secure: false } }',
  'ops: { secret: "${OPS_SECRET}", socket: "${OPS_SOCKET:-}" }',
  ''
].join('\n')
const secret = 'a-secret-of-at-least-thirty-two-characters'

t.test('.env of the folder has values for what the environment lacks', async t => {
  const folder = textFolder(t.after, { 'gateway.yaml': withSecrets })
  const file = join(folder, '.env')
  t.match(faultsOf(folder)[0], /environment variable SESSION_SECRET is not set/)
  const own = `OPS_SECRET="${secret}-too"\nOPS_SOCKET=/run/cg\n`
  writeFileSync(file, `# Secrets\nSESSION_SECRET=${secret}\n${own}`)
  const config = loadConfig(folder, {})
  const values = { session: { secrets: [secret] }, ops: { secret: `${secret}-too` } }
  t.match(config.gateway, values)
  t.ok(Object.hasOwn(config.inputs, file), 'a change of it is seen')
  t.equal(readOpsSocket(folder, {}), '/run/cg', 'commands read it, too')
  const other = `${secret}-of-the-environment`
  t.same(loadConfig(folder, { SESSION_SECRET: other }).gateway.session.secrets, [other])
})

t.test('a byte order mark belongs to no name and no secret', async t => {
  const folder = textFolder(t.after, {
    'gateway.yaml': withSecrets.replace('${OPS_SECRET}', 'file:secret'),
    '.env': `\ufeffSESSION_SECRET=${secret}\n`,
    'secret': `\ufeff${secret}-too\n`
  })
  const { session, ops } = loadConfig(folder, {}).gateway
  t.same([session.secrets, ops.secret], [[secret], `${secret}-too`])
})

t.test('a .env that comes later is seen, and one that cannot be read is one fault', async t => {
  const environment = { SESSION_SECRET: secret, OPS_SECRET: secret }
  const folder = textFolder(t.after, { 'gateway.yaml': withSecrets })
  t.match(loadConfig(folder, environment).inputs, { [join(folder, '.env')]: '' })
  for (const [env, fault] of [
    [{ '.env': '#'.repeat(1024 * 1024 + 1) }, '0 : the file is larger than 1 MiB'],
    [{ '.env/x': '' }, '0 : the file cannot be read (EISDIR)'],
    [{ '.env': Buffer.from('A=1\nB=\xfc\n', 'latin1') }, '2 : the file is not UTF-8 text: save it']
  ] as const) {
    const other = textFolder(t.after, { 'gateway.yaml': withSecrets, ...env })
    const [first, ...others] = faultsOf(other, environment)
    t.match(first, `.env:${fault}`)
    t.same(others, [])
    t.throws(() => readOpsSocket(other, environment), ConfigError)
  }
})
