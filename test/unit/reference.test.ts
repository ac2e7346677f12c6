/** Shapes against a plain reading of docs/shaping.md, on random shapes and bodies. */
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import t from 'tap'
import type { ShapeStep } from '../../src/config/schema/shapes.ts'
import { compileShape } from '../../src/shaping/shape.ts'
import { reference, type Step } from './reference.ts'

const pairs = 31_000

// Few names, so that steps find members.
const name = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom('a', 'b') },
  { weight: 2, arbitrary: fc.constantFrom('data', 'code', '0', 'length', '__proto__', 'toString') }
)
const path = fc.array(name, { minLength: 1, maxLength: 2 }).map(names => names.join('.'))
const scalar = fc.constantFrom(null, true, 0, 7, '', 'x', '404')
const { value } = fc.letrec<{ value: unknown }>(tie => ({
  value: fc.oneof(
    { maxDepth: 4, depthSize: 'small' },
    scalar,
    fc.dictionary(name, tie('value'), { minKeys: 1, maxKeys: 5, noNullPrototype: true }),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.constant({})
  )
}))
const named = <T>(detail: fc.Arbitrary<T>, key: fc.Arbitrary<string> = name) =>
  fc.dictionary(key, detail, { minKeys: 1, maxKeys: 3, noNullPrototype: true })
const names = fc.uniqueArray(name, { minLength: 1, maxLength: 4 })
/** The config's check refuses two sources of one target, and a move into itself. */
const isFit = (moves: Record<string, string>) =>
  new Set(Object.values(moves)).size === Object.keys(moves).length &&
  Object.entries(moves).every(([from, to]) => !to.startsWith(`${from}.`))

const { steps } = fc.letrec<{ steps: ShapeStep[] }>(tie => ({
  steps: fc.array(
    fc.oneof(
      fc.record({ unwrap: path }),
      fc.record({ pick: names }),
      fc.record({ drop: names }),
      fc.record({ rename: named(name).filter(isFit) }),
      fc.record({ move: named(path, path).filter(isFit) }),
      fc.constantFrom({ move: { a: 'b', b: 'a' } }, { move: { a: 'data', b: 'data.a' } }),
      fc.record({ lift: path }),
      fc.constant({ use: 'other' }),
      fc.record({ each: tie('steps') }),
      fc.record({ at: fc.record({ path, operations: tie('steps') }) })
    ) as fc.Arbitrary<ShapeStep>,
    { minLength: 1, maxLength: 3, depthIdentifier: 'steps' }
  )
}))
/** Without `use`, which would lead to itself. */
const other = steps.filter(all => !JSON.stringify(all).includes('"use"'))

/** What a shape would change of its input throws. */
const frozen = (body: unknown): unknown => {
  if (typeof body === 'object' && body !== null) {
    Object.values(body).forEach(frozen)
    Object.freeze(body)
  }
  return body
}

const plain = (result: unknown): unknown => JSON.parse(JSON.stringify(result))

t.test('a shape does what the docs say of each operation', async () => {
  fc.assert(
    fc.property(steps, other, value, (configured, used, body) => {
      const { apply } = compileShape(configured, { wrap: each => each, shapes: { other: used } })
      const expected = reference(configured as Step[], body, used as Step[])
      return isDeepStrictEqual(plain(apply(frozen(body))), plain(expected))
    }),
    { numRuns: pairs, seed: 20_261_128 }
  )
})
