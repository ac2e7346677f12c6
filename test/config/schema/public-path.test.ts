import fc from 'fast-check'
import t from 'tap'
import {
  contains,
  overlapOf,
  pathsAround,
  takes,
  variablesOf
} from '../../../src/config/schema/public-path.ts'
import { seed } from '../../support/seed.ts'

const overlap = (a: string, b: string) => overlapOf(a.split('/'), b.split('/'))
const segment = fc.constantFrom('a', 'b', ':x', ':y')
const path = fc
  .tuple(fc.array(segment, { minLength: 1, maxLength: 4 }), fc.boolean())
  .map(([segments, isOpen]) => `/${segments.join('/')}${isOpen ? '/*' : ''}`)
const target = fc
  .array(fc.constantFrom('a', 'b', 'c', ''), { minLength: 1, maxLength: 5 })
  .map(segments => `/${segments.join('/')}`)

t.test('no more slashes are looked at than paths of interest have', async t => {
  t.same(pathsAround('/a/b/c/d', 2), ['/a/*', '/*'])
  const target = '/x'.repeat(1_000_000)
  t.equal(pathsAround(target, 3).length, 3)
})

t.test('a :name takes one segment that is not empty, a * what is left', async t => {
  t.ok(takes('/users/:id', '/users/7'))
  t.notOk(takes('/users/:id', '/users/'))
  t.notOk(takes('/users/:id', '/users/7/x'))
  t.notOk(takes('/users/:id', '/users'))
  t.ok(takes('/users/:id/*', '/users/7/x/y'))
  t.ok(takes('/users/:id/*', '/users/7/'))
  t.notOk(takes('/users/:id/*', '/users/7'))
  t.same(variablesOf('/a/:one/b/:two/*'), [':one', ':two', '*'])
})

t.test('a target that two paths take is one of their overlap, and no other is', async t => {
  t.equal(overlap('/users/:id/reset', '/users/export/*'), '/users/export/reset')
  t.equal(overlap('/a/:x', '/a/b/c'), undefined)
  fc.assert(
    fc.property(path, path, target, (a, b, request) => {
      const shared = overlap(a, b)
      const isShared = shared !== undefined && takes(shared, request)
      return (takes(a, request) && takes(b, request)) === isShared
    }),
    { seed, numRuns: 5000 }
  )
})

t.test('a path contains another when it takes all of its targets', async () => {
  fc.assert(
    fc.property(path, path, target, (outer, inner, request) => {
      return !contains(outer, inner) || !takes(inner, request) || takes(outer, request)
    }),
    { seed, numRuns: 5000 }
  )
  fc.assert(
    fc.property(path, path, (outer, inner) => contains(outer, inner) === isOverlap(outer, inner)),
    { seed, numRuns: 5000 }
  )
})

/** Whether what both take is all that the inner path takes, whatever the names are. */
function isOverlap(outer: string, inner: string): boolean {
  const bare = (text: string | undefined) => text?.replaceAll(/:\w+/g, ':')
  return bare(overlap(outer, inner)) === bare(inner)
}
