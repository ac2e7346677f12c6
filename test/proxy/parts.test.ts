import fc from 'fast-check'
import t from 'tap'
import { merge, type Part, withMissing } from '../../src/proxy/parts.ts'

const frozen = <T>(value: T): T => {
  if (typeof value === 'object' && value !== null) {
    for (const member of Object.values(Object.freeze(value))) frozen(member)
  }
  return value
}
const part = (name: string, into: readonly string[], isRequired = false): Part => ({
  name,
  into,
  isRequired,
  unwrap: [],
  fallback: undefined,
  timeoutMs: 1,
  maxBytes: 1,
  shape: body => body,
  toUpstream: () => '/',
  toHeaders: () => ({}),
  upstream: {} as Part['upstream']
})
const parts = (into: readonly string[] = []) => ({ parts: [], into, missing: 'missing' })

t.test('merging changes nothing that it is given, and makes no prototype of a member', async t => {
  const name = fc.constantFrom('a', 'b', '__proto__', 'constructor', 'toString')
  const value = fc.jsonValue({ maxDepth: 3 })
  fc.assert(
    fc.property(
      value,
      fc.array(name, { maxLength: 2 }),
      fc.array(fc.tuple(fc.array(name, { maxLength: 3 }), value, fc.boolean()), { maxLength: 4 }),
      (own, into, given) => {
        const found = given.map(([place, each, isMissing], index) => ({
          part: part(String(index), place),
          value: frozen(each),
          isMissing
        }))
        let result: ReturnType<typeof merge>
        try {
          result = merge(frozen(own), parts(into), { results: found, onMissing: () => {} })
        } catch {
          return into.length === 0 && (Array.isArray(own) || typeof own !== 'object')
        }
        JSON.stringify(withMissing(result.value, parts(), result.missing))
        return (
          Object.getPrototypeOf(result.value) === Object.prototype &&
          found.every(
            ({ isMissing }, index) => !isMissing || result.missing.includes(String(index))
          )
        )
      }
    ),
    { numRuns: 1000 }
  )
  t.equal(({} as Record<string, unknown>)['a'], undefined)
})

t.test('parts that want the same way share what lies on it', async t => {
  const found = [['a', 'b'], ['a', 'c', 'd'], ['e']].map((into, index) => ({
    part: part(String(index), into),
    value: index,
    isMissing: false
  }))
  t.same(merge(frozen({ a: { z: 1 } }), parts(), { results: found, onMissing: () => {} }), {
    value: { a: { z: 1, b: 0, c: { d: 1 } }, e: 2 },
    missing: []
  })
})

t.test('what is missing is named in an object; anything else has no place for it', async t => {
  t.same(withMissing({ data: 1 }, parts(), ['x']), { data: 1, missing: ['x'] })
  t.same(withMissing([1], parts(), ['x']), [1])
  t.same(withMissing({ data: 1 }, parts(), []), { data: 1 })
})
