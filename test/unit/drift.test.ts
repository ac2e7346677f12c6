import { setImmediate as turn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { Drift } from '../../src/contract/drift.ts'
import type { JsonSchema } from '../../src/contract/schema.ts'
import { Metrics } from '../../src/observability/metrics.ts'
import { stopClock } from '../support/clock.ts'

const schema = { type: 'object', required: ['id'], properties: { id: { type: 'string' } } }

const watching = (t: Test) => {
  const pass = stopClock(t.after)
  // A look takes no time, however busy the machine is: after a long one the next comes later.
  const ticks = performance.now.bind(performance)
  performance.now = () => 0
  t.after(() => {
    performance.now = ticks
  })
  const lines: string[] = []
  const metrics = new Metrics()
  const line = (fields: object) => {
    lines.push(Object.values(fields).join(' '))
  }
  const drift = new Drift({ log: { warn: line, info: line }, metrics })
  /** Each series as its labels' values and its count. */
  const counted = async () => {
    const { body } = await metrics.text()
    const series = body.matchAll(/^console_gateway_contract_\w+\{(.*)\} (\d+)$/gm)
    const valuesOf = (labels: string) => labels.replaceAll(/\w+="([^"]*)",?/g, '$1 ').trim()
    return Array.from(series, ([, labels = '', count]) => `${valuesOf(labels)}: ${count}`)
  }
  const contractOf = (json: JsonSchema = schema, mode: 'observe' | 'strict' = 'observe') =>
    drift.contract({ route: 'r', schema: json, mode, dataName: false })
  /** One at a time, each late enough to be looked at. */
  const see = async (answer: unknown, times = 1, contract = contractOf()) => {
    for (let index = 0; index < times; index++) {
      contract(() => answer)
      await turn()
      pass(1000)
    }
  }
  return { see, lines, counted, contractOf, pass }
}

t.test('what differs is counted each time, and logged when it begins and is over', async t => {
  const { see, lines, counted } = watching(t)
  await see({ id: 'a' })
  await see({ id: 1, fresh: 'secret' }, 3)
  t.same(lines, ['contract.drift r retyped id', 'contract.drift r new fresh'])
  t.same(await counted(), ['r kept: 1', 'r drifted: 3', 'r id retyped: 3', 'r fresh new: 3'])
  await see({ id: 'a', fresh: 'secret' }, 9)
  t.equal(lines.length, 2, 'nine good answers may be luck')
  await see({ id: 'a', fresh: 'secret' })
  t.same(lines.slice(2), ['contract.kept r retyped id'])
  await see({ id: 1 })
  t.same(lines.slice(3), ['contract.drift r retyped id'], 'it begins anew')
})

t.test('an answer is looked at after the request, and one a second at most', async t => {
  const { lines, contractOf, pass, see } = watching(t)
  const contract = contractOf()
  await see({ id: 'a' }, 1, contract)
  for (let index = 0; index < 20; index++) contract(() => ({ id: 'a', [`n${index}`]: 1 }))
  t.same(lines, [], 'the request is answered first')
  await turn()
  t.same(lines, ['contract.drift r new n0'])
  pass(999)
  contract(() => ({}))
  await turn()
  t.equal(lines.length, 1)
  pass(1)
  contract(() => ({}))
  await turn()
  t.equal(lines.at(-1), 'contract.drift r missing id')
})

t.test('what is nested over 200 levels deep, or cannot be read, deviates as a whole', async t => {
  const { see, lines, contractOf } = watching(t)
  const tree = { type: 'object', properties: { child: { $ref: '#' } } }
  let deep: unknown = {}
  for (let level = 0; level < 300; level++) deep = { child: deep }
  await see(deep, 1, contractOf(tree))
  t.same(lines, ['contract.drift r invalid (all)'])
  t.throws(() => contractOf(tree, 'strict')(() => deep), { code: 'contract.broken' })
  contractOf()(() => JSON.parse('{') as unknown)
  await turn()
  t.equal(lines.length, 2)
})

t.test('a back-end that makes up names fills neither log nor metrics', async t => {
  const { see, lines, counted } = watching(t)
  for (let index = 0; index < 80; index++) await see({ id: 'a', [`n${index}`]: 1 })
  t.equal(lines.filter(line => line.startsWith('contract.drift')).length, 51)
  t.ok((await counted()).includes('r other new: 30'))
})

t.test('case R5: a reload goes on with a schema that stays, and anew with another', async t => {
  const { see, lines, contractOf } = watching(t)
  await see({}, 2, contractOf())
  await see({}, 2, contractOf({ ...schema }))
  t.same(lines, ['contract.drift r missing id'])
  await see({}, 2, contractOf({ type: 'object', required: ['id'] }))
  t.same(lines.slice(1), ['contract.drift r missing id'])
})
