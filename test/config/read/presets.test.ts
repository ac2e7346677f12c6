/** Presets of this installation: each is sound by itself, and every pair with each other. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { presetText } from '../../../src/config/read/presets.ts'
import { presetFile, presetKinds, presetsOfKind } from '../../../src/config/schema/presets.ts'
import { loadConfig } from '../../../src/config/read/load.ts'
import { run } from '../../support/command.ts'
import { faultsOf, textFolder } from '../../support/config-files.ts'

const withUpstream = 'upstreams: { backend: { url: "http://127.0.0.1:1" } }'
const folderOf = (gateway: string, routes = '{}') =>
  textFolder(t.after, { 'gateway.yaml': gateway, 'routes.yaml': routes })
const faultsIn = (folder: string) =>
  faultsOf(folder).filter(fault => !fault.includes(': warning: '))

t.test('a preset has keys of the files, without what only an installation knows', async t => {
  const own = ['server', 'ops', 'redis', 'session', 'log', 'extends', 'backend']
  for (const kind of presetKinds) {
    for (const name of presetsOfKind(kind)) {
      const text = presetText(kind, name)
      const found = Object.keys(parse(text) as object).filter(key => own.includes(key))
      t.same(found, [], name)
      t.equal((await run(['presets', 'show', `${kind}/${name}`])).out, text)
      t.match(text, /^# \S.{5,70}[^.]\n/, 'the first line says what it is for')
      t.match(text, /^# Read from [\w.-]+\/[\w.-]+ at [0-9a-f]{7}/m)
    }
  }
})

t.test('every preset, and every pair of them, has no fault', async t => {
  for (const extended of [undefined, ...presetsOfKind('console')]) {
    for (const backend of [undefined, ...presetsOfKind('backend')]) {
      const gateway = JSON.stringify({ extends: extended, backend })
      const folder = folderOf(gateway, backend === undefined ? '{}' : withUpstream)
      t.same(faultsIn(folder), [], gateway)
    }
  }
})

t.test('a catch-all beside a preset warns of no route of the preset (C4)', async t => {
  const all = 'routes: { all: { path: "/*", upstream: backend, methods: [GET, POST] } }'
  for (const name of presetsOfKind('console')) {
    const faults = faultsOf(folderOf(`extends: ${name}`, `${withUpstream}\n${all}`))
    const ofRoutes = faults.filter(fault => fault.includes(' routes.'))
    t.same(ofRoutes, [], name)
  }
})

t.test('the folder wins over the back-end’s preset, and that over the console’s', async t => {
  const gateway = 'extends: ant-design-pro\nbackend: ${BACKEND:-drf}\nenvelope: { language: zh }'
  const own = `${withUpstream}\nendpoints: { logout: { path: /bye } }`
  t.throws(
    () => loadConfig(folderOf(gateway, `${own}\nshapes: { item: null }`), {}),
    /shapes\.record\.0\.use: preset ant-design-pro: there is no shape "item"/
  )
  const config = loadConfig(folderOf(gateway, own), {})
  t.match(config, {
    gateway: {
      extends: 'ant-design-pro',
      backend: 'drf',
      envelope: { dialect: 'ant-design-pro', language: 'zh', successCode: 0 }
    },
    routes: {
      endpoints: { login: { path: '/api/login/account' }, logout: { path: '/bye' } },
      upstreams: { backend: { url: ['http://127.0.0.1:1'], credential: 'bearer' } },
      shapes: { rows: [{ pick: ['results', 'count'] }, {}] }
    }
  })
  for (const file of [presetFile('console', 'ant-design-pro'), presetFile('backend', 'drf')]) {
    t.ok(Object.hasOwn(config.inputs, file), 'a preset is one of the files that were read')
  }
})

t.test('another preset is used after a restart: until then reloads are refused', async t => {
  const routes = `${withUpstream}\nroutes: { r: { path: /api/r, upstream: backend, shape: list } }`
  const folder = folderOf('extends: ant-design-pro', routes)
  const running = loadConfig(folder, {})
  writeFileSync(join(folder, 'gateway.yaml'), 'log: {}\nextends: tdesign\nbackend: drf')
  t.throws(
    () => loadConfig(folder, {}, { running }),
    /gateway\.yaml:2 extends: another preset needs a restart of the process\n.*gateway\.yaml:3 backend/
  )
  t.equal(loadConfig(folder, {}).gateway.extends, 'tdesign')
})
