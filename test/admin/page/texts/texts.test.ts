/** Both languages of the ops page say the same. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { texts, type Texts } from '../../../../src/admin/page/texts/texts.ts'

const all: Texts = texts
const placeholders = (text: string) =>
  [...text.matchAll(/\{(\w+)/g)].map(([, name]) => name).toSorted()

t.test('each text stands in both languages, with the same placeholders', t => {
  for (const [key, [english, chinese]] of Object.entries(all)) {
    t.ok(english.trim() !== '' && chinese.trim() !== '', key)
    t.same(placeholders(chinese), placeholders(english), key)
    t.notMatch(english, /[\u4e00-\u9fff]/, key)
    // Names such as Redis stay; sentences do not.
    if (/ \w+ \w+/.test(english)) t.match(chinese, /[\u4e00-\u9fff]/, key)
  }
  t.end()
})

t.test('no text is left over, and the sources hold no words of their own', t => {
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
  t.notMatch(code, /[\u4e00-\u9fff]{2,}(?<!中文)/, 'Chinese outside of the tables')
  t.end()
})
