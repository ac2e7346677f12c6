import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import { compileSchema } from '../../src/json-schema/compile.ts'
import { createContract } from '../../src/contract/contract.ts'
import { createDrift } from '../../src/contract/drift.ts'
import { Metrics } from '../../src/observability/metrics.ts'

const schema = compileSchema({
  type: 'object',
  required: ['id'],
  properties: { id: { type: 'string' } }
})

const watching = () => {
  const lines: string[] = []
  const metrics = new Metrics()
  const line = (fields: object) => {
    lines.push(Object.values(fields).join(' '))
  }
  const drift = createDrift({ log: { warn: line, info: line }, metrics })
  /** Each series as its labels' values and its count. */
  const counted = async () =>
    (await metrics.text()).body.split('\n').flatMap(text => {
      const [, labels = '', count] = /^console_gateway_contract_\w+\{(.*)\} (\d+)$/.exec(text) ?? []
      return count === undefined
        ? []
        : [`${[...labels.matchAll(/"([^"]*)"/g)].map(([, value]) => value).join(' ')}: ${count}`]
    })
  /** One at a time, each looked at before the next. */
  const see = async (answer: unknown, times = 1, compiled = schema) => {
    for (let index = 0; index < times; index++) {
      drift.look('r', compiled, () => answer)
      await turn()
    }
  }
  return { drift, see, lines, counted, metrics }
}

t.test(
  'what differs is counted in each answer, and logged when it begins and when it is over',
  async t => {
    const { see, lines, counted } = watching()
    await see({ id: 'a' })
    await see({ id: 1, fresh: 'secret' }, 3)
    t.same(lines, ['contract.drift r retyped id', 'contract.drift r new fresh'])
    t.same(await counted(), ['r kept: 1', 'r drifted: 3', 'r id retyped: 3', 'r fresh new: 3'])
    await see({ id: 'a', fresh: 'secret' }, 9)
    t.equal(lines.length, 2, 'nine good answers may be luck')
    await see({ id: 'a', fresh: 'secret' })
    t.same(lines.slice(2), ['contract.kept r id retyped'])
    await see({ id: 1 })
    t.same(lines.slice(3), ['contract.drift r retyped id'], 'it begins anew')
  }
)

t.test(
  'an answer is looked at after the request, one in each turn, and what too many wait for is dropped and counted',
  async t => {
    const { drift, lines, counted } = watching()
    for (let index = 0; index < 20; index++) {
      drift.look('r', schema, () => ({ id: 'a', [`n${index}`]: 1 }))
    }
    t.same(lines, [], 'the request is answered first')
    await turn()
    t.same(lines, ['contract.drift r new n0'])
    for (let index = 0; index < 20; index++) await turn()
    const begun = () => lines.filter(line => line.startsWith('contract.drift'))
    t.equal(begun().length, 16)
    t.ok((await counted()).includes('r dropped: 4'))
    drift.look('r', schema, () => ({}))
    await turn()
    t.equal(begun().at(-1), 'contract.drift r missing id', 'there is room again')
  }
)

t.test('of a long list whose items all deviate, only a sample is looked at', t => {
  const rows = compileSchema({ type: 'array', items: { properties: { a: { type: 'string' } } } })
  const items = Array.from({ length: 5000 }, (_, index) => ({
    a: 1,
    ...(index === 4000 && { b: 1 })
  }))
  t.same(rows.sampledDeviations(items), [{ kind: 'retyped', path: '[].a' }])
  t.end()
})

t.test('a back-end that makes up names fills neither log nor metrics', async t => {
  const { see, lines, counted } = watching()
  for (let index = 0; index < 80; index++) await see({ id: 'a', [`n${index}`]: 1 })
  t.equal(lines.filter(line => line.startsWith('contract.drift')).length, 51)
  t.ok((await counted()).includes('r other new: 30'))
})

t.test('a new schema begins anew', async t => {
  const { see, lines } = watching()
  await see({}, 2)
  await see({}, 2, compileSchema({ type: 'object', required: ['id'] }))
  t.same(lines, ['contract.drift r missing id', 'contract.drift r missing id'])
})

t.test(
  'a tenth is every tenth, beginning with the first; strict refuses each, and no new member',
  t => {
    const looked: unknown[] = []
    const broken: unknown[] = []
    const drift = {
      look: (_route: string, _schema: unknown, read: () => unknown) => {
        looked.push(read())
      },
      broken: (route: string, _schema: unknown, deviation: object) => {
        broken.push({ route, ...deviation })
      }
    }
    const json = { type: 'object', properties: { id: { type: 'string' } } }
    const make = (mode: 'observe' | 'strict', sample: number) =>
      createContract({
        route: 'r',
        schema: json,
        mode,
        sample,
        dataName: 'data',
        drift
      })
    const tenth = make('observe', 0.1)
    for (let index = 0; index < 30; index++) tenth(() => ({ data: index }))
    t.same(looked, [0, 10, 20])
    const never = make('observe', 0)
    never(() => ({ data: 1 }))
    const always = make('observe', 1)
    for (const data of [{ id: 1 }, 2, 3]) always(() => ({ data }))
    t.same(looked.slice(3), [{ id: 1 }, 2, 3])
    const strict = make('strict', 0)
    strict(() => ({ data: { id: 'a', fresh: 1 } }))
    t.throws(() => strict(() => ({ data: { id: 7 } })), {
      code: 'contract.broken',
      status: 502,
      cause: { message: 'retyped: id' }
    })
    t.same(broken, [{ route: 'r', kind: 'retyped', path: 'id' }])
    t.end()
  }
)
