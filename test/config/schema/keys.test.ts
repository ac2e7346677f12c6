/** Every key that presets and the demo ever set stands somewhere, or something else holds. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'

interface Table {
  readonly same: readonly string[]
  readonly sources: readonly string[]
  readonly moved: Readonly<Record<string, string>>
  readonly cut: Readonly<Record<string, string>>
}

const table = parse(readFileSync(join(import.meta.dirname, 'keys.yaml'), 'utf8')) as Table
const reference = readFileSync('docs/configuration.md', 'utf8')
const isKey = (key: string) => reference.includes(`| \`${key}\` |`)

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
