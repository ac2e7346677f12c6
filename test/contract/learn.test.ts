import fc from 'fast-check'
import t from 'tap'
import { compileContract } from '../../src/contract/check.ts'
import { schemaProblem } from '../../src/contract/schema.ts'
import { parseKeepingDigits } from '../../src/json/digits.ts'
import { learnSchema, longNumbers } from '../../src/contract/learn.ts'
import { seed } from '../support/seed.ts'

t.test(
  'what is in every answer is required, what varies is a union, what is null at times may be null',
  t => {
    t.same(
      learnSchema([
        { id: 'a', n: 1, note: null },
        { id: 'b', n: 'x', note: 'y', more: true }
      ]),
      {
        type: 'object',
        required: ['id', 'n', 'note'],
        properties: {
          id: { type: 'string' },
          n: { type: ['number', 'string'] },
          note: { type: ['null', 'string'] },
          more: { type: 'boolean' }
        }
      }
    )
    t.same(learnSchema([null]), { type: 'null' })
    t.same(learnSchema([{ a: 1 }, null]), {
      type: ['object', 'null'],
      required: ['a'],
      properties: { a: { type: 'number' } }
    })
    t.same(learnSchema([{ a: 1 }, 'x', null]), {
      type: ['object', 'string', 'null'],
      required: ['a'],
      properties: { a: { type: 'number' } }
    })
    t.end()
  }
)

t.test('the items of all lists at a place are one kind of thing', t => {
  t.same(learnSchema([[{ id: 1 }, { id: 2, tag: 'x' }], []]), {
    type: 'array',
    items: {
      type: 'object',
      required: ['id'],
      properties: { id: { type: 'number' }, tag: { type: 'string' } }
    }
  })
  t.same(learnSchema([[], []]), { type: 'array' })
  t.end()
})

t.test('a format is learned only where every text has it', t => {
  const when = (...texts: unknown[]) => learnSchema(texts)['format']
  t.equal(when('2026-11-21T05:30:00Z', null, '2026-11-21T05:30:00.000+08:00'), 'date-time')
  t.equal(when('2026-11-21'), 'date')
  t.equal(when('3f2c8a7e-0b1d-4c5e-9f60-1a2b3c4d5e6f'), 'uuid')
  t.equal(when('2026-11-21T05:30:00Z', ''), undefined)
  t.equal(when('2026-11-21T05:30:00Z', '2026-11-21'), undefined)
  t.end()
})

t.test('names that are data are not learned by name', t => {
  t.same(learnSchema([{ 17: { n: 1 }, 18: { n: 2, tag: 'x' } }, { 19: { n: null } }]), {
    type: 'object',
    additionalProperties: {
      type: 'object',
      required: ['n'],
      properties: { n: { type: ['number', 'null'] }, tag: { type: 'string' } }
    }
  })
  t.end()
})

t.test('members may be called like what objects are born with', t => {
  for (const name of ['toString', 'constructor', 'valueOf', 'hasOwnProperty', '__proto__']) {
    const given = [{}, JSON.parse(`{"${name}": false}`)] as unknown[]
    const { deviations, refusal } = compileContract(learnSchema(given))
    for (const answer of given) {
      t.same([refusal(answer), deviations(answer)], [undefined, []], JSON.stringify(answer))
    }
    // Ajv passes over the type of this name.
    if (name === '__proto__') continue
    t.match(refusal(JSON.parse(`{"${name}": "x"}`)), { kind: 'retyped' }, name)
  }
  t.end()
})

t.test('numbers of more digits than JavaScript holds are pointed out', t => {
  const answer = (id: string) => parseKeepingDigits(`{"list":[{"id":${id},"n":1}]}`)
  t.match(learnSchema([answer('1234567890123456789'), answer('null')]), {
    properties: {
      list: {
        items: {
          properties: {
            id: { type: ['number', 'null'], description: longNumbers },
            n: { description: undefined }
          }
        }
      }
    }
  })
  t.notMatch(JSON.stringify(learnSchema([answer('9007199254740991')])), longNumbers)
  t.end()
})

t.test('what was learned from answers holds for them, whatever they are', t => {
  fc.assert(
    fc.property(
      fc.array(fc.jsonValue({ maxDepth: 4 }), { minLength: 1, maxLength: 5 }),
      answers => {
        // As they are parsed.
        const given = JSON.parse(JSON.stringify(answers)) as unknown[]
        const schema = learnSchema(given)
        if (schemaProblem(schema) !== undefined) return false
        const { deviations, refusal } = compileContract(schema)
        return given.every(
          answer => refusal(answer) === undefined && deviations(answer).length === 0
        )
      }
    ),
    { numRuns: 60, seed }
  )
  t.end()
})
