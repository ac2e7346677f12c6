/** Every console with every back-end and every way to sign in, and with the preset of every other console. */
import t from 'tap'
import { backends } from '../matrix/backend-families.ts'
import { consoles } from '../matrix/consoles.ts'
import { elsewhereNames } from '../matrix/elsewhere.ts'
import { tryPairs } from '../matrix/pairs.ts'

// Without tap's runner, a file has 30 seconds.
t.setTimeout(600_000)

const ways = ['back-end', ...elsewhereNames] as const
const rows = await tryPairs({ ways: () => ways, wrongPresets: others => others })

void t.test('the matrix', t => {
  t.equal(
    rows.filter(row => row.includes('×')).length,
    consoles.length * backends.length * ways.length
  )
  for (const row of rows) t.comment(row)
  t.end()
})

t.end()
