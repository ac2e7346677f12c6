/**
 * Every console with every back-end: a gateway of its own for each pair, with nothing but the two
 * presets and the lines that an operator writes. Then every console with the preset of every other
 * one, which must not work.
 */
import t from 'tap'
import { presetsOfKind } from '../../src/config/schema/presets.ts'
import { backends } from './backend-families.ts'
import { consoles } from './consoles.ts'
import { startPair } from './pair.ts'
import { useConsole } from './use-console.ts'

const maxLines = 15

const [consolePresets, backendPresets] = [presetsOfKind('console'), presetsOfKind('backend')]
const described = consoles.filter(({ name }) => consolePresets.includes(name))
const families = backends.filter(({ name }) => backendPresets.includes(name))

const rows: string[] = []

for (const console of described) {
  for (const family of families) {
    void t.test(`${console.name} × ${family.name}`, async t => {
      const { page, lines, expected } = await startPair(t.after, console, family)
      const problems = await useConsole(console, page, expected, 'end')
      t.same(problems, [])
      t.ok(lines <= maxLines, `${lines} lines of config`)
      const state = problems.length === 0 ? 'works' : problems.map(({ step }) => step).join(', ')
      const pair = `${console.name.padEnd(18)} × ${family.name.padEnd(14)}`
      rows.push(`${pair} ${String(lines).padStart(2)} lines  ${state}`)
    })
  }
}

/** Consoles that work with the preset of another one, and why their sources say so. */
const alsoFits: Readonly<Record<string, string>> = {}

for (const console of consoles) {
  for (const preset of consolePresets.filter(name => name !== console.name)) {
    const family = families.find(({ name }) => name === 'drf')
    if (family === undefined) continue
    void t.test(`${console.name} with the preset of ${preset}`, async t => {
      const { page, expected } = await startPair(t.after, { ...console, name: preset }, family)
      const [problem] = await useConsole(console, page, expected, 'first problem')
      const reason = alsoFits[`${console.name} with ${preset}`]
      t.equal(problem === undefined, reason !== undefined, problem?.text ?? reason ?? 'it works')
      const how =
        problem === undefined ? `fits: ${reason}` : `refused as it should: ${problem.step}`
      rows.push(`${console.name.padEnd(18)} preset ${preset.padEnd(18)} ${how}`)
    })
  }
}

void t.test('the matrix', t => {
  t.equal(rows.filter(row => row.includes('×')).length, consoles.length * backends.length)
  for (const row of rows) t.comment(row)
  t.end()
})
