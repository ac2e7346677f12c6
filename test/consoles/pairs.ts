/** Consoles with back-ends by nothing but presets and an operator’s lines, and wrong presets. */
import t from 'tap'
import { presetsOfKind } from '../../src/config/schema/presets.ts'
import { backends } from './backends.ts'
import { drf } from './backends/drf.ts'
import { consoles } from './consoles.ts'
import { type Elsewhere, startElsewhere } from './elsewhere.ts'
import { startPair } from './pair.ts'
import { useConsole } from './use.ts'

const maxLines = 15

type Way = 'back-end' | Elsewhere['name']

/** What is tried, by the places of console and back-end in their lists. */
interface Chosen {
  /** Of users of the pair to sign in. */
  readonly ways: (console: number, backend: number) => readonly Way[]
  /** Of the presets that are not the console's own. */
  readonly wrongPresets: (others: readonly string[], console: number) => readonly string[]
}

/** @returns the way of each pair that works, and the wrong presets, once the tests have run */
export async function tryPairs({ ways, wrongPresets }: Chosen): Promise<readonly string[]> {
  const tried: string[] = []
  const presets = presetsOfKind('console')
  t.same(consoles.map(({ name }) => name).sort(), [...presets].sort(), 'all presets of consoles')
  t.same(backends.map(({ name }) => name).sort(), [...presetsOfKind('backend')].sort())
  const places = await startElsewhere(t.after)

  const pairs = consoles.flatMap((console, at) =>
    backends.flatMap((family, index) => ways(at, index).map(way => ({ console, family, way })))
  )
  for (const { console, family, way } of pairs) {
    void t.test(`${console.name} × ${family.name}, sign-in by ${way}`, async t => {
      const elsewhere = places.find(({ name }) => name === way)
      const { backend, page, lines, expected } = await startPair(t.after, console, family, {
        elsewhere
      })
      t.same(await useConsole({ spec: console, page, expected }, 'end'), [])
      t.ok(lines <= maxLines, `${lines} lines of config`)
      const lists = backend.calls.filter(({ path }) => path === family.list.path)
      // After the end of the session at the back-end its user is not known there.
      const strangers = lists.filter(({ isUser }) => !isUser)
      t.ok(strangers.length <= (elsewhere === undefined ? 2 : 0) && lists.length > 4)
      tried.push(way)
    })
  }

  for (const [at, console] of consoles.entries()) {
    for (const preset of wrongPresets(
      presets.filter(name => name !== console.name),
      at
    )) {
      void t.test(`${console.name} with the preset of ${preset}`, async t => {
        const wrong = { ...console, name: preset }
        const { page, expected } = await startPair(t.after, wrong, drf)
        const [problem] = await useConsole({ spec: console, page, expected }, 'first problem')
        t.ok(problem, 'it must not work')
        t.comment(`refused as it should: ${problem?.step}`)
        tried.push('wrong preset')
      })
    }
  }
  return tried
}
