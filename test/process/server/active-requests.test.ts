/** Who is there at the moment. */
import t from 'tap'
import { createActiveRequests } from '../../../src/process/generation.ts'

t.test('who entered and has not left is there, in whatever order they leave', async t => {
  for (const order of [
    [0, 1, 2, 3],
    [3, 2, 1, 0],
    [1, 3, 0, 2],
    [2, 0, 3, 1]
  ]) {
    const requests = createActiveRequests<string>()
    const names = ['a', 'b', 'c', 'd']
    const leaves = names.map(name => requests.enter(name))
    const left = new Set(names)
    for (const index of order) {
      leaves[index]?.()
      left.delete(names[index] as string)
      t.equal(requests.size(), left.size)
      t.same(requests.list().toSorted(), [...left])
    }
    requests.enter('late')
    t.same(requests.list(), ['late'], 'a place that became free is taken again')
  }
})
