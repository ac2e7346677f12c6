import t from 'tap'
import { readOpenApi } from '../../../src/cli/init/openapi.ts'

const json = (schema: object) => ({
  responses: { 200: { content: { 'application/json': { schema } } } }
})
const reference = (name: string) => ({ $ref: `#/components/schemas/${name}` })

t.test(
  'a list is found up to three levels deep, also around schemas that refer to each other',
  t => {
    const around = (inner: object) => ({ properties: { inner } })
    const document = {
      paths: {
        '/deeper': { get: json(reference('Fourth')) },
        '/deep': { get: json(reference('Third')) },
        '/circle': { get: json(reference('Circle')) }
      },
      components: {
        schemas: {
          Circle: { properties: { self: reference('Circle'), other: reference('Third') } },
          Fourth: around(reference('Third')),
          Third: around(reference('Second')),
          Second: around(reference('First')),
          First: around({ type: 'array' })
        }
      }
    }
    const { routes } = readOpenApi(document, '')
    t.same(
      routes.map(({ path }) => path),
      ['/deep']
    )
    t.end()
  }
)

t.test('a schema is looked through once for all that refer to it', t => {
  const names = Array.from({ length: 30 }, (_, index) => `S${index}`)
  let reads = 0
  const all = Object.fromEntries(
    names.map(name => [
      name,
      { properties: Object.fromEntries(names.map(each => [each, reference(each)])) }
    ])
  )
  const schemas = new Proxy(all, {
    get: (target, name) => {
      reads++
      return target[String(name)]
    }
  })
  const paths = Object.fromEntries(names.map(name => [`/${name}`, { get: json(reference(name)) }]))
  t.same(readOpenApi({ paths, components: { schemas } }, '').routes, [])
  t.ok(reads < names.length ** 2 * 4, `${reads} schemas were looked up`)
  t.end()
})
