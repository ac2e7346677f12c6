/** Who is there at the moment. */
import t from 'tap'
import { createActiveRequests } from '../../../src/process/server.ts'

t.test('who entered and has not left is there, in whatever order they leave', async t => {
  for (const order of ['abcd', 'dcba', 'bdac', 'cadb']) {
    const requests = createActiveRequests<string>()
    const leaves = new Map(Array.from('abcd', name => [name, requests.enter(name)]))
    for (const [index, name] of Array.from(order).entries()) {
      leaves.get(name)?.()
      t.equal(requests.size(), 3 - index)
      t.same(requests.list().toSorted(), Array.from(order.slice(index + 1)).toSorted())
    }
    requests.enter('late')
    t.same(requests.list(), ['late'], 'a place that became free is taken again')
  }
})
