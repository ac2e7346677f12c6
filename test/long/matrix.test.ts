/** Every console with every back-end and way to sign in, and with every other preset. */
import t from 'tap'
import { backends } from '../consoles/backends.ts'
import { consoles } from '../consoles/consoles.ts'
import { elsewhereNames } from '../consoles/elsewhere.ts'
import { tryPairs } from '../consoles/pairs.ts'

// Without tap's runner, a file has 30 seconds.
t.setTimeout(600_000)

const ways = ['back-end', ...elsewhereNames] as const
const tried = await tryPairs({ ways: () => ways, wrongPresets: others => others })

void t.test('every pair has been there', t => {
  const pairs = tried.filter(each => each !== 'wrong preset')
  t.equal(pairs.length, consoles.length * backends.length * ways.length)
  t.equal(tried.length - pairs.length, consoles.length * (consoles.length - 1))
  t.end()
})

t.end()
