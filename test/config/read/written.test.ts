import t from 'tap'
import { configHash } from '../../../src/config/diff.ts'
import { loadConfig } from '../../../src/config/read/load.ts'
import { secretKeys } from '../../support/all-secrets.ts'
import { textFolder } from '../../support/config-files.ts'

t.test('each key that takes a secret is known to the tests of secrets', async t => {
  t.same(
    secretKeys().toSorted(),
    [
      'gateway.audit.key',
      'gateway.audit.key.*',
      'gateway.login.sources.*.bind.password',
      'gateway.login.sources.*.clientSecret',
      'gateway.ops.secret',
      'gateway.ops.tls.key',
      'gateway.redis.password',
      'gateway.redis.sentinelPassword',
      'gateway.server.tls.key',
      'gateway.session.secrets.*',
      'routes.upstreams.*.credential.exchange.headers.*',
      'routes.upstreams.*.credential.jwt.keys.*',
      'routes.upstreams.*.credential.jwt.secret',
      'routes.upstreams.*.headers.*',
      'routes.upstreams.*.tls.key'
    ],
    'another key needs another line in all-secrets.ts'
  )
  t.end()
})

t.test('the same config has the same hash in another folder and in another order', t => {
  const texts = {
    'gateway.yaml': 'session: { secrets: ["${S}"] }\nserver: { listen: "127.0.0.1:1" }',
    'routes.yaml':
      'upstreams: { a: { url: "http://a:1" }, b: { url: "http://b:1", headers: { x: "${K}" } } }'
  }
  const other = {
    'gateway.yaml': 'server: { listen: "127.0.0.1:2" }\nsession: { secrets: ["${S}"] }',
    'routes.yaml':
      'upstreams: { b: { headers: { x: "${K}" }, url: "http://b:1" }, a: { url: "http://a:1" } }'
  }
  const environment = { S: 's'.repeat(32), K: 'key-of-b' }
  const hashOf = (files: Record<string, string>, values: Record<string, string> = environment) =>
    configHash(loadConfig(textFolder(t.after, files), values))
  const first = hashOf(texts)
  t.match(first, /^[0-9a-f]{16}$/)
  t.equal(hashOf(other), first)
  const limits = 'limits: { a: { by: user, max: 1, window: 1s } }'
  t.not(hashOf({ ...texts, 'limits.yaml': limits }), first)
  const gateway = `${texts['gateway.yaml']}\nlog: { level: debug }`
  t.equal(hashOf({ ...texts, 'gateway.yaml': gateway }), first)
  t.not(hashOf(texts, { ...environment, K: 'another' }), first, 'another secret: another config')
  t.end()
})
