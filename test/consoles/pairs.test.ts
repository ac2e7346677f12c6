/** Each console with each back-end, some by other sign-ins. All: test/long/matrix.test.ts. */
import t from 'tap'
import { backends } from './backends.ts'
import { consoles } from './consoles.ts'
import { elsewhereNames } from './elsewhere.ts'
import { tryPairs } from './pairs.ts'

const tried = await tryPairs({
  ways: (console, backend) => [
    'back-end',
    ...(console === backend ? (['JWT'] as const) : []),
    ...elsewhereNames.filter((_, at) => console - backend === 4 && at === backend % 3)
  ],
  wrongPresets: (others, console) => others.slice(console % others.length).slice(0, 1)
})

void t.test('each console has been there with each back-end', t => {
  const countOf = (way: string) => tried.filter(each => each === way).length
  t.equal(countOf('back-end'), consoles.length * backends.length)
  t.equal(countOf('JWT'), backends.length)
  t.same(elsewhereNames.map(countOf), [3, 3, 2])
  t.equal(countOf('wrong preset'), consoles.length)
  t.end()
})

t.end()
