import t from 'tap'
import { type Written, writtenDiff } from '../../../src/config/load/written-diff.ts'

const written = (routes: object, more: object = {}): Written => ({
  gateway: {},
  limits: {},
  routes: routes as Record<string, unknown>,
  ...more
})

t.test('differences are lines of YAML below the keys that lead to them', t => {
  const before = written({
    upstreams: { b: { url: '${B}', secretHeaders: { 'x-key': '${OLD_KEY}' } }, c: { url: 'x' } },
    routes: { a: { path: '/a', roles: ['x', 'y'] }, same: { path: '/s' } }
  })
  const after = written({
    upstreams: { b: { url: '${B}', secretHeaders: { 'x-key': '${NEW_KEY}' } } },
    routes: { a: { path: '/a', roles: ['x'], timeout: '5s' }, same: { path: '/s' } }
  })
  t.same(writtenDiff(before, after), [
    {
      file: 'routes.yaml',
      diff: [
        '  upstreams:',
        '    b:',
        '      secretHeaders:',
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

t.test('numbers keep their digits, and another order of keys is no difference', t => {
  const raw = (JSON as unknown as { rawJSON: (text: string) => unknown }).rawJSON
  const before = written({ examples: { e: { id: raw('12345678901234567890') } }, a: 1 })
  const after = written({ a: 1, examples: { e: { id: raw('12345678901234567891') } } })
  t.match(writtenDiff(before, after), [
    { diff: /-\s+id: 12345678901234567890\n\+\s+id: 12345678901234567891$/ }
  ])
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
