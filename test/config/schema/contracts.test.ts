import t from 'tap'
import { compileSchema } from '../../../src/json-schema/compile.ts'
import { loadConfig } from '../../../src/config/load/load.ts'
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

t.test('a contract stands in the config or in a file of its own, as JSON or YAML', async t => {
  t.same(loadConfig(folderWith('schema: { type: array }'), {}).contracts, { r: { type: 'array' } })
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
  t.same(loadConfig(folderWith(`schema: { ${bounds} }`), {}).contracts, contract)
  const inFile = folderWith('file: c.yaml', { 'c.yaml': `{ ${bounds} }` })
  t.same(loadConfig(inFile, {}).contracts, contract)
  t.match(faultsOf(folderWith('sample: 9223372036854775807\n      schema: {}')), [
    /^routes\.yaml:9 .*too long to be exact/
  ])
})

t.test('references to an anchor are read as references to its place', async t => {
  const json = (reference: string) => ({
    $anchor: 'all',
    properties: { 'of/one': { $ref: reference }, 'all': { $ref: '#/$defs/The%20one' } },
    $defs: { 'The one': { $anchor: 'one', type: 'string' } }
  })
  const read = (reference: string) =>
    folderWith('file: c.json', { 'c.json': JSON.stringify(json(reference), null, 1) })
  const contract = loadConfig(read('#one'), {}).contracts['r'] ?? {}
  t.match(contract, { properties: { 'of/one': { $ref: '#/$defs/The%20one' } } })
  t.notMatch(JSON.stringify(contract), '$anchor')
  t.same(compileSchema(contract).deviations({ 'of/one': 1, 'all': 'x', 'more': 1 }), [
    { kind: 'retyped', path: 'of/one' },
    { kind: 'new', path: 'more' }
  ])
  t.match(loadConfig(read('#all'), {}).contracts, {
    r: { properties: { 'of/one': { $ref: '#' } } }
  })
  t.match(faultsOf(read('#other')), [/of\/one\.\$ref: there is nothing at "#other"/])
})

t.test('what is wrong with it is a fault where it stands', async t => {
  t.same(
    faultsOf(
      folderWith('schema:\n        type: object\n        properties:\n          a: { type: strng }')
    ),
    ['routes.yaml:12 routes.r.contract.schema.properties.a.type: is not a type of JSON Schema']
  )
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
    'none.json:0 : the file cannot be read (ENOENT)'
  ])
  t.same(faultsOf(folderWith('mode: observe')), [
    'routes.yaml:8 routes.r.contract: needs one of schema and file'
  ])
  t.same(faultsOf(folderWith('schema: { type: array }\n      file: c.json', { 'c.json': '{}' })), [
    'routes.yaml:8 routes.r.contract: needs one of schema and file'
  ])
  t.match(faultsOf(folderWith('schema: { type: array }\n      sample: 2')), [
    /^routes\.yaml:10 routes\.r\.contract\.sample: expected a share from 0 to 1/
  ])
  t.match(faultsOf(folderWith('schema: [1]')), [
    /^routes\.yaml:9 routes\.r\.contract\.schema: expected a mapping/
  ])
})

t.test(
  'without a shape, an answer can be observed, but nothing reads it before it is sent',
  async t => {
    const faults = (contract: string) =>
      faultsOf(folderWith(contract, {}, 'timeout: 1s')).filter(fault => !fault.includes('warning'))
    t.same(faults('schema: { type: array }'), [])
    t.same(faults('schema: { type: array }\n      mode: strict'), [
      'routes.yaml:10 routes.r.contract.mode: `strict` needs a shape: only a shaped response is read before it is sent'
    ])
  }
)
