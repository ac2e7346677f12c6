import t from 'tap'
import { Generations } from '../../../src/process/reload/generations.ts'
import type { Generation } from '../../../src/process/server/generation.ts'

t.test('the number of a generation that failed is not used again', async t => {
  const generation = (number: number) =>
    ({ number, requests: () => 0, retire: async () => 0 }) as unknown as Generation
  let failing: 'create' | 'activate' | undefined
  const fail = (step: typeof failing) => {
    if (failing === step) throw new Error(`cannot ${step}`)
  }
  const generations = new Generations({
    first: generation(1),
    create: async number => {
      fail('create')
      return generation(number)
    },
    activate: () => fail('activate'),
    graceMs: 0,
    log: { warn: () => {}, error: () => {} }
  })
  const swap = async () => await generations.swap({} as never)
  await swap()
  t.equal(generations.current.number, 2)
  for (failing of ['create', 'activate'] as const) {
    await t.rejects(swap(), { message: `cannot ${failing}` })
    t.equal(generations.current.number, 2)
  }
  failing = undefined
  await swap()
  t.equal(generations.current.number, 5)
})
