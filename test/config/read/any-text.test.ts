/** Whatever stands in the files, loading gives faults or a config, never another error. */
import { readFileSync } from 'node:fs'
import fc, { type Arbitrary } from 'fast-check'
import t, { type Test } from 'tap'
import { parse, stringify } from 'yaml'
import { schemaOf } from '../../../src/config/schema/config.ts'
import type { Node } from '../../../src/config/schema/node.ts'
import { faultsOf, type Texts, textFolder, writeTexts } from '../../support/config-files.ts'
import { seed } from '../../support/seed.ts'

const names = ['gateway.yaml', 'routes.yaml', 'limits.yaml', 'users.yaml']
const shipped = names.map(file => ({
  file,
  tree: parse(readFileSync(`config/${file}`, 'utf8')) as unknown
}))

function holds(t: Test, files: Arbitrary<Texts>, numRuns: number): void {
  const folder = textFolder(t.after)
  const property = fc.property(files, texts => {
    writeTexts(folder, texts)
    faultsOf(folder, { S: 's'.repeat(32) })
  })
  fc.assert(property, { numRuns, seed })
}

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
    ...['', '${', '${X}', '${X:-y}', '${X:-', 'file:', 'file:/', 'file:\u0000', '/*', '//', '/..'],
    ...['__proto__', 'constructor', '10.0.0.0/-1', 'http://[', 'https://%zz', '127.0.0.1:99999'],
    ...['99999999999d', '\u0000', '😀', '\ud800', Number.NaN, Number.POSITIVE_INFINITY, -0],
    ...[{}, [], [[]], [null], { kind: 'users-file' }, { kind: 'upstream-login' }],
    // `String()` throws on such an object.
    { toString: null, valueOf: 1 },
    { toJSON: 1, length: -1, hasOwnProperty: 1 },
    { __proto__: null, kind: null }
  ),
  fc.string({ unit: 'binary', maxLength: 40 })
)

/** Each pattern of the schemas takes one of them, but for that of a hash. */
const plainTexts = [
  ...['a', '/a', '::1', 'http://a', 'redis://a', 'a:1', '1s', '1B', 'bearer', 'user', 'string'],
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
  if (schema.type === 'string') {
    const { pattern = '', enum: texts = plainTexts, alsoExpected = () => undefined } = schema
    return texts
      .map(String)
      .find(text => new RegExp(pattern).test(text) && alsoExpected(text) === undefined)
  }
  return schema.default ?? schema.minimum ?? 'a'
}

t.test('one value anywhere replaced by anything', async t => {
  const everywhere = Object.entries(schemaOf).flatMap(([name, schema]) =>
    [0, 1, 2].map(branch => ({ file: `${name}.yaml`, tree: everyKey(schema, branch) }))
  )
  const sound = Object.fromEntries(shipped.map(({ file, tree }) => [file, stringify(tree)]))
  for (const [trees, others] of [
    [shipped, sound],
    [everywhere, {}]
  ] as const) {
    const files = fc.constantFrom(...trees).chain(({ file, tree }) =>
      fc.tuple(fc.constantFrom(...places(tree)), strange).map(([place, value]) => ({
        ...others,
        [file]: stringify(replaced(tree, place, value))
      }))
    )
    holds(t, files, 250)
  }
})

t.test('any text, and any bytes', async t => {
  const words = 'server routes limits users login sources kind a [ ] { } | > # ~ 5 ${A} @ ` \' "'
  const spaced = [': ', '\n', '\n  ', '\n    ', '- ', ', ', '&a ', '*a', '!!str ', '!x ', '? ']
  const rare = ['<<: ', '---\n', '...\n', '%YAML 1.1\n', '\t', '\u0000', '\uFEFF']
  const token = fc.constantFrom(...words.split(' '), ...spaced, ...rare)
  const text = fc.oneof(
    fc.array(token, { maxLength: 40 }).map(tokens => tokens.join('')),
    fc.string({ unit: 'binary', maxLength: 200 }),
    fc.jsonValue().map(value => stringify(value)),
    fc.uint8Array({ maxLength: 300 })
  )
  const files = fc.tuple(fc.constantFrom(...names), text)
  holds(
    t,
    files.map(([name, written]) => ({ [name]: written })),
    800
  )
})
