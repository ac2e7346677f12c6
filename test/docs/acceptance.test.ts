/** Which test files are run: those of acceptance.txt, and every other one that git knows. */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'

const lines = (text: string) => text.split('\n').filter(line => line !== '')
const read = (file: string) => readFileSync(file, 'utf8')
const output = (command: string, args: readonly string[]) =>
  lines(execFileSync(command, args, { encoding: 'utf8' }))

const run = new Set([
  ...output(process.execPath, ['node_modules/tap/dist/esm/run.mjs', 'list']),
  ...output(process.execPath, ['test/long/run.ts', '--list'])
])

/** A suite runs where a test that runs imports it. */
const imported = new Set(
  [...run].filter(existsSync).flatMap(file => {
    const imports = read(file).matchAll(/ from '(\.[^']+)'/gu)
    return Array.from(imports, ([, path = '']) => join(dirname(file), path))
  })
)

t.test('each file of acceptance.txt is there, and runs', async t => {
  const listed = lines(read('test/acceptance.txt')).filter(line => !line.startsWith('#'))
  t.ok(listed.length > 0)
  const found = {
    missing: listed.filter(file => !existsSync(file)),
    notRun: listed.filter(file => !run.has(file) && !imported.has(file)),
    twice: listed.filter((file, index) => listed.indexOf(file) !== index)
  }
  t.same(found, { missing: [], notRun: [], twice: [] })
})

t.test('each test file is run by `npm test` or `npm run test:long`', async t => {
  // New ones, too.
  const words = ['ls-files', '--cached', '--others', '--exclude-standard', 'test']
  const known = output('git', words).filter(file => existsSync(file))
  const tests = known.filter(file => /\.(?:test|chaos)\.ts$/u.test(file))
  t.ok(tests.length > 0)
  const notRun = tests.filter(file => !run.has(file))
  t.same(notRun, [])
})

/** What cmd.exe has not: `exec`, variables before a command, single quotes, `;`, `$NAME` and `$(…)`. */
const onlyInShells = /(?:^|[\s&|])exec\s|(?:^|[\s&|])[A-Za-z_]\w*=|['`;$]/

t.test('no script of package.json needs a POSIX shell', async t => {
  for (const script of ['exec node x', 'A=1 node x', "node x && tap 'a'", 'node x; node y']) {
    t.match(script, onlyInShells)
  }
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }
  const found = Object.values(scripts).filter(script => onlyInShells.test(script))
  t.same(found, [])
})
