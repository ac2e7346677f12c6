import t from 'tap'
import { nearerFirst, pathsAround, withHead } from '../../../src/config/schema/public-path.ts'

t.test('the open paths around a path come nearest first, itself not among them', async t => {
  t.same(pathsAround('/api/a/b'), ['/api/a/*', '/api/*', '/*'])
  t.same(pathsAround('/api/a/*'), ['/api/*', '/*'])
  t.same(pathsAround('/*'), [])
  t.same(pathsAround('/'), ['/*'])
})

t.test('no more slashes are looked at than paths of interest have', async t => {
  t.same(pathsAround('/a/b/c/d', 2), ['/a/*', '/*'])
  const target = '/x'.repeat(1_000_000)
  t.equal(pathsAround(target, 3).length, 3)
})

t.test('of several stems the longer one comes first', async t => {
  t.same(['/', '/api/v1/', '/api/'].toSorted(nearerFirst), ['/api/v1/', '/api/', '/'])
})

t.test('GET brings HEAD, and nothing else does', async t => {
  t.same(withHead(['POST', 'GET', 'DELETE']), ['POST', 'GET', 'HEAD', 'DELETE'])
})
