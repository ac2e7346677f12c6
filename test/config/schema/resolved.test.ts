/** Settings whose default is another setting. */
import t from 'tap'
import { stringify } from 'yaml'
import { routeSettings } from '../../../src/config/schema/resolved.ts'
import { loadConfig } from '../../../src/config/read/load.ts'
import { textFolder } from '../../support/config-files.ts'

const around = {
  'gateway.yaml': 'envelope: { dialect: base-response, errorStatus: ok }',
  'limits.yaml': 'sizes: { body: 3KiB }'
}
const ofRoute = {
  errorStatus: 'own',
  maxBody: '1KiB',
  touch: 'never'
}

for (const [title, name, keys, expected] of [
  [
    'without settings of its own it has those of the config around it',
    'r',
    {},
    { errorStatus: 'ok', maxBody: 3072, touch: true }
  ],
  ['its own settings win', 'r', ofRoute, { errorStatus: 'own', maxBody: 1024, touch: false }],
  ['notices keep no session alive', 'notices', {}, { touch: false }],
  ['unless config says so', 'notices', { touch: 'always' }, { touch: true }],
  ['nor do WebSockets', 'r', { websocket: {} }, { touch: false }],
  ['unless it says so too', 'r', { websocket: {}, touch: 'always' }, { touch: true }]
] as const) {
  t.test(`a route: ${title}`, async t => {
    const routes = {
      upstreams: { b: { url: 'http://b' } },
      routes: { [name]: { path: '/api/r', upstream: 'b', ...keys } }
    }
    const config = loadConfig(
      textFolder(t.after, { ...around, 'routes.yaml': stringify(routes) }),
      {}
    )
    t.match(routeSettings(config, name, config.routes.routes[name]!), expected)
  })
}
