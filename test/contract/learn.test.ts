import fc from 'fast-check'
import t from 'tap'
import { compileContract } from '../../src/contract/check.ts'
import { schemaProblem } from '../../src/contract/schema.ts'
import { parseKeepingDigits } from '../../src/json/digits.ts'
import { learnSchema, longNumbers } from '../../src/contract/learn.ts'
import { seed } from '../support/seed.ts'

const at = '2026-11-21T05:30:00Z'
const number = { type: 'number' }
const string = { type: 'string' }

const learned: ReadonlyArray<readonly [answers: unknown[], schema: object]> = [
  // What is in every answer is required, what varies is a union, what is null at times may be.
  [
    [
      { id: 'a', n: 1, note: null },
      { id: 'b', n: 'x', note: 'y', more: true }
    ],
    {
      type: 'object',
      required: ['id', 'n', 'note'],
      properties: {
        id: string,
        n: { type: ['number', 'string'] },
        note: { type: ['null', 'string'] },
        more: { type: 'boolean' }
      }
    }
  ],
  [[null], { type: 'null' }],
  [
    [{ a: 1 }, 'x', null],
    { type: ['object', 'string', 'null'], required: ['a'], properties: { a: number } }
  ],
  // The items of all lists at a place are one kind of thing.
  [
    [[{ id: 1 }, { id: 2, tag: 'x' }], []],
    {
      type: 'array',
      items: { type: 'object', required: ['id'], properties: { id: number, tag: string } }
    }
  ],
  [[[], []], { type: 'array' }],
  // A format is learned only where every text has it.
  [[at, null, '2026-11-21T05:30:00.000+08:00'], { type: ['string', 'null'], format: 'date-time' }],
  [['2026-11-21'], { type: 'string', format: 'date' }],
  [['3f2c8a7e-0b1d-4c5e-9f60-1a2b3c4d5e6f'], { type: 'string', format: 'uuid' }],
  [[at, ''], string],
  [[at, '2026-11-21'], string],
  // A console would read other numbers than those of more digits than JavaScript holds.
  [
    [1234567890123456789n, null].map(n => parseKeepingDigits(String(n))),
    { type: ['number', 'null'], description: longNumbers }
  ],
  [[9007199254740991], number],
  // Names that are data are not learned by name.
  [
    [{ 17: { n: 1 }, 18: { n: 2, tag: 'x' } }, { 19: { n: null } }],
    {
      type: 'object',
      additionalProperties: {
        type: 'object',
        required: ['n'],
        properties: { n: { type: ['number', 'null'] }, tag: string }
      }
    }
  ]
]

t.test('a schema is learned of answers', t => {
  for (const [answers, schema] of learned) t.strictSame(learnSchema(answers), schema)
  t.end()
})

t.test('members may be called like what objects are born with', t => {
  for (const name of ['toString', 'constructor', 'hasOwnProperty', '__proto__']) {
    const answers = [{}, JSON.parse(`{"${name}": false}`)] as unknown[]
    const { deviations } = compileContract(learnSchema(answers))
    t.same(answers.flatMap(deviations), [], name)
  }
  t.end()
})

t.test('what was learned from answers holds for them, whatever they are', t => {
  const some = fc.array(fc.jsonValue({ maxDepth: 4 }), { minLength: 1, maxLength: 5 })
  fc.assert(
    fc.property(some, answers => {
      // As they are parsed.
      const given = JSON.parse(JSON.stringify(answers)) as unknown[]
      const schema = learnSchema(given)
      const { deviations, refusal } = compileContract(schema)
      return (
        schemaProblem(schema) === undefined &&
        given.every(answer => refusal(answer) === undefined && deviations(answer).length === 0)
      )
    }),
    { numRuns: 60, seed }
  )
  t.end()
})
