/** Every console with every back-end, and with the preset of every other console. */
import t from 'tap'
import { backends } from '../matrix/backend-families.ts'
import { consoles } from '../matrix/consoles.ts'
import { tryPairs } from '../matrix/pairs.ts'

const rows = tryPairs({ pair: () => true, wrongPresets: others => others })

void t.test('the matrix', t => {
  t.equal(rows.filter(row => row.includes('×')).length, consoles.length * backends.length)
  for (const row of rows) t.comment(row)
  t.end()
})
