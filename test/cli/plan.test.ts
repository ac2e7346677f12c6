/** The changes and risks of plan.yaml; how `plan` is asked stands in config.transcript.yaml. */
import t from 'tap'
import type { Plan } from '../../src/config/risks.ts'
import { run } from '../support/command.ts'
import {
  asExpected,
  type Case,
  casesIn,
  environmentOf,
  having,
  textsOf
} from '../support/config-cases.ts'
import { textFolder } from '../support/config-files.ts'

interface Rule extends Case {
  readonly about?: 'risks'
  readonly at?: string
  readonly rows: ReadonlyArray<readonly [before: object, after: object, ...said: string[]]>
}

for (const { title, about, at, rows, ...rule } of casesIn<Rule>('test/cli/plan.yaml')) {
  t.test(title, async t => {
    const base = { route: {}, ...rule }
    for (const [before, after, ...expected] of rows) {
      const [old = '', next = ''] = [before, after].map(value =>
        textFolder(t.after, textsOf(having(base, at, value)))
      )
      const env = environmentOf(rule)
      const { out, err } = await run(['plan', next, '-c', old, '--json'], { env })
      t.equal(err, '')
      const { changes, risks } = JSON.parse(out) as Plan
      t.ok(changes.every(({ path, text }) => text.startsWith(path)))
      const texts = changes.map(
        ({ file, text, restart }) => `${file} ${text}${restart ? ' (after a restart)' : ''}`
      )
      const said = about === 'risks' ? risks : texts
      const found = said.map((text, index) => asExpected(text, expected[index]))
      t.same(found, expected, JSON.stringify([before, after]))
      t.notMatch(out, /o{10}|n{10}/)
    }
  })
}
