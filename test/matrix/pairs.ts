/**
 * Consoles with back-ends: a gateway of its own for each pair, with nothing but the two presets and
 * the lines that an operator writes. Then consoles with the preset of another one, which must not work.
 */
import t from 'tap'
import { presetsOfKind } from '../../src/config/schema/presets.ts'
import { backends } from './backend-families.ts'
import { consoles } from './consoles.ts'
import { type Elsewhere, startElsewhere } from './elsewhere.ts'
import { startPair } from './pair.ts'
import { useConsole } from './use-console.ts'

const maxLines = 15

const [consolePresets, backendPresets] = [presetsOfKind('console'), presetsOfKind('backend')]
const described = consoles.filter(({ name }) => consolePresets.includes(name))
const families = backends.filter(({ name }) => backendPresets.includes(name))

type Way = 'back-end' | Elsewhere['name']

/** What is tried, by the places of console and back-end in their lists. */
interface Chosen {
  /** Of users of the pair to sign in. */
  readonly ways: (console: number, backend: number) => readonly Way[]
  /** Of the presets that are not the console's own. */
  readonly wrongPresets: (others: readonly string[], console: number) => readonly string[]
}

/** @returns the rows of the matrix, which are there once the tests have run */
export async function tryPairs({ ways, wrongPresets }: Chosen): Promise<readonly string[]> {
  const rows: string[] = []
  const places = await startElsewhere(t.after)

  const combinations = described.flatMap((console, at) =>
    families.flatMap((family, index) => ways(at, index).map(way => ({ console, family, way })))
  )
  for (const { console, family, way } of combinations) {
    void t.test(`${console.name} × ${family.name}, sign-in by ${way}`, async t => {
      const elsewhere = places.find(({ name }) => name === way)
      const options = { elsewhere }
      const { backend, page, lines, expected } = await startPair(t.after, console, family, options)
      const problems = await useConsole(console, page, expected, 'end')
      t.same(problems, [])
      t.ok(lines <= maxLines, `${lines} lines of config`)
      const lists = backend.calls.filter(({ path }) => path === family.list.path)
      t.ok(lists.length > 0 && lists.every(({ user }) => user?.name === expected.name))
      const state = problems.length === 0 ? 'works' : problems.map(({ step }) => step).join(', ')
      const name = `${console.name.padEnd(18)} × ${family.name.padEnd(14)}`
      rows.push(`${name} ${way.padEnd(8)} ${String(lines).padStart(2)} lines  ${state}`)
    })
  }

  for (const [at, console] of consoles.entries()) {
    const others = consolePresets.filter(name => name !== console.name)
    for (const preset of wrongPresets(others, at)) {
      const family = families.find(({ name }) => name === 'drf')
      if (family === undefined) continue
      void t.test(`${console.name} with the preset of ${preset}`, async t => {
        const { page, expected } = await startPair(t.after, { ...console, name: preset }, family)
        const [problem] = await useConsole(console, page, expected, 'first problem')
        t.ok(problem, 'it must not work')
        const how = `preset ${preset.padEnd(18)} refused as it should: ${problem?.step}`
        rows.push(`${console.name.padEnd(18)} ${how}`)
      })
    }
  }
  return rows
}
