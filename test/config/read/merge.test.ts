import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { faultAt, placeAt, readDocument } from '../../../src/config/read/document.ts'
import { createInputs } from '../../../src/config/read/inputs.ts'
import { mergeMappings } from '../../../src/config/read/merge.ts'
import type { Path } from '../../../src/config/schema/node.ts'

/** Merges a preset's text and the folder's. */
function merged(t: Test, preset: string, own: string) {
  const folder = t.testdir({})
  const read = (name: string, text: string) => {
    writeFileSync(join(folder, name), text)
    const of = name === 'preset.yaml' ? { preset: 'vben' } : {}
    const context = { inputs: createInputs(), faults: [], ...of }
    const document = readDocument(join(folder, name), name, context)
    if (document === undefined) throw new Error(`${name} cannot be parsed`)
    return document
  }
  const { value: base } = read('preset.yaml', preset)
  const { value: over, fileOf } = read('own.yaml', own)
  const tree = { value: mergeMappings(base, over), fileOf }
  return {
    value: tree.value,
    fault: (path: Path, message: string) => faultAt(tree, path, message),
    placeOf: (path: Path) => placeAt(tree, path)
  }
}

t.test('mappings merge key by key, and lists are replaced', t => {
  const preset = `routes: { menu: { path: /menu, methods: [GET, POST] }, codes: { path: /codes } }
shapes: { list: [{ unwrap: a }, { wrap: list }] }`
  const own = `routes: { menu: { methods: [PUT], upstream: b } }
shapes: { list: [{ wrap: envelope }] }`
  t.same(merged(t, preset, own).value, {
    routes: { menu: { path: '/menu', methods: ['PUT'], upstream: 'b' }, codes: { path: '/codes' } },
    shapes: { list: [{ wrap: 'envelope' }] }
  })
  t.end()
})

t.test('null removes a key of a preset; a key with nothing after it changes nothing', t => {
  const preset = `paging: { page: p, size: s }
routes: { menu: { path: /menu }, codes: { path: /codes, timeout: 1s }, empty: { path: /e } }`
  const own = `paging: { size: null }
routes:
  menu: ~
  codes: { timeout: null }
  empty:
  none: null`
  t.same(merged(t, preset, own).value, {
    paging: { page: 'p' },
    routes: { codes: { path: '/codes' }, empty: { path: '/e' }, none: null }
  })
  t.end()
})

const sources = `login:
  sources:
    staff: { kind: users-file, file: staff.yaml }
    backend:
      kind: upstream-login
      path: /login
      user: { id: id }`

t.test('the keys stand in the order of the later one, before those of the former alone', t => {
  const own = `login:
  sources:
    others: { kind: users-file }
    backend:
      user: { name: nick }`
  const { login } = merged(t, sources, own).value as { login: { sources: object } }
  t.same(Object.keys(login.sources), ['others', 'backend', 'staff'])
  t.same(login.sources, {
    others: { kind: 'users-file' },
    backend: { kind: 'upstream-login', path: '/login', user: { id: 'id', name: 'nick' } },
    staff: { kind: 'users-file', file: 'staff.yaml' }
  })
  t.end()
})

t.test('a key with nothing after it has its place in the order', t => {
  const own = 'login:\n  sources:\n    backend:\n    others: { kind: users-file }'
  const { login } = merged(t, sources, own).value as { login: { sources: object } }
  t.same(Object.keys(login.sources), ['backend', 'others', 'staff'])
  t.end()
})

t.test('a fault names the folder’s file where it has the key, else the preset', t => {
  const own = `envelope: {}
login:
  sources:
    backend:
      user: { name: nick }`
  const { fault, placeOf } = merged(t, sources, own)
  const at = (...path: Path) => {
    const { file, line, message } = fault(path, 'wrong')
    return `${file.replace(/^.*\//, '')}:${line} ${message}`
  }
  t.equal(at('login', 'sources', 'backend', 'user', 'name'), 'own.yaml:5 wrong')
  t.equal(at('login', 'sources', 'backend', 'path'), 'preset.yaml:6 preset vben: wrong')
  t.equal(at('login', 'sources', 'backend', 'user', 'id'), 'preset.yaml:7 preset vben: wrong')
  t.equal(at('login', 'sources', 'backend'), 'own.yaml:4 wrong')
  t.equal(at('envelope', 'dialect'), 'own.yaml:1 wrong', 'a default')
  t.equal(at('login', 'sources', 'backend', 'token'), 'own.yaml:4 wrong', 'a key that is nowhere')
  t.match(placeOf(['login', 'sources', 'backend', 'path']), { preset: 'vben', line: 6 })
  t.equal(placeOf(['login', 'sources', 'backend', 'user', 'name'])?.preset, undefined)
  t.equal(placeOf(['envelope', 'dialect']), undefined)
  t.end()
})

t.test('what aliases and merge keys bring stands in the folder’s file, with its nulls', t => {
  const preset = `envelope: { dialect: custom, custom: { members: {} }, language: en }
routes: { b: { path: /b, timeout: 1s, shape: s } }`
  const own = `envelope:
  <<: { dialect: nonsense, custom: null }
  language: de
routes:
  a: &usual
    timeout: wrong
    shape: &none null
  b: *usual
  c: { <<: [{ more: 1 }, *usual], path: /c }
  d: { <<: *usual, timeout: 2s, shape: *none }`
  const { value, fault, placeOf } = merged(t, preset, own)
  t.same(value, {
    envelope: { dialect: 'nonsense', language: 'de' },
    routes: {
      a: { timeout: 'wrong', shape: null },
      b: { path: '/b', timeout: 'wrong' },
      c: { more: 1, timeout: 'wrong', shape: null, path: '/c' },
      d: { timeout: '2s', shape: null }
    }
  })
  t.match(fault(['envelope', 'dialect'], 'wrong'), { line: 2, message: /^wrong$/ })
  t.equal(placeOf(['routes', 'b', 'timeout'])?.line, 6)
  t.equal(placeOf(['routes', 'c', 'timeout'])?.line, 6)
  t.equal(placeOf(['routes', 'c', 'more'])?.line, 9)
  t.equal(placeOf(['routes', 'd', 'timeout'])?.line, 10, 'its own key')
  t.match(placeOf(['routes', 'b', 'path']), { preset: 'vben', line: 2 })
  t.end()
})

t.test('a key named __proto__ stays a key', t => {
  const { value } = merged(t, 'routes: {}', '{ "__proto__": { a: 1 } }')
  t.ok(Object.hasOwn(value, '__proto__'))
  t.notOk('a' in value)
  t.end()
})
