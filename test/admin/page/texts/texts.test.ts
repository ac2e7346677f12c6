/** The words of the ops page stand in its tables. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { texts, type Texts } from '../../../../src/admin/page/texts/texts.ts'

const all: Texts = texts
t.test('no text is left over', t => {
  const folder = 'src/admin/page'
  const code = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('.ts') && !name.startsWith('texts'))
    .map(name => readFileSync(join(folder, name), 'utf8'))
    .join('\n')
  // Keys made of a prefix and a word of the gateway, such as `state.up`.
  const prefixes = [...code.matchAll(/(?:t\(\s*`|word\(')(\w+)[.']/g)].map(([, prefix]) => prefix)
  const unused = Object.keys(all).filter(
    key => !code.includes(`'${key}'`) && !prefixes.includes(key.split('.')[0])
  )
  t.same(unused, [])
  t.end()
})
