import t from 'tap'
import { BoundedMap, ownText, RecentlyUsed } from '../../src/bounded-map.ts'
import { retainedBytes } from '../support/retained.ts'

t.test('what was used last stays, what was not goes first', t => {
  const cache = new RecentlyUsed<number>(4)
  for (const key of ['a', 'b', 'c', 'd']) cache.set(key, 1)
  t.equal(cache.get('a'), 1)
  cache.set('e', 1)
  t.same(['a', 'b', 'c', 'd', 'e'].filter(key => cache.has(key)).join(), 'a,c,d,e')
  t.equal(cache.size, 4, 'and no more than it may hold')
  const large = new RecentlyUsed<number>(100)
  for (let key = 0; key < 40; key++) large.set(String(key), key)
  for (let key = 0; key < 40; key++) t.equal(large.get(String(key)), key, 'half of it is free')
  t.end()
})

t.test('what was written longest ago comes first, and may be deleted on the way', t => {
  const map = new BoundedMap<number>(3)
  for (const key of ['a', 'b', 'c', 'a', 'd']) map.set(key, 1)
  t.same(Array.from(map.oldestFirst(), ([key]) => key).join(), 'c,a,d')
  for (const [key] of map.oldestFirst()) map.delete(key)
  t.equal(map.size, 0)
  t.end()
})

t.test('a copied part of a text does not keep the whole text', async t => {
  const kept: string[] = []
  const retained = await retainedBytes(() => {
    for (let n = 0; n < 1000; n++) {
      const text = Buffer.alloc(16_384, `${n} `).toString()
      for (const length of [5, 12, 13, 500]) kept.push(ownText(text.slice(0, length)))
    }
  })
  t.ok(retained < 4_000_000, `${retained} bytes`)
  t.equal(kept.at(-1), '999 '.repeat(125))
})
