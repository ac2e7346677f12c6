import type { ErrorObject } from 'ajv/dist/2020.js'
import t from 'tap'
import { relevantErrors } from '../../src/json-schema/union-errors.ts'

const branches = [{ type: 'object' }, { type: 'array' }]

/** The errors of a union of an object and a list, and how often they are looked at. */
function countedErrors() {
  const count = { looks: 0 }
  const error = (instancePath: string, schemaPath: string, keyword: string) => ({
    keyword,
    schemaPath,
    schema: branches,
    params: {},
    get instancePath() {
      count.looks++
      return instancePath
    }
  })
  const ofUnion = (instancePath: string, union: string): ErrorObject[] => [
    error(instancePath, `${union}/0/type`, 'type'),
    error(instancePath, `${union}/1/type`, 'type'),
    error(instancePath, union, 'anyOf')
  ]
  return { count, ofUnion }
}

const places = {
  'rows of a list': (index: number) => `/rows/${index}/author`,
  'names of one object': () => '/rows'
}

for (const [name, placeOf] of Object.entries(places)) {
  t.test(`a failed union in ${name} costs the same for each`, t => {
    const looksAt = (length: number) => {
      const { count, ofUnion } = countedErrors()
      const errors = Array.from({ length }, (_, index) => ofUnion(placeOf(index), '#/anyOf')).flat()
      t.equal(new Set(relevantErrors(errors).map(({ keyword }) => keyword)).size, 1)
      return count.looks
    }
    const few = looksAt(100)
    const many = looksAt(400)
    t.ok(many <= few * 4.5, `${few} looks for 100, ${many} for 400`)
    t.end()
  })
}
