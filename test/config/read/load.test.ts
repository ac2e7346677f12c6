import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { configHash } from '../../../src/config/diff.ts'
import { type Environment, openFolder } from '../../../src/config/read/inputs.ts'
import { read } from '../../../src/config/read/read.ts'
import { loadConfig } from '../../../src/config/read/load.ts'
import { allSecrets, keysOf } from '../../support/all-secrets.ts'
import { testAuthority } from '../../support/authority.ts'
import {
  faultsOf,
  knownHash,
  type Texts,
  textFolder,
  writeTexts
} from '../../support/config-files.ts'

const faults = (t: Test, texts: Texts, environment: Environment = {}) =>
  faultsOf(textFolder(t.after, texts), environment).filter(line => !line.includes(': warning: '))

t.test('each duration and size has a bound, and refuses 0 or says what 0 means', async t => {
  const long = new Set<string | undefined>()
  const measures = keysOf(/^x-(size|duration)$/)
  for (const [path, node] of measures) {
    const { maximum = Infinity, description = '', pattern = '' } = node
    const isDuration = node.format === 'x-duration'
    // 24 days where a timer waits, 400 where a store keeps; laws ask for ledgers of ten years.
    const maxDays = path === 'gateway.audit.keep' ? 3700 : 400
    t.ok(maximum <= (isDuration ? maxDays * 86_400_000 : 1024 ** 4), path)
    if (isDuration && maximum > 24 * 86_400_000) long.add(path.split('.').at(-1))
    const zero = isDuration ? '0s' : '0B'
    const messages: string[] = []
    const report = (_: unknown, message: string) => messages.push(message)
    read(node, zero, { ...openFolder([], {}), report })
    const isDocumented = description.includes(`\`${zero}\``)
    t.equal(messages.length, isDocumented ? 0 : 1, path)
    for (const message of messages) t.match(message, /^expected at least \d+\w+, found "0/, path)
    // Editors know patterns only.
    t.equal(new RegExp(pattern).test(zero), isDocumented, path)
    t.ok(new RegExp(pattern).test(zero.replace('0', '10')), path)
  }
  t.ok(measures.length > 20, `${measures.length}`)
  t.same([...long].toSorted(), ['absolute', 'every', 'idle', 'keep', 'window'])
})

const tooMuch = 'the YAML aliases of this file expand to too much, or one contains itself'

t.test('a file that is a folder, or larger than it can be meant, is one fault', async t => {
  const large = faults(t, { 'routes.yaml': `{} #${'x'.repeat(2 * 1024 * 1024)}` })
  t.same(large, ['routes.yaml:0 : the file is larger than 1 MiB'])
  const folder = textFolder(t.after, { 'users.yaml': null, 'users.yaml/x': '' })
  t.match(faultsOf(folder), [
    'login.sources.users-file.file: the file "users.yaml" cannot be read (EISDIR)'
  ])
})

t.test('garbage does not flood the terminal, and deep nesting is no crash', async t => {
  const bytes = (_: unknown, index: number) => (index * 7919 + (index >> 3) * 104_729) % 256
  for (const text of [
    Buffer.from(Array.from({ length: 200_000 }, bytes)),
    Buffer.alloc(1000),
    Buffer.from([0xff, 0xfe, 0x00, 0x61, 0xc3, 0x28]),
    '\u0000'.repeat(5000),
    '\t{'.repeat(5000),
    '['.repeat(20_000),
    '{a: '.repeat(20_000),
    '- '.repeat(20_000),
    `a: ${'['.repeat(3000)}${']'.repeat(3000)}`
  ]) {
    const found = faults(t, { 'routes.yaml': text })
    t.ok(found.length >= 1 && found.length <= 10, `${found.length} faults`)
  }
})

t.test('aliases that expand to too much are refused in no time', async t => {
  const level = (index: number) =>
    `a${index + 1}: &a${index + 1} [${Array(9).fill(`*a${index}`).join(', ')}]`
  const bomb = ['a0: &a0 [x, x, x, x, x, x, x, x, x]', ...Array.from(Array(12).keys(), level)]
  const began = performance.now()
  t.same(faults(t, { 'limits.yaml': bomb.join('\n') }), [`limits.yaml:0 : ${tooMuch}`])
  t.ok(performance.now() - began < 20_000)
})

t.test('an anchor may be used by thousands of routes', t => {
  const routes = (count: number) =>
    Array.from({ length: count }, (_, index) => `  r${index}: { <<: *r, path: /r${index} }\n`)
  const text = (count: number) =>
    'upstreams: { b: { url: "http://b" } }\nroutes:\n' +
    `  first: &r { path: /r, upstream: b, access: &a { roles: [x] } }\n${routes(count).join('')}` +
    '  last: { path: /last, upstream: b, access: *a }\n'
  const { routes: loaded } = loadConfig(textFolder(t.after, { 'routes.yaml': text(1000) }), {})
  t.equal(Object.keys(loaded.routes).length, 1002)
  t.end()
})

t.test('a file that is not UTF-8 is a fault at its first such line', async t => {
  const latin = (text: string) => Buffer.from(text, 'latin1')
  const said = 'the file is not UTF-8 text: save it as UTF-8'
  const users = latin(`users:\n  Zo\xeb: { password: "${knownHash}" }\n`)
  t.same(faults(t, { 'users.yaml': users }), [`users.yaml:2 : ${said}`])
  t.same(faults(t, { 'limits.yaml': latin('# f\xfcr alle') }), [`limits.yaml:1 : ${said}`])
  const [ofSecret] = faults(t, {
    'gateway.yaml': 'session: { secrets: ["file:secret"], cookie: { secure: false } }\n',
    'secret': latin('\xfc'.repeat(40))
  })
  const beginning = "gateway.yaml:1 session.secrets.0: the secret's file cannot be read"
  t.match(ofSecret, `${beginning} (${said}): /`)
})

t.test('text around a certificate may have any encoding', async t => {
  const pem = Buffer.concat([
    Buffer.from('# Z\xfcrich\n', 'latin1'),
    readFileSync(testAuthority(t.after).certificate)
  ])
  const routes = 'upstreams: { b: { url: "https://b", tls: { ca: ca.pem } } }\nroutes: {}\n'
  t.same(faults(t, { 'routes.yaml': routes, 'ca.pem': pem }), [])
})

t.test('ten times as many keys of a mapping take about ten times as long', t => {
  const cpuOf = (count: number) => {
    const keys = Array.from({ length: count }, (_, index) => `  k${index}: [x]\n`)
    const folder = textFolder(t.after, { 'routes.yaml': `permissions:\n${keys.join('')}` })
    const before = process.cpuUsage()
    loadConfig(folder, {})
    return process.cpuUsage(before).user
  }
  cpuOf(3000)
  // Each key against all before it takes 39 times as long.
  t.ok(cpuOf(30_000) < 15 * cpuOf(3000))
  t.end()
})

t.test('users of a file that only the running process needs stay until it is restarted', t => {
  const folder = textFolder(t.after)
  const running = loadConfig(folder, {})
  writeTexts(folder, {
    'gateway.yaml':
      'login:\n  sources:\n    b: { kind: upstream-login, upstream: b, path: /in, user: { id: id } }\n',
    'routes.yaml': 'upstreams: { b: { url: http://b } }',
    'users.yaml': null
  })
  const { restartNeeded, users } = loadConfig(folder, {}, { running })
  t.same(restartNeeded.toSorted(), ['login.sources.b', 'login.sources.users-file'])
  t.same(users, running.users)
  writeFileSync(join(folder, 'gateway.yaml'), '{}')
  t.throws(() => loadConfig(folder, {}, { running }), /users-file\.file: the file "users\.yaml"/)
  t.end()
})

t.test('what waits for a restart may name a source that waits with it', t => {
  const folder = textFolder(t.after)
  const running = loadConfig(folder, {})
  const sources = '{ users-file: { kind: users-file }, more: { kind: users-file } }'
  writeTexts(folder, {
    'gateway.yaml': `login: { sources: ${sources} }\nops: { sources: [more] }\nidentity: { prefix: true }`
  })
  const { restartNeeded } = loadConfig(folder, {}, { running })
  t.same(restartNeeded, ['ops.sources', 'login.sources.more', 'identity.prefix'])
  t.end()
})

t.test('no secret is ever shown, wherever somebody put it', async t => {
  const hidden = 'hunter2-hunter2-hunter2-hunter2-hunter2'
  const places = {
    'gateway.yaml': [
      `session: { secrets: ${hidden} }`,
      'session: { secrets: "${S}" }',
      `session: { secrets: { mine: ${hidden} } }`,
      `session: { secrets: [[${hidden}]] }`,
      `session: ${hidden}`,
      'session: { secrets: ["${S}", 5, "${S}"], idle: x }',
      `audit: { key: { value: ${hidden} } }`,
      'audit: { key: 778899000001 }',
      'audit: { key: [778899000001] }',
      `redis: { url: redis://r, password: ${hidden} }`,
      `redis: { url: redis://r, password: [${hidden}] }`,
      `redis: "redis://:${hidden}@redis:6379"`,
      `redis: { url: "redis://:${hidden}@redis:6379" }`,
      'redis: { url: "redis://user:${S}@redis:6379/0" }',
      `redis: { url: "redis://user:${hidden}/with@odd:letters@redis:6379/0" }`
    ],
    'routes.yaml': [`upstreams: { b: { url: "https://user:${hidden}@backend.internal" } }`],
    'users.yaml': [
      `users: { alice: ${hidden} }`,
      `users: { alice: { password: ${hidden} } }`,
      `users: ${hidden}`
    ]
  }
  for (const [file, texts] of Object.entries(places)) {
    for (const text of texts) {
      const found = faults(t, { [file]: text }, { S: hidden })
      t.ok(found.length > 0, text)
      t.notMatch(found.join('\n'), /hunter2|778899/, text)
    }
  }
})

/** What stands at a path, where `*` is any key. */
const valuesAt = (tree: unknown, [key, ...rest]: readonly string[]): unknown[] => {
  if (key === undefined) return [tree]
  const members = (tree ?? {}) as Record<string, unknown>
  const next = key === '*' ? Object.values(members) : [members[key]]
  return next.flatMap(value => valuesAt(value, rest))
}

t.test('each key that takes a secret is known to the tests of secrets', async t => {
  const { gateway, upstream, others } = allSecrets(t.after, textFolder(t.after), true)
  const tree = { gateway, routes: { upstreams: { upstream, ...others } } }
  const isKnown = (key: string) => valuesAt(tree, key.split('.')).some(value => value !== undefined)
  const keys = keysOf(/^x-(maybe-)?secret$/).map(([key]) => key)
  t.same(
    keys.filter(key => !isKnown(key)),
    [],
    'all-secrets.ts has a value for each'
  )
  t.ok(keys.length > 10)
})

t.test('the same config has the same hash in another folder and in another order', t => {
  const secrets = 'session: { secrets: ["${S}"] }'
  const [a, b] = ['a: { url: http://a }', 'b: { url: http://b, headers: { x: "${K}" } }']
  const hashOf = (gateway: string, routes: string, limits = '{}', K = 'key-of-b') => {
    const texts = { 'gateway.yaml': gateway, 'routes.yaml': routes, 'limits.yaml': limits }
    return configHash(loadConfig(textFolder(t.after, texts), { S: 's'.repeat(32), K }))
  }
  const routes = `upstreams: { ${a}, ${b} }`
  const first = hashOf(`${secrets}\nserver: { listen: 127.0.0.1:1 }`, routes)
  t.match(first, /^[0-9a-f]{16}$/)
  const others = 'server: { listen: 127.0.0.1:2 }\nlog: { level: debug }'
  t.equal(hashOf(`${others}\n${secrets}`, `upstreams: { ${b}, ${a} }`), first)
  const limits = 'limits: { a: { by: user, max: 1, window: 1s } }'
  t.not(hashOf(secrets, routes, limits), first)
  t.not(hashOf(secrets, routes, '{}', 'another'), first, 'another secret: another config')
  t.end()
})
