/**
 * A third of the pairs of consoles and back-ends, each of them at least twice, eight with a sign-in
 * elsewhere, and a wrong preset for each console. All: test/long/matrix.test.ts.
 */
import t from 'tap'
import { backends } from './backend-families.ts'
import { consoles } from './consoles.ts'
import { elsewhereNames } from './elsewhere.ts'
import { tryPairs } from './pairs.ts'

const rows = await tryPairs({
  ways: (console, backend) => [
    ...((console + backend) % 3 === 0 ? (['back-end'] as const) : []),
    ...elsewhereNames.filter((_, at) => console - backend === 4 && at === backend % 3)
  ],
  wrongPresets: (others, console) => others.slice(console % others.length).slice(0, 1)
})

void t.test('each console and each back-end works at least twice', t => {
  for (const { name } of consoles) {
    const works = rows.filter(row => row.startsWith(`${name} `) && row.includes('×'))
    t.ok(works.length > 1, name)
    t.ok(
      rows.some(row => row.startsWith(`${name} `) && row.includes(' preset ')),
      `${name}: a wrong preset`
    )
  }
  for (const { name } of backends) {
    const works = rows.filter(row => row.includes(`× ${name} `))
    t.ok(works.length > 1, name)
    t.equal(works.filter(row => elsewhereNames.some(way => row.includes(` ${way} `))).length, 1)
  }
  t.end()
})

t.end()
