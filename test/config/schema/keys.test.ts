/** Every key that presets and the demo ever set stands somewhere, or something else holds. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { fileSchemas } from '../../../src/config/schema/for-editors.ts'
import type { Node } from '../../../src/config/schema/node.ts'

interface Table {
  readonly same: readonly string[]
  readonly sources: readonly string[]
  readonly moved: Readonly<Record<string, string>>
  readonly cut: Readonly<Record<string, string>>
}

const table = parse(readFileSync(join(import.meta.dirname, 'keys.yaml'), 'utf8')) as Table
/** `NAME` stands for any name, `[]` for the items of a list. */
function schemasAt(schemas: readonly Node[], steps: readonly string[]): readonly Node[] {
  const [step, ...rest] = steps
  if (step === undefined) return schemas
  const inner = schemas
    .flatMap(schema => [schema, ...(schema.anyOf ?? [])])
    .flatMap(({ properties = {}, patternProperties = {}, items }) => {
      if (step === '[]') return items ?? []
      if (step === 'NAME') return Object.values(patternProperties)
      return Object.hasOwn(properties, step) ? (properties[step] ?? []) : []
    })
  return schemasAt(inner, rest)
}

const isKey = (key: string) =>
  schemasAt(
    fileSchemas.map(([, schema]) => schema),
    key.replaceAll('[]', '.[]').split('.')
  ).length > 0

t.test('each key of the first presets and of the demo is a key, has moved, or is not needed', t => {
  const { same, sources, moved, cut } = table
  const places = [
    ...same,
    ...sources.map(name => `login.sources.NAME.${name}`),
    ...Object.values(moved)
  ]
  for (const key of places) t.ok(isKey(key), key)
  for (const key of [...Object.keys(moved), ...Object.keys(cut)]) t.notOk(isKey(key), key)
  t.equal(places.length + Object.keys(cut).length, 223)
  t.end()
})
