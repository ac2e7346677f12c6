import fc from 'fast-check'
import t from 'tap'
import { GatewayError } from '../../src/errors.ts'
import { merge, type PartRules, withMissing } from '../../src/proxy/merge-parts.ts'
import { gather, type Part } from '../../src/proxy/parts.ts'

const frozen = <T>(value: T): T => {
  if (typeof value === 'object' && value !== null) {
    for (const member of Object.values(Object.freeze(value))) frozen(member)
  }
  return value
}
const part = (name: string, into: readonly string[], isRequired = false): PartRules => ({
  name,
  into,
  isRequired,
  unwrap: [],
  fallback: undefined,
  maxBytes: 1,
  shape: body => body
})
const parts = (into: readonly string[] = []) => ({ into, missing: 'missing' })

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

const responding = (name: string, body: string, rules: Partial<Part> = {}): Part => ({
  ...part(name, [name]),
  timeoutMs: 1,
  maxBytes: 1000,
  toUpstream: () => '/',
  toHeaders: () => ({}),
  upstream: {
    config: {},
    fetchWhole: async () => ({ status: 200, headers: {}, body: Buffer.from(body) })
  } as unknown as Part['upstream'],
  ...rules
})

t.test('a part that fails is missing, and a required one fails the whole', async t => {
  const refuse = () => {
    throw new GatewayError('upstream.error', { status: 409 })
  }
  const run = async (all: readonly Part[]) => {
    const missing: string[] = []
    const { results } = await gather(
      { parts: all, into: [], missing: 'missing' },
      {
        target: '/',
        headers: {},
        caller: {} as Parameters<typeof gather>[1]['caller'],
        signal: new AbortController().signal,
        onMissing: ({ name }, { code }) => missing.push(`${name} ${code}`)
      }
    )
    const values = results.map(({ value, isMissing }) => [JSON.stringify(value), isMissing])
    return { values, missing: missing.toSorted() }
  }
  const found = await run([
    responding('a', '{"b":9007199254740993}', { unwrap: ['b'] }),
    responding('c', 'null', { fallback: 7 }),
    responding('d', '[', { fallback: 8 }),
    responding('e', '{}', { shape: refuse })
  ])
  t.same(found.values, [
    ['9007199254740993', false],
    ['7', false],
    ['8', true],
    [undefined, true]
  ])
  t.same(found.missing, ['d shape.not-json', 'e upstream.error'])
  await t.rejects(run([responding('f', '{}', { shape: refuse, isRequired: true })]), {
    code: 'upstream.error',
    status: 409,
    cause: { message: 'the part "f"' }
  })
})
