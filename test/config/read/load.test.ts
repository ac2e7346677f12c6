import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { ConfigError } from '../../../src/config/schema/faults.ts'
import { read } from '../../../src/config/read/read.ts'
import { gatewaySchema } from '../../../src/config/schema/gateway.ts'
import { limitsSchema } from '../../../src/config/schema/limits.ts'
import { readDocument } from '../../../src/config/read/document.ts'
import { createInputs } from '../../../src/config/read/inputs.ts'
import { loadConfig } from '../../../src/config/read/load.ts'
import { compileShape } from '../../../src/shaping/shape.ts'
import { routesSchema } from '../../../src/config/schema/routes.ts'
import { asNode, type Node } from '../../../src/config/schema/node.ts'
import { testAuthority } from '../../support/authority.ts'
import {
  faultsOf,
  knownHash,
  type Texts,
  textFolder,
  writeTexts
} from '../../support/config-files.ts'

const load = (t: Test, texts: Texts = {}, environment: Record<string, string> = {}) =>
  loadConfig(textFolder(t.after, texts), environment)
const faults = (t: Test, texts: Texts) =>
  faultsOf(textFolder(t.after, texts)).filter(line => !line.includes(': warning: '))

t.test(
  'defaults are filled in where only a part of a section, a route or a source is written',
  async t => {
    const { gateway, routes } = load(t, {
      'gateway.yaml':
        'session: { cookie: { secure: false } }\nlogin: { sources: { b: { kind: upstream-login, upstream: b, path: /in, user: { id: id } } } }',
      'routes.yaml':
        'upstreams: { b: { url: http://127.0.0.1:1 } }\nroutes: { r: { path: /api/r, upstream: b } }'
    })
    t.same(gateway.session.cookie, { name: 'console_sid', secure: false, sameSite: 'strict' })
    t.match(gateway.login.sources['b'], {
      format: 'json',
      body: { username: '{username}', password: '{password}' },
      outcomes: []
    })
    t.match(routes.upstreams['b'], {
      connectTimeout: 2000,
      responseTimeout: 15_000,
      connections: 200,
      credential: 'none',
      identity: true
    })
    t.match(routes.routes['r'], {
      methods: ['GET'],
      access: 'session',
      passHeaders: [],
      redirects: 'refuse'
    })
  }
)

t.test('every unit of a duration and a size is understood', async t => {
  const { gateway, limits } = load(t, {
    'gateway.yaml':
      'drain: { notice: 0, grace: 250ms }\nsession: { idle: 2m, absolute: 1d, remembered: { absolute: 7d, idle: 3h } }\nserver: { keepAlive: 5s }'.replace(
        'notice: 0,',
        'notice: 0ms,'
      ),
    'limits.yaml': 'sizes: { body: 1GiB, url: 512B, shape: 3MiB }'
  })
  t.same(gateway.drain, { notice: 0, grace: 250 })
  t.match(gateway.session, {
    idle: 120_000,
    absolute: 86_400_000,
    remembered: { absolute: 7 * 86_400_000, idle: 3 * 3_600_000 }
  })
  t.equal(gateway.server.keepAlive, 5000)
  t.match(limits.sizes, { body: 1024 ** 3, url: 512, shape: 3 * 1024 ** 2 })
})

t.test('a duration or a size beyond its bound is a fault that says the bound', async t => {
  const limit = (window: string) => ({
    'limits.yaml': `limits: { a: { by: user, max: 1, window: ${window} } }`
  })
  t.match(faults(t, limit('99999999999d')), [
    'limits.yaml:1 limits.a.window: expected at most 400d, found "99999999999d"'
  ])
  t.match(faults(t, limit('401d')), [/at most 400d/])
  t.same(faults(t, limit('400d')), [])
  t.match(faults(t, { 'gateway.yaml': 'server: { keepAlive: 25d }' }), [
    'gateway.yaml:1 server.keepAlive: expected at most 24d, found "25d"'
  ])
  t.match(faults(t, { 'gateway.yaml': 'session: { absolute: 9999999h }' }), [
    /^gateway\.yaml:1 session\.absolute: expected at most 400d/
  ])
  t.match(
    faults(t, {
      'limits.yaml': 'sizes: { body: 99999999999999999999GiB, url: 17KiB }'
    }),
    [/body: expected at most 1024GiB/, /url: expected at most 16KiB/]
  )
})

/** The durations and sizes of all files, by path. */
function measures(): Array<readonly [path: string, node: Node]> {
  const found: Array<readonly [path: string, node: Node]> = []
  const look = (node: Node, path: string, above: readonly Node[] = []): void => {
    if (above.includes(node)) return
    const here = [...above, node]
    if (node.format === 'x-size' || node.format === 'x-duration') found.push([path, node])
    for (const [key, member] of Object.entries({ ...node.properties, ...node.patternProperties })) {
      look(member, `${path}.${key}`, here)
    }
    for (const inner of [
      ...(node.anyOf ?? []),
      ...(node.items === undefined ? [] : [node.items])
    ]) {
      look(inner, path, here)
    }
  }
  look(asNode(gatewaySchema), 'gateway')
  look(asNode(routesSchema), 'routes')
  look(asNode(limitsSchema), 'limits')
  return found
}

t.test(
  'every duration and size of every file has a bound: 24 days where a timer waits for it, 400 where a store keeps something',
  async t => {
    const long: string[] = []
    for (const [path, { format, maximum = Infinity }] of measures()) {
      if (format === 'x-size') t.ok(maximum <= 1024 ** 4, path)
      if (format !== 'x-duration') continue
      // Laws ask for ledgers of up to ten years.
      const maxDays = path === 'gateway.audit.keep' ? 3700 : 400
      t.ok(maximum <= maxDays * 86_400_000, path)
      if (maximum > 24 * 86_400_000) long.push(path)
    }
    t.ok(measures().length > 20, `${measures().length}`)
    t.same([...new Set(long.map(path => path.split('.').at(-1)))].toSorted(), [
      'absolute',
      'every',
      'idle',
      'keep',
      'window'
    ])
  }
)

t.test('each duration and size refuses 0, or its description says what 0 means', async t => {
  const documented: string[] = []
  for (const [path, node] of measures()) {
    const zero = node.format === 'x-duration' ? '0s' : '0B'
    const messages: string[] = []
    const report = (_: unknown, message: string) => messages.push(message)
    read(node, zero, { environment: {}, fileOf: String, readText: () => '', report })
    const isDocumented = node.description?.includes(`\`${zero}\``) === true
    if (isDocumented) documented.push(path)
    t.equal(messages.length, isDocumented ? 0 : 1, path)
    for (const message of messages) t.match(message, /^expected at least \d+\w+, found "0/, path)
    // Editors know patterns only.
    t.equal(new RegExp(node.pattern ?? '').test(zero), isDocumented, path)
    t.ok(new RegExp(node.pattern ?? '').test(zero.replace('0', '10')), path)
  }
  t.same(documented.map(path => path.split('.').at(-1)).toSorted(), [
    'grace',
    'keep',
    'maxBody',
    'notice'
  ])
})

t.test('a duration or a size in other words is a fault that shows how one is written', async t => {
  for (const written of [
    '30',
    '30 s',
    '1h30m',
    '-1s',
    '1.5h',
    '030s',
    '5M',
    'soon',
    '""',
    '[5s]',
    'true'
  ]) {
    t.match(
      faults(t, { 'gateway.yaml': `session: { idle: ${written} }` })[0],
      /^gateway\.yaml:1 session\.idle: expected a duration such as 500ms, 30s, 5m or 8h, found /,
      written
    )
  }
  for (const written of ['4096', '4KB', '4k', '1,5MiB']) {
    t.match(
      faults(t, { 'limits.yaml': `sizes: { url: "${written}" }` })[0],
      /^limits\.yaml:1 sizes\.url: expected a size such as 4KiB/,
      written
    )
  }
})

t.test('what was loaded cannot be changed, at any depth', async t => {
  const config = load(t, {
    'users.yaml': `users: { alice: { password: "${knownHash}", roles: [admin] } }`
  })
  const deep = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    t.ok(Object.isFrozen(value))
    for (const member of Object.values(value)) deep(member)
  }
  deep(config)
  t.throws(() => {
    config.gateway.server.hosts.push('evil.example')
  }, TypeError)
  t.throws(() => {
    config.users['users.yaml']?.users['alice']?.roles.push('root')
  }, TypeError)
})

t.test('an empty section and a key without a value mean that nothing is set', async t => {
  const { gateway, routes } = load(t, {
    'gateway.yaml': 'server:\nsession:\n  idle:\n  cookie:\nredis:\n',
    'routes.yaml': 'upstreams:\nroutes:\naliases:\n'
  })
  t.match(gateway, {
    server: { listen: '127.0.0.1:8080' },
    session: { idle: 1_800_000, cookie: { name: 'console_sid' } },
    redis: undefined
  })
  t.match(routes, { upstreams: {}, routes: {}, aliases: {} })
})

t.test('an unknown key is a fault with the nearest known one, on every level', async t => {
  t.same(faults(t, { 'gateway.yaml': 'server:\n  lisen: 127.0.0.1:1\nsesion: {}\n' }), [
    'gateway.yaml:2 server.lisen: unknown key "lisen". Did you mean "listen"?',
    'gateway.yaml:3 sesion: unknown key "sesion". Did you mean "session"?'
  ])
  t.match(
    faults(t, {
      'routes.yaml':
        'upstreams: { b: { url: http://b } }\nroutes:\n  r:\n    path: /r\n    upstream: b\n    acess: public\n'
    }),
    ['routes.yaml:6 routes.r.acess: unknown key "acess" beside `upstream`. Did you mean "access"?']
  )
  t.match(
    faults(t, { 'users.yaml': `users:\n  bob:\n    password: ${knownHash}\n    role: [user]` }),
    ['users.yaml:4 users.bob.role: unknown key "role". Did you mean "roles"?']
  )
})

t.test('keys that JavaScript objects are born with are unknown keys like others', async t => {
  for (const key of ['__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
    t.match(
      faults(t, { 'gateway.yaml': `${key}: { polluted: true }` })[0],
      `gateway.yaml:1 ${key}: unknown key "${key}".`,
      key
    )
    t.equal(({} as { polluted?: boolean }).polluted, undefined)
  }
  t.match(
    faults(t, { 'routes.yaml': 'routes: { r: { path: /r, upstream: constructor } }' })[0],
    'routes.yaml:1 routes.r.upstream: there is no upstream "constructor".'
  )
})

t.test('a value of the wrong type says where, what was expected and what was found', async t => {
  t.same(
    faults(t, {
      'gateway.yaml':
        'server: 5\ndrain:\n  notice: [1s]\nlogin:\n  fields: 403\nenvelope:\n  dialect: soap\n  successCode: [0]\n',
      'limits.yaml': 'inFlightPerUser: 0\nlimits:\n  l: { by: users, max: 5, window: 1m }\n'
    }),
    [
      'gateway.yaml:1 server: expected a mapping, found 5',
      'gateway.yaml:3 drain.notice: expected a duration such as 500ms, 30s, 5m or 8h, found ["1s"]',
      'gateway.yaml:5 login.fields: expected a mapping, found 403',
      'gateway.yaml:7 envelope.dialect: expected one of dual, ant-design-pro, base-response, custom, problem, none, found "soap"',
      'gateway.yaml:8 envelope.successCode: expected a whole number or a text, found [0]',
      'limits.yaml:1 inFlightPerUser: expected a whole number of at least 1 and at most 10000, found 0',
      'limits.yaml:3 limits.l.by: expected address, user, session, key or profile.NAME, or a list of them, found "users"'
    ]
  )
})

t.test(
  'a list where a mapping should be, and the other way round, is one fault and no crash',
  async t => {
    for (const written of [
      '5',
      '"text"',
      '[{ kind: users-file }]',
      'true',
      '{}',
      '{ b: 5 }',
      '{ b: null }',
      '{ b: {} }',
      '{ b: { kind: none } }'
    ]) {
      const found = faults(t, { 'gateway.yaml': `login:\n  sources: ${written}` })
      t.equal(found.length, 1, `${written}: ${found.join(' | ')}`)
      t.match(found[0], /^gateway\.yaml:2 login\.sources(\.b)?: expected /, written)
    }
    t.match(
      faults(t, { 'routes.yaml': 'routes: []' })[0],
      'routes.yaml:1 routes: expected a mapping, found []'
    )
    t.match(
      faults(t, { 'routes.yaml': 'routes:\n  notices:\n' })[0],
      'routes.yaml:2 routes.notices: expected a mapping with upstream, answer or parts, found null'
    )
  }
)

t.test('a missing key says what it is for', async t => {
  t.same(
    faults(t, {
      'routes.yaml': 'upstreams: { b: { url: http://b } }\nroutes:\n  r:\n    upstream: b\n'
    }),
    [
      'routes.yaml:3 routes.r: the key "path" is missing (The public path. `/*` at its end takes everything below, `:name` one segment. Of several that match the nearest decides.)'
    ]
  )
})

t.test('a name that no route can have says which ones can', async t => {
  t.match(
    faults(t, { 'routes.yaml': 'upstreams: { My_Back-End: { url: http://b } }' })[0],
    'routes.yaml:1 upstreams.My_Back-End: the name "My_Back-End" is not allowed: lower-case letters, digits and dashes'
  )
})

t.test(
  'every mistake of every file is said at once, each with its own file, line and path',
  async t => {
    t.same(
      faults(t, {
        'gateway.yaml':
          '# comment\nserver:\n  listen: nowhere\nsession:\n  secrets:\n    - literal\nlogin:\n  sources:\n    staff:\n      kind: users-file\n      file: people.yaml\n    gone:\n      kind: users-file\n      file: gone.yaml\n',
        'routes.yaml':
          '\nroutes:\n  a:\n    path: api\n    upstream: b\n  "b":\n    path: /b\n    methods: [GET, FETCH]\n    upstream: b\n',
        'limits.yaml': 'sizes:\n  body: 1 MB\n',
        'people.yaml': 'users:\n  alice:\n    password: secret123\n'
      }),
      [
        'gateway.yaml:3 server.listen: expected HOST:PORT, such as 127.0.0.1:8080 or [::1]:8080, found "nowhere"',
        'gateway.yaml:6 session.secrets.0: a secret never stands in the file itself: write ${NAME} for an environment variable, or file:PATH',
        'routes.yaml:4 routes.a.path: expected a path that begins with /, with :name as a whole segment, and /* at its end at most, found "api"',
        'routes.yaml:8 routes.b.methods.1: expected one of GET, POST, PUT, PATCH, DELETE, found "FETCH". Did you mean "PATCH"?',
        'limits.yaml:2 sizes.body: expected a size such as 4KiB, 1MiB or 1GiB, found "1 MB"',
        'people.yaml:3 users.alice.password: expected an argon2id hash; make one with `console-gateway hash-password`',
        'gateway.yaml:14 login.sources.gone.file: the file "gone.yaml" cannot be read (ENOENT)',
        'routes.yaml:5 routes.a.upstream: there is no upstream "b".',
        'routes.yaml:9 routes.b.upstream: there is no upstream "b".'
      ]
    )
  }
)

t.test(
  'the line is that of the key also for keys that are numbers, list items and flow mappings',
  async t => {
    t.match(
      faults(t, {
        'users.yaml': `users:\n  1:\n    password: x\n  2: { password: "${knownHash}",\n       id: "" }\n`
      }),
      [
        /^users\.yaml:3 users\.1\.password: /,
        /^users\.yaml:5 users\.2\.id: expected a text that is not empty, found ""/
      ]
    )
    t.match(
      faults(t, {
        'gateway.yaml':
          'server:\n  origins:\n    - https://a.example\n    - https://b.example/path\n'
      })[0],
      /^gateway\.yaml:4 server\.origins\.1: expected an origin/
    )
  }
)

t.test('a file that is empty, null, or no mapping is said to be that', async t => {
  for (const text of [
    '',
    '\n\n',
    '# only a comment\n',
    'null',
    '~',
    '---\n',
    '5',
    'just text',
    '- a\n- b\n',
    '\uFEFF'
  ]) {
    t.same(
      faults(t, { 'routes.yaml': text }),
      [
        'routes.yaml:0 : expected a mapping, at least {}; the file is empty or holds something else'
      ],
      JSON.stringify(text)
    )
  }
})

t.test('a file that is missing, a folder, or larger than it can be meant is one fault', async t => {
  t.same(faults(t, { 'limits.yaml': null }), ['limits.yaml:0 : the file cannot be read (ENOENT)'])
  t.same(faults(t, { 'routes.yaml': `{} #${'x'.repeat(2 * 1024 * 1024)}` }), [
    'routes.yaml:0 : the file is larger than 1 MiB'
  ])
  const folder = textFolder(t.after, { 'users.yaml': null })
  mkdirSync(join(folder, 'users.yaml'))
  t.same(
    faultsOf(folder).filter(line => !line.includes('warning')),
    ['gateway.yaml:1 login.sources.users-file.file: the file "users.yaml" cannot be read (EISDIR)']
  )
  t.same(faultsOf(join(folder, 'nowhere')), [
    'gateway.yaml:0 : the file cannot be read (ENOENT)',
    'routes.yaml:0 : the file cannot be read (ENOENT)',
    'limits.yaml:0 : the file cannot be read (ENOENT)'
  ])
})

const yamlMistakes: ReadonlyArray<readonly [title: string, text: string, ...expected: RegExp[]]> = [
  [
    'each key that stands twice is told, with both lines',
    'limits: {}\nsizes:\n  body: 1MiB\n  url: 8KiB\n  body: 2MiB\nlimits: {}\n',
    /^limits\.yaml:5 : the key "body" stands twice in its mapping, first in line 3\./,
    /^limits\.yaml:6 : the key "limits" stands twice in its mapping, first in line 1\./
  ],
  [
    'a space too little is one fault',
    'sizes:\n  body: 1MiB\n url: 8KiB\n',
    /^limits\.yaml:3 : .*same number of spaces/
  ],
  [
    'a space too much is one fault',
    'sizes:\n  body: 1MiB\n    url: 8KiB\n',
    /^limits\.yaml:[23] : /
  ],
  ['a tab is said to be one', 'sizes:\n\tbody: 1MiB\n', /^limits\.yaml:2 : a tab /],
  [
    'a second document is one fault',
    'sizes: {}\n---\nlimits: {}\n',
    /^limits\.yaml:2 : a second YAML document begins here/
  ],
  [
    'a reference in a list needs quotes',
    'a: [${X}]\n',
    /^limits\.yaml:1 : .*needs quotes: "\$\{NAME\}"/
  ],
  [
    'a reference in a mapping needs quotes',
    'a: { b: ${X} }\n',
    /^limits\.yaml:1 : .*needs quotes: "\$\{NAME\}"/
  ],
  [
    'an alias names what is there',
    'sizes: *lost\n',
    /the alias \*lost has no anchor: define &lost above it/
  ],
  [
    'a merge key takes a mapping',
    'sizes: &x 5\nlimits: { <<: *x }\n',
    /the merge key "<<" takes a mapping/
  ]
]

for (const [title, text, ...expected] of yamlMistakes) {
  t.test(`YAML: ${title}`, async t => {
    const found = faults(t, { 'limits.yaml': text })
    t.equal(found.length, expected.length, found.join('\n'))
    for (const [index, pattern] of expected.entries()) t.match(found[index], pattern)
  })
}

t.test('YAML: tags of values that JSON does not have are faults', async t => {
  const limit = '{ by: address, max: 1, window: 1m }'
  for (const [tag, value] of [
    ['!!omap', `[ { a: ${limit} } ]`],
    ['!!set', '{ a }'],
    ['!!timestamp', '2001-01-01'],
    ['!vault', 'x'],
    ['!!python/tuple', '[]']
  ]) {
    t.same(faults(t, { 'limits.yaml': `sizes: {}\nlimits: ${tag} ${value}\n` }), [
      `limits.yaml:2 : the tag ${tag} is not supported: write the value without it`
    ])
  }
  const text = `limits: !!map { a: !!map { by: ! address, max: !!int "5", window: !!str 1m } }\n`
  t.match(load(t, { 'limits.yaml': text }).limits.limits, { a: { max: 5, window: 60_000 } })
})

t.test('a merge key brings the members of another mapping', async t => {
  const { limits } = load(t, {
    'limits.yaml':
      'limits:\n  a: &usual { by: user, max: 5, window: 1m }\n  b: { <<: *usual, max: 7 }\n'
  })
  t.match(limits.limits, {
    a: { by: ['user'], max: 5 },
    b: { by: ['user'], max: 7, window: 60_000 }
  })
})

t.test('a value that nobody knows names the nearest, or another way to write it', async t => {
  t.same(
    faults(t, {
      'limits.yaml': 'limits: { a: { by: user, max: 5, window: 1m, mode: shaddow } }\n',
      'routes.yaml':
        'upstreams: { b: { url: http://b } }\nroutes:\n' +
        '  a: { path: /a, upstream: b, methods: [get] }\n' +
        '  c: { path: /c, upstream: b, access: admin }\n' +
        '  d: { path: /d, upstream: b, access: sesion }\n'
    }),
    [
      'routes.yaml:3 routes.a.methods.0: expected one of GET, POST, PUT, PATCH, DELETE, found "get". Did you mean "GET"?',
      'routes.yaml:4 routes.c.access: expected public, session, or roles: [NAME, …], found "admin". Write { roles: [admin] } for that.',
      'routes.yaml:5 routes.d.access: expected public, session, or roles: [NAME, …], found "sesion". Did you mean "session"?',
      'limits.yaml:1 limits.a.mode: expected one of enforce, shadow, off, found "shaddow". Did you mean "shadow"?'
    ]
  )
})

t.test('text that is no YAML says the line; garbage does not flood the terminal', async t => {
  t.match(
    faults(t, { 'routes.yaml': 'routes:\n  a: { path: /a\nupstreams: {}\n' })[0],
    /^routes\.yaml:[23] : /
  )
  t.match(
    faults(t, { 'gateway.yaml': 'server:\n  listen: "127.0.0.1:1\n' })[0],
    /^gateway\.yaml:[23] : Missing closing "quote/
  )
  const garbage = Buffer.from(
    Array.from({ length: 200_000 }, (_, index) => (index * 7919 + (index >> 3) * 104_729) % 256)
  )
  for (const text of [
    garbage,
    Buffer.alloc(1000),
    Buffer.from([0xff, 0xfe, 0x00, 0x61, 0xc3, 0x28]),
    '\u0000'.repeat(5000),
    '\t{'.repeat(5000)
  ]) {
    const found = faults(t, { 'gateway.yaml': text })
    t.ok(found.length >= 1 && found.length <= 10, `${found.length} faults`)
  }
})

t.test(
  'aliases that expand to too much, or that hold themselves, are refused in no time',
  async t => {
    const bomb = [
      'a0: &a0 [x, x, x, x, x, x, x, x, x]',
      ...Array.from(
        { length: 12 },
        (_, index) =>
          `a${index + 1}: &a${index + 1} [${Array.from({ length: 9 }, () => `*a${index}`).join(', ')}]`
      )
    ].join('\n')
    const began = performance.now()
    t.same(faults(t, { 'limits.yaml': bomb }), [
      'limits.yaml:0 : the YAML aliases of this file expand to too much, or one contains itself'
    ])
    t.ok(performance.now() - began < 20_000)
    for (const text of [
      'server: &a\n  listen: *a\n',
      'server: &a { hosts: [*a] }',
      '&a { server: *a }',
      'login: { sources: { b: { kind: upstream-login, body: &b { again: *b } } } }'
    ]) {
      t.same(
        faults(t, { 'gateway.yaml': text }),
        [
          'gateway.yaml:0 : the YAML aliases of this file expand to too much, or one contains itself'
        ],
        text
      )
    }
  }
)

t.test('an anchor may be used by thousands of routes; what expands to too much is refused', t => {
  const routes = (count: number) =>
    Array.from({ length: count }, (_, index) => `  r${index}: { <<: *r, path: /r${index} }\n`)
  const text = (count: number) =>
    'upstreams: { b: { url: "http://b" } }\nroutes:\n' +
    `  first: &r { path: /r, upstream: b, access: &a { roles: [x] } }\n${routes(count).join('')}` +
    '  last: { path: /last, upstream: b, access: *a }\n'
  t.equal(Object.keys(load(t, { 'routes.yaml': text(1000) }).routes.routes).length, 1002)
  const long = `a: &a [${'1,'.repeat(2000)}]\nb: [${'*a,'.repeat(1000)}]\n`
  for (const each of [text(10_001), long]) {
    t.same(faults(t, { 'routes.yaml': each }), [
      'routes.yaml:0 : the YAML aliases of this file expand to too much, or one contains itself'
    ])
  }
  t.end()
})

t.test('a file that is not UTF-8 is a fault at its first such line', async t => {
  const latin = (text: string) => Buffer.from(text, 'latin1')
  t.same(faults(t, { 'users.yaml': latin(`users:\n  Zo\xeb: { password: "${knownHash}" }\n`) }), [
    'users.yaml:2 : the file is not UTF-8 text: save it as UTF-8'
  ])
  t.same(faults(t, { 'limits.yaml': latin('# f\xfcr alle') }), [
    'limits.yaml:1 : the file is not UTF-8 text: save it as UTF-8'
  ])
  const folder = textFolder(t.after, {
    'gateway.yaml': 'session: { secrets: ["file:secret"], cookie: { secure: false } }\n',
    'secret': latin('\xfc'.repeat(40))
  })
  t.match(faultsOf(folder), [
    "gateway.yaml:1 session.secrets.0: the secret's file cannot be read " +
      `(the file is not UTF-8 text: save it as UTF-8): ${join(folder, 'secret')}`
  ])
})

t.test('text around a certificate may have any encoding', async t => {
  const pem = Buffer.concat([
    Buffer.from('# Z\xfcrich\n', 'latin1'),
    readFileSync(testAuthority(t.after).certificate)
  ])
  const routes = 'upstreams: { b: { url: "https://b", tls: { ca: ca.pem } } }\nroutes: {}\n'
  t.same(faults(t, { 'routes.yaml': routes, 'ca.pem': pem }), [])
})

t.test('deep nesting is a fault, not a crash', async t => {
  for (const text of [
    '['.repeat(20_000),
    '{a: '.repeat(20_000),
    '- '.repeat(20_000),
    `a: ${'['.repeat(3000)}${']'.repeat(3000)}`
  ]) {
    t.ok(faults(t, { 'routes.yaml': text }).length > 0, text.slice(0, 10))
  }
})

t.test(
  'users are read from the files that the sources name, seen from the config folder',
  async t => {
    const folder = textFolder(t.after, {
      'gateway.yaml':
        'login: { sources: { users-file: { kind: users-file, file: people/staff.yaml } } }',
      'users.yaml': null
    })
    mkdirSync(join(folder, 'people'))
    writeFileSync(
      join(folder, 'people', 'staff.yaml'),
      `users:\n  "Ünï 😀": { password: "${knownHash}" }\n`
    )
    t.match(loadConfig(folder, {}).users['people/staff.yaml']?.users['Ünï 😀'], {
      roles: [],
      disabled: false,
      profile: {}
    })
  }
)

t.test('two users of a file with one id are a fault, also where one has it by name', async t => {
  const users = `users:\n  '7': { password: "${knownHash}" }\n  bob:\n    password: "${knownHash}"\n    id: '7'\n  eve: { password: "${knownHash}", id: bob }\n`
  t.same(
    faultsOf(textFolder(t.after, { 'users.yaml': users })).filter(fault =>
      fault.startsWith('users')
    ),
    ['users.yaml:5 users.bob.id: users.7 has the id "7" too; give each user an id of its own']
  )
})

t.test('warnings do not keep the gateway from starting and stand in the config', async t => {
  const { warnings } = load(t, { 'gateway.yaml': 'session: { cookie: { secure: false } }' })
  t.match(warnings, [{ path: 'session.cookie.secure', severity: 'warning', line: 1 }])
})

t.test('the error of a broken config holds every fault, one a line', async t => {
  const folder = textFolder(t.after, { 'gateway.yaml': 'a: 1\nb: 2\n' })
  try {
    loadConfig(folder, {})
    t.fail('it loaded')
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    t.equal(error.message.split('\n').length, error.faults.length)
    t.match(
      error.message,
      /gateway\.yaml:1 a: unknown key "a"\.\n.*gateway\.yaml:2 b: unknown key "b"\./
    )
  }
})

t.test('null as a key is the text null, as numbers and flags are', t => {
  const { routes } = load(t, {
    'routes.yaml': [
      'shapes:',
      '  a: [{ map: { state: { null: none, 0: zero, true: yes } } }]',
      '  b: [{ map: { state: { ~: none } } }]',
      "  c: [{ map: { state: { '': none } } }]"
    ].join('\n')
  })
  t.same(routes.shapes, {
    a: [{ map: { state: { null: 'none', 0: 'zero', true: 'yes' } } }],
    b: [{ map: { state: { null: 'none' } } }],
    c: [{ map: { state: { '': 'none' } } }]
  })
  const { shapes } = routes
  const { apply } = compileShape(shapes['a'] ?? [], {
    shapes,
    wrap: data => data
  })
  t.same(apply({ state: null }), { state: 'none' })
  t.end()
})

t.test('keys that are written otherwise, but have the same name, stand twice', t => {
  const map = (keys: string) => ({
    'routes.yaml': `shapes:\n  a: [{ map: { state: { ${keys} } } }]`
  })
  for (const [keys, name] of [
    ['null: a, "null": b', 'null'],
    ['"null": a, ~: b', 'null'],
    ['1: a, "1": b', '1'],
    ['0x10: a, 16.0: b', '16'],
    ['true: a, "true": b', 'true'],
    ['"": a, : b', '']
  ] as const) {
    t.match(faults(t, map(keys)), [`the key "${name}" stands twice in its mapping`], keys)
  }
  t.same(faults(t, map('null: a, "": b, 1: c, "01": d')), [])
  const merged = 'shapes:\n  a: &a { x: 1 }\n  b: &b { y: 2 }\n  c: { <<: *a, <<: *b, z: 3 }'
  t.same(
    faults(t, { 'routes.yaml': merged }).filter(line => line.includes('twice')),
    []
  )
  t.end()
})

t.test('ten times as many keys of a mapping take about ten times as long', t => {
  const cpuOf = (count: number) => {
    const keys = Array.from({ length: count }, (_, index) => `  k${index}: 1\n`)
    const folder = textFolder(t.after, { 'many.yaml': `a:\n${keys.join('')}` })
    const before = process.cpuUsage()
    const context = { inputs: createInputs(), faults: [] }
    t.ok(readDocument(join(folder, 'many.yaml'), 'many.yaml', context))
    return process.cpuUsage(before).user
  }
  cpuOf(3000)
  // Each key against all before it would take a hundred times as long.
  t.ok(cpuOf(30_000) < 30 * cpuOf(3000))
  t.end()
})

t.test('an integer that a number cannot hold is a fault', t => {
  const shapes = (constant: string) =>
    ['shapes:', '  a:', `    - constant: { b: 1, tenant: ${constant} }`].join('\n')
  t.match(faults(t, { 'routes.yaml': shapes('1234567890123456789') }), [
    /^routes\.yaml:3 .*this number is too long to be exact: write it as text, in quotes$/
  ])
  t.same(faults(t, { 'routes.yaml': shapes('-9007199254740993') }).length, 1)
  t.same(faults(t, { 'routes.yaml': shapes('9007199254740991') }), [])
  t.same(faults(t, { 'routes.yaml': shapes('"1234567890123456789"') }), [])
  t.end()
})

t.test('the authority of Redis is one of the files that are read', t => {
  const gateway = 'session: { secrets: ["${S}"] }\nredis:\n  url: rediss://h:1\n  ca: ca.pem\n'
  const certificate = readFileSync(testAuthority(t.after).certificate, 'utf8')
  const folder = textFolder(t.after, { 'gateway.yaml': gateway, 'ca.pem': certificate })
  const environment = { S: 's'.repeat(32) }
  const config = loadConfig(folder, environment)
  t.equal(config.redisCa, certificate)
  t.ok(Object.hasOwn(config.inputs, join(folder, 'ca.pem')), 'a change of it is seen')
  rmSync(join(folder, 'ca.pem'))
  t.match(faultsOf(folder, environment), [
    'gateway.yaml:4 redis.ca: the file cannot be read (ENOENT)'
  ])
  t.end()
})

t.test('a users file that only the running process needs is told to be that', t => {
  const folder = textFolder(t.after)
  const { gateway: running } = loadConfig(folder, {})
  writeTexts(folder, {
    'gateway.yaml':
      'login:\n  sources:\n    b: { kind: upstream-login, upstream: b, path: /in, user: { id: id } }\n',
    'routes.yaml': 'upstreams: { b: { url: http://b } }',
    'users.yaml': null
  })
  const faultsNow = () => {
    try {
      return loadConfig(folder, {}, { running }).restartNeeded
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      const faults = error.faults.filter(({ severity }) => severity === 'fault')
      return faults.map(({ line, path, message }) => `${line} ${path}: ${message}`)
    }
  }
  const unreadable = 'the file "users.yaml" cannot be read (ENOENT)'
  t.same(faultsNow(), [
    `2 login.sources: ${unreadable}: the running process needs it until it is restarted`
  ])
  writeFileSync(join(folder, 'gateway.yaml'), '{}')
  t.same(
    faultsNow(),
    [`1 login.sources.users-file.file: ${unreadable}`],
    'one fault where both need it'
  )
  t.end()
})

t.test('what waits for a restart may name a source that waits with it', t => {
  const folder = textFolder(t.after)
  const { gateway: running } = loadConfig(folder, {})
  const sources = '{ users-file: { kind: users-file }, more: { kind: users-file } }'
  writeTexts(folder, {
    'gateway.yaml': `login: { sources: ${sources} }\nops: { sources: [more] }\nidentity: { prefix: true }`
  })
  const { restartNeeded } = loadConfig(folder, {}, { running })
  t.same(restartNeeded, ['ops.sources', 'login.sources.more', 'identity.prefix'])
  t.end()
})
