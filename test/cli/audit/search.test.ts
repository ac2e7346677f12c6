import t from 'tap'
import { filterOf } from '../../../src/cli/audit/search.ts'

t.test('a time is one of the calendar, with its zone', async t => {
  for (const name of ['since', 'until'] as const) {
    const timeOf = (text: string) => filterOf({ [name]: text })[name]
    t.equal(timeOf('2026-02-28T06:00Z'), Date.UTC(2026, 1, 28, 6))
    t.equal(timeOf('2028-02-29T06:00+08:00'), Date.UTC(2028, 1, 28, 22))
    for (const text of ['2026-02-30T06:00Z', '2026-04-31T00:00:00+08:00', '2026-02-28', '12']) {
      t.throws(() => timeOf(text), { message: `--${name} is a time such as` }, text)
    }
  }
})
