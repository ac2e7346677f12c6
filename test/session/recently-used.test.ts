import t from 'tap'
import { recentlyUsed } from '../../src/session/recently-used.ts'

t.test('what was used last stays, what was not goes first', t => {
  const cache = recentlyUsed<number>(4)
  for (const key of ['a', 'b', 'c', 'd']) cache.set(key, 1)
  t.equal(cache.get('a'), 1)
  cache.set('e', 1)
  t.same(
    ['a', 'b', 'c', 'd', 'e'].filter(key => cache.has(key)),
    ['a', 'c', 'd', 'e']
  )
  t.equal(cache.size, 4, 'and no more than it may hold')
  t.end()
})

t.test('while half of it is free, nothing goes', t => {
  const cache = recentlyUsed<number>(100)
  for (let key = 0; key < 40; key++) cache.set(String(key), key)
  for (let key = 0; key < 40; key++) t.equal(cache.get(String(key)), key)
  t.equal(cache.get('x'), undefined)
  t.end()
})
