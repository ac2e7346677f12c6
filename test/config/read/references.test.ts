import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { loadConfig } from '../../../src/config/read/load.ts'
import { faultsOf, type Texts, textFolder } from '../../support/config-files.ts'

const load = (t: Test, texts: Texts, environment: Record<string, string>) =>
  loadConfig(textFolder(t.after, texts), environment)
const faults = (t: Test, texts: Texts, environment: Record<string, string> = {}) =>
  faultsOf(textFolder(t.after, texts), environment).filter(line => !line.includes(': warning: '))

const secret = 'f3Jk9-an-imaginary-secret-of-40-characters'

t.test('a reference stands for an environment variable, also within a text', async t => {
  const { gateway, routes } = load(
    t,
    {
      'gateway.yaml': 'server: { listen: "${HOST}:${PORT}", hosts: ["${HOST}"] }',
      'routes.yaml': 'upstreams: { b: { url: "http://${HOST}:81${BASE:-/base}" } }'
    },
    { HOST: 'console.example.com', PORT: '8443' }
  )
  t.equal(gateway.server.listen, 'console.example.com:8443')
  t.same(gateway.server.hosts, ['console.example.com'])
  t.equal(routes.upstreams['b']?.url, 'http://console.example.com:81/base')
})

t.test('a reference is a number where a number may stand beside words', async t => {
  const code = (environment: Record<string, string>) => {
    const files = {
      'gateway.yaml': 'session: { secrets: ["${S}"] }\nenvelope: { successCode: "${CODE:-2}" }'
    }
    return load(t, files, { S: secret, ...environment }).gateway.envelope.successCode
  }
  t.equal(code({}), 2)
  t.equal(code({ CODE: '4' }), 4)
  t.equal(code({ CODE: 'OK' }), 'OK')
})

t.test('the text after :- stands in where the variable is not set or empty', async t => {
  const listen = (environment: Record<string, string>) =>
    load(t, { 'gateway.yaml': 'server: { listen: "${LISTEN:-127.0.0.1:1}" }' }, environment).gateway
      .server.listen
  t.equal(listen({}), '127.0.0.1:1')
  t.equal(listen({ LISTEN: '' }), '127.0.0.1:1')
  t.equal(listen({ LISTEN: '127.0.0.1:2' }), '127.0.0.1:2')
})

t.test(
  'a variable that is not set, and has no text to stand in, is one fault with its name',
  async t => {
    t.same(faults(t, { 'gateway.yaml': 'server:\n  listen: ${LISTEN}\n' }), [
      'gateway.yaml:2 server.listen: the environment variable LISTEN is not set'
    ])
    t.same(faults(t, { 'gateway.yaml': 'session:\n  secrets:\n    - ${SESSION_SECRET}\n' }), [
      'gateway.yaml:3 session.secrets.0: the environment variable SESSION_SECRET is not set'
    ])
    t.same(faults(t, { 'routes.yaml': 'upstreams:\n  b: { url: "${BACKEND_URL}" }\n' }), [
      'routes.yaml:2 upstreams.b.url: the environment variable BACKEND_URL is not set'
    ])
    t.same(faults(t, { 'gateway.yaml': 'server: { listen: "${constructor}" }' }), [
      'gateway.yaml:1 server.listen: the environment variable constructor is not set'
    ])
    t.same(faults(t, { 'gateway.yaml': 'session: { cookie: { name: "${A}-${B}" } }' }), [
      'gateway.yaml:1 session.cookie.name: the environment variable A is not set',
      'gateway.yaml:1 session.cookie.name: the environment variable B is not set'
    ])
  }
)

t.test('numbers, flags, durations and sizes may be references too', async t => {
  const { gateway, limits, routes } = load(
    t,
    {
      'gateway.yaml':
        'session: { idle: "${IDLE}", cookie: { secure: "${SECURE:-false}" } }\nenvelope: { successCode: "${CODE}" }\nops: { openMetrics: "${OPEN}" }',
      'limits.yaml':
        'sizes: { body: "${BODY:-2MiB}" }\ninFlightPerUser: ${INFLIGHT:-7}\nlimits: { l: { by: user, max: "${MAX:-30}", window: "${WINDOW:-1m}" } }',
      'routes.yaml': 'upstreams: { b: { url: http://b, connections: "${N:-12}" } }'
    },
    { IDLE: '45m', CODE: '20000', OPEN: ' true ' }
  )
  t.match(gateway, {
    session: { idle: 45 * 60_000, cookie: { secure: false } },
    envelope: { successCode: 20_000 },
    ops: { openMetrics: true }
  })
  t.match(limits, {
    sizes: { body: 2 * 1024 ** 2 },
    inFlightPerUser: 7,
    limits: { l: { max: 30, window: 60_000 } }
  })
  t.equal(routes.upstreams['b']?.connections, 12)
})

t.test('a reference stays a text where a text or a number may stand', async t => {
  const texts = {
    'gateway.yaml':
      'login: { sources: { b: { kind: upstream-login, upstream: b, path: /in, user: { id: id }, outcomes: [{ is: success, path: v, in: ["${VERSION:-1.10}"] }] } } }',
    'routes.yaml': 'upstreams: { b: { url: http://b } }\n'
  }
  t.match(load(t, texts, {}).gateway.login.sources['b'], { outcomes: [{ in: ['1.10'] }] })
})

t.test(
  'a variable that is no number where one is needed is a fault, whatever it holds',
  async t => {
    for (const MAX of ['many', '[1', '*x', '1.5', '0x10', '1e3', '!!int 5', '{}', '5 # five', '']) {
      t.match(
        faults(
          t,
          { 'limits.yaml': 'limits: { l: { by: user, max: "${MAX}", window: 1m } }' },
          { MAX }
        ),
        [
          `limits.yaml:1 limits.l.max: expected a whole number of at least 1 and at most 1000000000, found ${JSON.stringify(MAX)}`
        ],
        MAX
      )
    }
    t.match(
      faults(
        t,
        { 'gateway.yaml': 'session: { cookie: { secure: "${SECURE}" } }' },
        { SECURE: 'yes' }
      ),
      ['gateway.yaml:1 session.cookie.secure: expected true or false, found "yes"']
    )
  }
)

t.test('a variable that holds YAML stays a text', async t => {
  const { gateway } = load(
    t,
    { 'gateway.yaml': 'envelope: { messages: { login.refused: "${TEXT}" } }' },
    { TEXT: '[a, {b: c}]\nserver: x' }
  )
  t.equal(gateway.envelope.messages['login.refused'], '[a, {b: c}]\nserver: x')
})

t.test('what a variable holds is not looked at for references again', async t => {
  const { gateway } = load(
    t,
    { 'gateway.yaml': 'envelope: { messages: { login.refused: "${TEXT}" } }' },
    { TEXT: '${OTHER}', OTHER: 'never' }
  )
  t.equal(gateway.envelope.messages['login.refused'], '${OTHER}')
})

t.test('references hold at any depth, also where anything may stand', async t => {
  const { gateway, routes } = load(
    t,
    {
      'gateway.yaml':
        'login:\n  sources:\n    b:\n      kind: upstream-login\n      upstream: b\n      path: /in\n      user: { id: id }\n      headers: { x-key: "${KEY}" }\n      body: { user: "{username}", client: { id: "${ID:-console}", scopes: ["${SCOPE}"] } }\n',
      'routes.yaml':
        'upstreams: { b: { url: http://b } }\nroutes: { r: { path: /r, upstream: b, shape: s } }\nshapes: { s: [{ default: { site: { name: "${SITE}" } } }] }'
    },
    { KEY: 'k1', SCOPE: 'all', SITE: 'north' }
  )
  t.match(gateway.login.sources['b'], {
    headers: { 'x-key': 'k1' },
    body: { user: '{username}', client: { id: 'console', scopes: ['all'] } }
  })
  t.same(routes.shapes['s'], [{ default: { site: { name: 'north' } } }])
})

t.test(
  'a secret is read from the environment, or from a file whose last line end does not count',
  async t => {
    t.same(
      load(
        t,
        { 'gateway.yaml': 'session: { secrets: ["${SESSION_SECRET}"] }' },
        { SESSION_SECRET: secret }
      ).gateway.session.secrets,
      [secret]
    )
    const folder = textFolder(t.after, {
      'gateway.yaml': 'session: { secrets: ["file:secrets/session", "file:${SECRETS}/old"] }'
    })
    mkdirSync(join(folder, 'secrets'))
    writeFileSync(join(folder, 'secrets', 'session'), `${secret}\n`)
    writeFileSync(join(folder, 'secrets', 'old'), `old-${secret}\r\n`)
    t.same(loadConfig(folder, { SECRETS: join(folder, 'secrets') }).gateway.session.secrets, [
      secret,
      `old-${secret}`
    ])
  }
)

t.test('a secret’s file that is missing or empty is one fault', async t => {
  t.match(faults(t, { 'gateway.yaml': 'session:\n  secrets: ["file:gone"]\n' }), [
    /^gateway\.yaml:2 session\.secrets\.0: the secret's file cannot be read \(ENOENT\): .*gone$/
  ])
  t.match(faults(t, { 'gateway.yaml': 'session:\n  secrets: ["file:empty"]\n', 'empty': '\n' }), [
    /^gateway\.yaml:2 session\.secrets\.0: the secret's file is empty: .*empty$/
  ])
})

t.test('a secret that is told to be nothing is not there at all', async t => {
  const texts = {
    'gateway.yaml':
      'redis: { url: "${REDIS_URL:-}", password: "${REDIS_PASSWORD:-}" }\nsession: { secrets: ["${SESSION_SECRET:-}", "${OLD:-}"] }'
  }
  const { gateway } = load(t, texts, { SESSION_SECRET: '' })
  t.same(gateway.session.secrets, [])
  t.equal(gateway.redis?.url, '')
  t.notOk(Object.hasOwn(gateway.redis ?? {}, 'password') && gateway.redis?.password !== undefined)
  t.same(load(t, texts, { SESSION_SECRET: secret }).gateway.session.secrets, [secret])
})

t.test(
  'a secret that stands in the file is refused, also as the text after :-, and one that is too short is',
  async t => {
    for (const written of [
      secret,
      `\${S:-${secret}}`,
      `prefix-\${S}`,
      `\${S}\${S}`,
      'file:',
      'FILE:x',
      ''
    ]) {
      t.match(
        faults(t, { 'gateway.yaml': `session:\n  secrets:\n    - "${written}"\n` }, { S: secret }),
        [
          'gateway.yaml:3 session.secrets.0: a secret never stands in the file itself: write ${NAME} for an environment variable, or file:PATH'
        ],
        written
      )
    }
    t.match(faults(t, { 'gateway.yaml': 'session: { secrets: ["${S}"] }' }, { S: 'short' }), [
      'gateway.yaml:1 session.secrets.0: the secret has fewer than 32 characters; make one with `console-gateway generate-secret`'
    ])
  }
)

t.test('no secret is ever shown, wherever somebody put it', async t => {
  const hidden = 'hunter2-hunter2-hunter2-hunter2-hunter2'
  const places: Texts[] = [
    { 'gateway.yaml': `session: { secrets: ${hidden} }` },
    { 'gateway.yaml': 'session: { secrets: "${S}" }' },
    { 'gateway.yaml': `session: { secrets: { mine: ${hidden} } }` },
    { 'gateway.yaml': `session: { secrets: [[${hidden}]] }` },
    { 'gateway.yaml': `session: ${hidden}` },
    { 'gateway.yaml': 'session: { secrets: ["${S}", 5, "${S}"], idle: x }' },
    { 'gateway.yaml': `audit: { key: { value: ${hidden} } }` },
    { 'gateway.yaml': 'audit: { key: 778899000001 }' },
    { 'gateway.yaml': 'audit: { key: [778899000001] }' },
    { 'gateway.yaml': `redis: { url: redis://r, password: ${hidden} }` },
    { 'gateway.yaml': `redis: { url: redis://r, password: [${hidden}] }` },
    { 'gateway.yaml': `redis: "redis://:${hidden}@redis:6379"` },
    { 'gateway.yaml': `redis: { url: "redis://:${hidden}@redis:6379" }` },
    { 'gateway.yaml': 'redis: { url: "redis://user:${S}@redis:6379/0" }' },
    { 'gateway.yaml': `redis: { url: "redis://user:${hidden}/with@odd:letters@redis:6379/0" }` },
    { 'routes.yaml': `upstreams: { b: { url: "https://user:${hidden}@backend.internal" } }` },
    { 'users.yaml': `users: { alice: ${hidden} }` },
    { 'users.yaml': `users: { alice: { password: ${hidden} } }` },
    { 'users.yaml': `users: ${hidden}` }
  ]
  for (const texts of places) {
    const found = faults(t, texts, { S: hidden })
    t.ok(found.length > 0, JSON.stringify(texts))
    t.notMatch(found.join('\n'), /hunter2|778899/, JSON.stringify(texts))
  }
})

t.test('an address with a user and a password says where they belong', async t => {
  t.match(faults(t, { 'gateway.yaml': 'redis:\n  url: redis://:pw@redis:6379\n' }), [
    'gateway.yaml:2 redis.url: expected redis://HOST:PORT or rediss://HOST:PORT, optionally with /DB; user and password stand in their own keys, found "redis://…@redis:6379"'
  ])
})

t.test('a required secret whose variable is empty is one fault at its key', async t => {
  const tls = (name: 'server' | 'ops', written: string) => ({
    'gateway.yaml': `${name}:\n  hosts: [a.example]\n  tls:\n    certificate: c.pem\n    key: "${written}"\n`,
    'c.pem': ''
  })
  const emptySecret = 'the secret is empty: set the environment variable that the reference names'
  for (const written of ['${X}', '${X:-}']) {
    for (const [place, texts] of [
      ['gateway.yaml:5 server.tls.key', tls('server', written)],
      ['gateway.yaml:5 ops.tls.key', tls('ops', written)],
      ['gateway.yaml:2 audit.key', { 'gateway.yaml': `audit:\n  key: "${written}"\n` }],
      [
        'routes.yaml:4 upstreams.b.headers.x-key',
        {
          'routes.yaml': `upstreams:\n  b:\n    url: http://b\n    headers: { x-key: "${written}" }\n`
        }
      ]
    ] as const) {
      t.same(faults(t, texts, { X: '' }), [`${place}: ${emptySecret}`], written)
    }
  }
  t.same(faults(t, { 'gateway.yaml': 'audit: { key: "${X}" }' }), [
    'gateway.yaml:1 audit.key: the environment variable X is not set'
  ])
})
