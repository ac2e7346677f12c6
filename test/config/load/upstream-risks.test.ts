import t from 'tap'
import { stringify } from 'yaml'
import { loadConfig } from '../../../src/config/load/load.ts'
import { risksOf } from '../../../src/config/load/risks.ts'
import { textFolder } from '../../support/config-files.ts'

t.test('what ends, hides or delays responses is a risk', t => {
  const load = (upstream: object, route: object) =>
    loadConfig(
      textFolder(t.after, {
        'gateway.yaml': 'server: { hosts: [h] }',
        'routes.yaml': stringify({
          upstreams: { b: { url: 'https://b.internal', ...upstream } },
          routes: { r: { path: '/api/r', methods: ['GET', 'POST'], upstream: 'b', ...route } }
        })
      }),
      {}
    )
  const risks = (before: [object, object], after: [object, object]) =>
    risksOf(load(...before), load(...after), 60_000)
  const ofUpstream: Array<[old: object, now: object, risk: string]> = [
    [{}, { connectTimeout: '1s' }, 'connectTimeout is 1s, it was 2s: slower responses fail now'],
    [{}, { responseTimeout: '5s' }, 'responseTimeout is 5s, it was 15s: slower responses fail now'],
    [{}, { idleTimeout: '10s' }, 'idleTimeout is 10s, it was 30s: slower responses fail now'],
    [{}, { streamIdle: '1m' }, 'streamIdle is 1m, it was 5m: slower responses fail now'],
    [{}, { totalTimeout: '30s' }, 'totalTimeout is 30s, it was 10m: slower responses fail now']
  ]
  for (const [old, now, risk] of ofUpstream) {
    t.same(risks([old, {}], [now, {}]), [`upstreams.b.${risk}`])
    // A time-out that is raised is none.
    t.same(risks([now, {}], [old, {}]), [])
  }

  const ofRoute: Array<[now: object, risk: string]> = [
    [{ timeout: '5s' }, '.timeout is 5s, it was 15s: slower responses fail now'],
    [{ totalTimeout: '30s' }, '.totalTimeout is 30s, it was 10m: slower responses fail now'],
    [
      { fallback: { body: [] } },
      ' (/api/r) has a fallback: users and monitors see no error when its upstream fails'
    ],
    [
      { cache: 'browser' },
      ' (/api/r) is kept by browsers: users see changes of others as late as its upstream allows'
    ],
    [{ websocket: {} }, ' (/api/r) takes WebSockets: limits count connections, not the messages']
  ]
  for (const [now, risk] of ofRoute) {
    t.same(risks([{}, {}], [{}, now]), [`routes.r${risk}`])
    t.same(risks([{}, now], [{}, now]), [])
  }
  const slow = { responseTimeout: '5s' }
  t.same(risks([slow, {}], [slow, { timeout: '10s' }]), [], 'longer than that of the upstream')
  t.same(risks([slow, { timeout: '10s' }], [slow, {}]), [
    'routes.r.timeout is 5s, it was 10s: slower responses fail now'
  ])
  t.end()
})
