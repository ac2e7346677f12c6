/** Presets of this installation: each is sound by itself, and every pair with each other. */
import t from 'tap'
import { parse } from 'yaml'
import { presetText } from '../../../src/config/read/presets.ts'
import { presetFile, presetKinds, presetsOfKind } from '../../../src/config/schema/presets.ts'
import { loadConfig } from '../../../src/config/read/load.ts'
import { run } from '../../support/command.ts'
import { faultsOf, textFolder, writeTexts } from '../../support/config-files.ts'

const folderOf = (extended?: string, backend?: string) =>
  textFolder(t.after, {
    'gateway.yaml': JSON.stringify({ extends: extended, backend }),
    ...(backend !== undefined && {
      'routes.yaml': 'upstreams: { backend: { url: "http://127.0.0.1:1" } }'
    })
  })

t.test(
  'a preset has parts of the config files, without what only an installation can know',
  async t => {
    for (const kind of presetKinds) {
      for (const name of presetsOfKind(kind)) {
        const {
          gateway = {},
          routes = {},
          limits = {},
          ...others
        } = parse(presetText(kind, name)) as Record<string, unknown>
        t.same(Object.keys(others), [], name)
        t.ok([gateway, routes, limits].every(part => typeof part === 'object'))
        for (const key of ['server', 'ops', 'redis', 'session', 'log', 'extends', 'backend']) {
          t.notOk(Object.hasOwn(gateway as object, key), `${name} leaves ${key} to the folder`)
        }
        const text = presetText(kind, name)
        t.equal((await run(['presets', 'show', `${kind}/${name}`])).out, text)
        t.match(text, /^# \S.{5,70}[^.]\n/, 'the first line says what it is for')
        t.match(text, /^# Read from [\w.-]+\/[\w.-]+ at [0-9a-f]{7}/m)
      }
    }
  }
)

t.test('every preset, and every pair of them, has no fault', t => {
  const environment = {}
  for (const extended of [undefined, ...presetsOfKind('console')]) {
    for (const backend of [undefined, ...presetsOfKind('backend')]) {
      const name = `${extended ?? 'none'} × ${backend ?? 'none'}`
      const faults = faultsOf(folderOf(extended, backend), environment)
      t.same(
        faults.filter(fault => !fault.includes(': warning: ')),
        [],
        name
      )
    }
  }
  t.end()
})

t.test('a name that is none is a fault at its line, with the nearest one', t => {
  const folder = textFolder(t.after, {
    'gateway.yaml': 'log: {}\nextends: ant-design-por\nbackend: 5\n'
  })
  const faults = faultsOf(folder).filter(fault => !fault.includes(': warning: '))
  t.match(
    faults[0],
    /^gateway\.yaml:2 extends: expected one of .* Did you mean "ant-design-pro"\?$/
  )
  t.match(faults[1], /^gateway\.yaml:3 backend: expected one of /)
  t.equal(faults.length, 2)
  t.end()
})

const withUpstream = 'upstreams: { backend: { url: "http://127.0.0.1:1" } }'

t.test('the folder’s files win over the back-end’s preset, and that over the console’s', t => {
  const folder = textFolder(t.after, {
    'gateway.yaml': 'extends: ant-design-pro\nbackend: ${BACKEND:-drf}\nenvelope: { language: zh }',
    'routes.yaml': `${withUpstream}\nendpoints: { logout: { path: /bye } }\nshapes: { item: null }`
  })
  t.throws(
    () => loadConfig(folder, {}),
    /shapes\.record\.0\.use: preset ant-design-pro: there is no shape "item"/
  )
  writeTexts(folder, {
    'gateway.yaml': 'extends: ant-design-pro\nbackend: ${BACKEND:-drf}\nenvelope: { language: zh }',
    'routes.yaml': `${withUpstream}\nendpoints: { logout: { path: /bye } }`
  })
  const { gateway, routes, inputs } = loadConfig(folder, {})
  t.match(gateway, {
    extends: 'ant-design-pro',
    backend: 'drf',
    envelope: { dialect: 'ant-design-pro', language: 'zh', successCode: 0 }
  })
  t.equal(routes.endpoints.login.path, '/api/login/account')
  t.equal(routes.endpoints.logout.path, '/bye')
  t.match(routes.upstreams['backend'], { url: ['http://127.0.0.1:1'], credential: 'bearer' })
  t.match(routes.shapes['rows'], [{ pick: ['results', 'count'] }, {}])
  for (const file of [presetFile('console', 'ant-design-pro'), presetFile('backend', 'drf')]) {
    t.ok(Object.hasOwn(inputs, file), 'a preset is one of the files that were read')
  }
  t.end()
})

t.test('an address that is missing is missing in the folder’s file', t => {
  const folder = textFolder(t.after, { 'gateway.yaml': 'backend: drf' })
  t.match(
    faultsOf(folder).filter(fault => !fault.includes(': warning: ')),
    [/^routes\.yaml:1 upstreams\.backend\.url: is missing/]
  )
  t.end()
})

t.test('another preset is used after a restart: until then reloads are refused', t => {
  const routes = `${withUpstream}\nroutes: { r: { path: /api/r, upstream: backend, shape: list } }`
  const folder = textFolder(t.after, {
    'gateway.yaml': 'extends: ant-design-pro',
    'routes.yaml': routes
  })
  const running = loadConfig(folder, {})
  writeTexts(folder, {
    'gateway.yaml': 'log: {}\nextends: tdesign\nbackend: drf',
    'routes.yaml': routes
  })
  t.throws(
    () => loadConfig(folder, {}, { running }),
    /gateway\.yaml:2 extends: another preset needs a restart of the process\n.*gateway\.yaml:3 backend/
  )
  t.equal(loadConfig(folder, {}).gateway.extends, 'tdesign')
  t.end()
})
