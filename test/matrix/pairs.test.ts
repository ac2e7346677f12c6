/** A third of the pairs of consoles and back-ends, each of them at least twice, and a wrong preset for each console. All: test/long/matrix.test.ts. */
import t from 'tap'
import { backends } from './backend-families.ts'
import { consoles } from './consoles.ts'
import { tryPairs } from './pairs.ts'

const rows = tryPairs({
  pair: (console, backend) => (console + backend) % 3 === 0,
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
    t.ok(rows.filter(row => row.includes(`× ${name} `)).length > 1, name)
  }
  t.end()
})
