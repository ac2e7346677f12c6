/** Settings whose default is another setting. */
import t, { type Test } from 'tap'
import {
  mountOf,
  routeSettings,
  timeoutOf,
  upstreamPathOf
} from '../../../src/config/schema/resolved.ts'
import { loadConfig } from '../../../src/config/read/load.ts'
import { textFolder } from '../../support/config-files.ts'

const load = (t: Test, files: Record<string, string>) => loadConfig(textFolder(t.after, files), {})

/** The settings of a route `NAME: { …keys }`. */
function settings(t: Test, name: string, keys = '', files: Record<string, string> = {}) {
  const route = `{ path: /api/r, upstream: b${keys} }`
  const text = [
    'upstreams: { b: { url: http://b, responseTimeout: 7s } }',
    `routes: { ${name}: ${route} }`,
    'shapes: { s: [{ unwrap: data }] }'
  ].join('\n')
  const config = load(t, { ...files, 'routes.yaml': text })
  const [loaded, upstream] = [config.routes.routes[name], config.routes.upstreams.b]
  if (loaded === undefined || upstream === undefined) throw new Error(`no route ${name}`)
  return {
    ...routeSettings(config, name, loaded),
    path: upstreamPathOf(loaded),
    timeout: timeoutOf(loaded, upstream)
  }
}

t.test('a route without settings of its own has those of the config around it', async t => {
  const files = {
    'gateway.yaml': 'envelope: { dialect: base-response, errorStatus: ok }',
    'limits.yaml': 'sizes: { body: 3KiB }'
  }
  t.same(settings(t, 'r', '', files), {
    dialect: 'base-response',
    errorStatus: 'ok',
    maxBody: 3 * 1024,
    touch: true,
    path: '/api/r',
    timeout: 7_000
  })
})

t.test('the settings of a route win', async t => {
  const keys =
    ', rewrite: /x, timeout: 2s, dialect: dual, errorStatus: own, maxBody: 1KiB, ' +
    'shape: s, touch: never'
  const files = { 'gateway.yaml': 'envelope: { dialect: base-response, errorStatus: ok }' }
  t.same(settings(t, 'r', keys, files), {
    dialect: 'dual',
    errorStatus: 'own',
    maxBody: 1024,
    touch: false,
    path: '/x',
    timeout: 2_000
  })
})

t.test('notices and WebSockets keep no session alive unless config says so', async t => {
  t.equal(settings(t, 'notices').touch, false)
  t.equal(settings(t, 'notices', ', touch: always').touch, true)
  t.equal(settings(t, 'r', ', websocket: {}').touch, false)
  t.equal(settings(t, 'r', ', websocket: {}, touch: always').touch, true)
})

t.test('without server.mount the public paths have no prefix', async t => {
  t.equal(mountOf(load(t, {})), '')
  t.equal(mountOf(load(t, { 'gateway.yaml': 'server: { mount: /console }' })), '/console')
})
