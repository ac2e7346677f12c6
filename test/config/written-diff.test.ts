import t from 'tap'
import { type Written, writtenDiff } from '../../src/config/written-diff.ts'

const written = (routes: object, more: object = {}): Written => ({
  gateway: {},
  limits: {},
  routes: routes as Record<string, unknown>,
  ...more
})

t.test('differences are lines of YAML below the keys that lead to them', t => {
  const before = written({
    upstreams: { b: { url: '${B}', headers: { 'x-key': '${OLD_KEY}' } }, c: { url: 'x' } },
    routes: { a: { path: '/a', roles: ['x', 'y'] }, same: { path: '/s' } }
  })
  const after = written({
    upstreams: { b: { url: '${B}', headers: { 'x-key': '${NEW_KEY}' } } },
    routes: { a: { path: '/a', roles: ['x'], timeout: '5s' }, same: { path: '/s' } }
  })
  t.same(writtenDiff(before, after), [
    {
      file: 'routes.yaml',
      diff: [
        '  upstreams:',
        '    b:',
        '      headers:',
        '-       x-key: ${OLD_KEY}',
        '+       x-key: ${NEW_KEY}',
        '-   c:',
        '-     url: x',
        '  routes:',
        '    a:',
        '-     roles:',
        '-       - x',
        '-       - y',
        '+     roles:',
        '+       - x',
        '+     timeout: 5s'
      ].join('\n')
    }
  ])
  t.same(writtenDiff(before, before), [])
  t.end()
})

t.test('another order of keys is no difference', t => {
  const before = written({ shapes: { a: 1, b: 2 }, a: 1 })
  t.same(writtenDiff(before, written({ a: 1, shapes: { b: 2, a: 1 } })), [])
  t.end()
})

t.test('a very long difference is cut, and says by how much', t => {
  const many = Object.fromEntries(Array.from({ length: 3000 }, (_, index) => [`r${index}`, index]))
  const [{ diff } = { diff: '' }] = writtenDiff(written({}), written(many))
  const lines = diff.split('\n')
  t.equal(lines.length, 2001)
  t.equal(lines.at(-1), '  … and 1000 more lines')
  t.end()
})
