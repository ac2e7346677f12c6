import fc from 'fast-check'
import t from 'tap'
import { stringify } from 'yaml'
import { schemaOf } from '../../../src/config/schema/config.ts'
import type { Node } from '../../../src/config/schema/node.ts'
import { faultsOf, textFolder, writeTexts } from '../../support/config-files.ts'
import { seed } from '../../support/seed.ts'

const whole = {
  'gateway.yaml': {
    server: {
      listen: '${LISTEN:-127.0.0.1:1}',
      hosts: ['h'],
      origins: ['https://a.example'],
      trustedProxies: ['10.0.0.0/8']
    },
    redis: { url: 'redis://r', password: '${P:-}' },
    session: { secrets: ['${S}'], cookie: { secure: false } },
    login: {
      sources: {
        'users-file': { kind: 'users-file', file: 'users.yaml' },
        'b': {
          kind: 'upstream-login',
          upstream: 'b',
          path: '/in',
          outcomes: [{ is: 'success', path: 'code', in: [200] }],
          user: { id: 'id', roleMap: { A: 'admin' } },
          logout: { path: '/out' }
        }
      }
    },
    envelope: { messages: { 'login.refused': 'No.' } },
    console: { root: '.' }
  },
  'routes.yaml': {
    upstreams: { b: { url: 'http://b' } },
    endpoints: { profile: { upstream: 'b', shape: 's' } },
    aliases: { '/api/me': '/api/account/profile' },
    routes: {
      r: {
        path: '/api/r/*',
        methods: ['GET'],
        access: { roles: ['admin'] },
        upstream: 'b',
        rewrite: '/x/*',
        maxBody: '1MiB'
      }
    },
    shapes: {
      s: [
        { unwrap: 'a.b' },
        { each: [{ rename: { a: 'b' } }, { default: { c: null } }] },
        { wrap: 'list' }
      ]
    }
  },
  'limits.yaml': {
    sizes: { body: '1MiB' },
    limits: {
      l: { by: 'address', max: '${MAX:-5}', window: '1m', routes: ['login'] }
    }
  },
  'users.yaml': { users: { alice: { password: 'x', roles: ['admin'], profile: { a: [1] } } } }
}
type Name = keyof typeof whole
const names = Object.keys(whole) as Name[]

/** Every place in a tree. */
const places = (value: unknown, path: readonly string[] = []): Array<readonly string[]> =>
  typeof value === 'object' && value !== null
    ? [path, ...Object.entries(value).flatMap(([key, member]) => places(member, [...path, key]))]
    : [path]
const replaced = (tree: unknown, [key, ...rest]: readonly string[], value: unknown): unknown => {
  if (key === undefined) return value
  const copy = structuredClone(tree) as Record<string, unknown>
  copy[key] = replaced(copy[key], rest, value)
  return copy
}

const strange = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  fc.constantFrom(
    '',
    '${',
    '${X}',
    '${X:-y}',
    '${X:-',
    'file:',
    'file:/',
    'file:\u0000',
    '/*',
    '//',
    '/..',
    '__proto__',
    'constructor',
    '10.0.0.0/-1',
    'http://[',
    'https://%zz',
    '127.0.0.1:99999',
    '99999999999d',
    '\u0000',
    '😀',
    '\ud800',
    Number.NaN,
    Number.POSITIVE_INFINITY,
    -0,
    {},
    [],
    [[]],
    [null],
    { kind: 'users-file' },
    { kind: 'upstream-login' },
    // `String()` throws on such an object.
    { toString: null, valueOf: 1 },
    { toJSON: 1, length: -1, hasOwnProperty: 1 },
    { __proto__: null, kind: null }
  ),
  fc.string({ unit: 'binary', maxLength: 40 })
)

t.test(
  'one value anywhere replaced by anything gives faults or a config, never another error',
  async t => {
    const folder = textFolder(t.after)
    fc.assert(
      fc.property(
        fc
          .constantFrom(...names)
          .chain(name =>
            fc.tuple(fc.constant(name), fc.constantFrom(...places(whole[name])), strange)
          ),
        ([name, place, value]) => {
          const texts = Object.fromEntries(
            names.map(other => [
              other,
              stringify(other === name ? replaced(whole[other], place, value) : whole[other])
            ])
          )
          writeTexts(folder, texts)
          faultsOf(folder, { S: 's'.repeat(32) })
        }
      ),
      {
        numRuns: 300,
        seed,
        examples: [
          [['routes.yaml', ['routes', 'r', 'maxBody'], [{ toString: null }]]],
          [['limits.yaml', ['limits', 'l', 'window'], [{ toString: null }]]],
          [['users.yaml', ['users', 'alice', 'password'], { toString: null }]]
        ]
      }
    )
  }
)

/** Each pattern of the schemas takes one of them, but for that of a hash. */
const plainTexts = [
  ...['a', '/a', 'http://a', 'redis://a', 'a:1', '1s', '1B', 'bearer', 'user', 'string'],
  ...['GET /a', './a.js', 'file:a', 'a'.repeat(16), '2026-12-01T06:00:00Z']
]

/**
 * A value for each key of a schema; it need not pass the rules between keys.
 * @param branch the one to take of each union
 */
function everyKey(schema: Node, branch: number, above: readonly Node[] = []): unknown {
  const { anyOf, properties = {}, patternProperties = {}, items } = schema
  if (above.includes(schema)) return null
  const valueOf = (member: Node) => everyKey(member, branch, [...above, schema])
  if (anyOf !== undefined) return valueOf(anyOf[branch % anyOf.length] ?? {})
  if (schema.const !== undefined) return schema.const
  if (schema.type === 'array') return [valueOf(items ?? {})]
  if (schema.type === 'object') {
    const named = Object.values(patternProperties).map(member => ['a', member] as const)
    const members = [...Object.entries(properties), ...named]
    return Object.fromEntries(members.map(([key, member]) => [key, valueOf(member)]))
  }
  if (schema.format === 'x-secret') return '${S}'
  if (schema.format === 'x-addresses') return '10.0.0.0/8'
  if (schema.type === 'string') {
    const { pattern = '', enum: texts = plainTexts } = schema
    return texts.find(text => new RegExp(pattern).test(String(text)))
  }
  return schema.default ?? schema.minimum ?? 'a'
}

t.test('so does one value anywhere in a file with every key', async t => {
  const folder = textFolder(t.after)
  const trees = Object.entries(schemaOf).flatMap(([name, schema]) =>
    [0, 1, 2].map(branch => ({ file: `${name}.yaml`, tree: everyKey(schema, branch) }))
  )
  fc.assert(
    fc.property(
      fc
        .constantFrom(...trees)
        .chain(({ file, tree }) =>
          fc.tuple(fc.constant({ file, tree }), fc.constantFrom(...places(tree)), strange)
        ),
      ([{ file, tree }, place, value]) => {
        writeTexts(folder, { [file]: stringify(replaced(tree, place, value)) })
        faultsOf(folder, { S: 's'.repeat(32) })
      }
    ),
    { numRuns: 200, seed }
  )
})

t.test('any text gives faults or a config, never another error', async t => {
  const folder = textFolder(t.after)
  const token = fc.constantFrom(
    'server',
    'routes',
    'limits',
    'users',
    'login',
    'sources',
    'kind',
    'a',
    ': ',
    '\n',
    '\n  ',
    '\n    ',
    '- ',
    '[',
    ']',
    '{',
    '}',
    ', ',
    '&a ',
    '*a',
    '!!str ',
    '!x ',
    '|',
    '>',
    '"',
    "'",
    '#',
    '---\n',
    '...\n',
    '%YAML 1.1\n',
    '? ',
    '<<: ',
    '~',
    '5',
    '${A}',
    '\t',
    '\u0000',
    '\uFEFF',
    '@',
    '`'
  )
  const text = fc.oneof(
    fc.array(token, { maxLength: 40 }).map(tokens => tokens.join('')),
    fc.string({ unit: 'binary', maxLength: 200 }),
    fc.jsonValue().map(value => stringify(value))
  )
  fc.assert(
    fc.property(fc.constantFrom(...names), text, (name, written) => {
      writeTexts(folder, { [name]: written })
      faultsOf(folder)
    }),
    { numRuns: 500, seed }
  )
})

t.test('any bytes give faults or a config, never another error', async t => {
  const folder = textFolder(t.after)
  fc.assert(
    fc.property(fc.constantFrom(...names), fc.uint8Array({ maxLength: 300 }), (name, bytes) => {
      writeTexts(folder, { [name]: bytes })
      faultsOf(folder)
    }),
    { numRuns: 300, seed }
  )
})
