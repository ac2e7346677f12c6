import t from 'tap'
import { loadConfig } from '../../../src/config/read/load.ts'
import { faultsOf, textFolder } from '../../support/config-files.ts'

const folderWith = (contract: string, more: Record<string, string> = {}, route = 'shape: s') =>
  textFolder(t.after, {
    'gateway.yaml': 'server: { hosts: [console.example.com], trustedProxies: [10.0.0.0/8] }',
    'routes.yaml': `upstreams: { b: { url: http://b.internal } }
shapes: { s: [{ unwrap: data }] }
routes:
  r:
    path: /r
    upstream: b
    ${route}
    contract:
      ${contract}
`,
    ...more
  })

t.test('a contract stands in a file of its own, as JSON or YAML', async t => {
  t.same(
    loadConfig(folderWith('file: c.json', { 'c.json': '{\n\t"type": "array"\n}' }), {}).contracts,
    { r: { type: 'array' } }
  )
  t.same(loadConfig(folderWith('file: c.yaml', { 'c.yaml': 'type: array' }), {}).contracts, {
    r: { type: 'array' }
  })
})

t.test('bounds of 64 bits are rounded as the numbers of a console are', async t => {
  const bounds = 'minimum: -9223372036854775808, maximum: 9223372036854775807'
  const contract = { r: { minimum: -(2 ** 63), maximum: 2 ** 63 } }
  const inFile = folderWith('file: c.yaml', { 'c.yaml': `{ ${bounds} }` })
  t.same(loadConfig(inFile, {}).contracts, contract)
})

t.test('an anchor is a fault, with its place', async t => {
  const json = { $defs: { One: { $anchor: 'one', type: 'string' } }, $ref: '#one' }
  t.match(faultsOf(folderWith('file: c.json', { 'c.json': JSON.stringify(json) })), [
    /^c\.json:1 .*\$anchor: unknown keyword/
  ])
})

t.test('what is wrong with it is a fault where it stands', async t => {
  t.same(
    faultsOf(
      folderWith('file: c.json', {
        'c.json': '{\n "properties": {\n  "a": {\n   "requird": []\n  }\n }\n}'
      })
    ),
    ['c.json:4 properties.a.requird: unknown keyword: "requird"']
  )
  t.match(faultsOf(folderWith('file: c.json', { 'c.json': '{' })), [/^c\.json:1/])
  t.same(faultsOf(folderWith('file: none.json')), [
    'routes.yaml:9 routes.r.contract.file: the file "none.json" cannot be read (ENOENT)'
  ])
  t.match(faultsOf(folderWith('mode: observe')), [
    /^routes\.yaml:8 routes\.r\.contract: the key "file" is missing/
  ])
  t.match(faultsOf(folderWith('file: c.json', { 'c.json': '[1]' })), [/^c\.json:0? ?.*mapping/])
})

t.test(
  'without a shape, an answer can be observed, but nothing reads it before it is sent',
  async t => {
    const faults = (contract: string) =>
      faultsOf(folderWith(contract, { 'c.json': '{ "type": "array" }' }, 'timeout: 1s')).filter(
        fault => !fault.includes('warning')
      )
    t.same(faults('file: c.json'), [])
    t.same(faults('file: c.json\n      mode: strict'), [
      'routes.yaml:10 routes.r.contract.mode: `strict` needs a shape: only a shaped response is read before it is sent'
    ])
  }
)
