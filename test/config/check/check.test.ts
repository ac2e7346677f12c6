/** What `check` says of config files: the cases of the tables beside this file. */
import t, { type Test } from 'tap'
import { loadConfig } from '../../../src/config/read/load.ts'
import {
  asExpected,
  type Case,
  casesIn,
  environmentOf,
  having,
  textsOf
} from '../../support/config-cases.ts'
import { faultsOf, textFolder } from '../../support/config-files.ts'

/** What is added to the case, and what is said or loaded then. */
type Row = readonly [value: unknown, ...expected: Array<string | object>]

interface Rule extends Case {
  readonly faults?: readonly string[]
  /** The place of the first item of each row. */
  readonly at?: string
  readonly rows?: readonly Row[]
}

/** Each fault and warning; of files that are given as text the faults, with their lines. */
function said(t: Test, given: Case): string[] {
  const found = faultsOf(textFolder(t.after, textsOf(given)), environmentOf(given))
  return given.texts === undefined
    ? found.map(line => line.replace(/^(\w+\.yaml):\d+/, '$1'))
    : found.filter(line => !line.includes(': warning: '))
}

function tryRow(t: Test, rule: Rule, [value, ...expected]: Row): void {
  const given = having(rule, rule.at, value)
  const title = JSON.stringify(value)
  const [loaded] = expected
  if (typeof loaded === 'object') {
    t.match(loadConfig(textFolder(t.after, textsOf(given)), environmentOf(given)), loaded, title)
    return
  }
  const found = said(t, given).map((line, index) => asExpected(line, expected[index]))
  t.same(found, expected, title)
}

for (const rule of casesIn<Rule>('test/config/check/*.yaml')) {
  t.test(rule.title, async t => {
    const { faults = [], rows = [[{}, ...faults]] } = rule
    for (const row of rows) tryRow(t, rule, row)
  })
}

t.test('no config changes what objects are born with', async t => {
  t.same([Object.keys(Object.prototype), ({} as { polluted?: unknown }).polluted], [[], undefined])
})
