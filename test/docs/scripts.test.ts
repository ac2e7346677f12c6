/** The scripts of package.json run in cmd.exe and in each shell of macOS and Linux. */
import { readFileSync } from 'node:fs'
import t from 'tap'

const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as {
  readonly scripts: Readonly<Record<string, string>>
}

/** What cmd.exe has not: `exec`, variables before a command, single quotes, `;`, `$NAME` and `$(…)`. */
const onlyInShells = /(?:^|[\s&|])exec\s|(?:^|[\s&|])[A-Za-z_]\w*=|['`;$]/

t.test('no script needs a POSIX shell', async t => {
  for (const script of ['exec node x', 'A=1 node x', "node x && tap 'a'", 'node x; node y']) {
    t.match(script, onlyInShells)
  }
  t.notMatch('node --max-semi-space-size=8 src/launch.js start', onlyInShells)
  const found = Object.entries(scripts).filter(([, script]) => onlyInShells.test(script))
  t.same(found, [])
})
