import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { stringify } from 'yaml'
import type { JsonRecord } from '../../../src/json/values.ts'
import { configHashes } from '../../../src/config/config-hash.ts'
import { loadConfig, writtenOf } from '../../../src/config/read/load.ts'
import { allSecrets, secretKeys } from '../../support/all-secrets.ts'
import { textFolder } from '../../support/config-files.ts'

function secretFolder(cleanUp: (undo: () => unknown) => void, redis: boolean) {
  const sslFolder = mkdtempSync(join(tmpdir(), 'ssl-'))
  cleanUp(() => rmSync(sslFolder, { recursive: true, force: true }))
  const secrets = allSecrets(cleanUp, sslFolder, redis)
  const texts = {
    'gateway.yaml': stringify({ server: { hosts: ['h'] }, ...secrets.gateway }),
    'routes.yaml': stringify({ upstreams: { orders: secrets.upstream } })
  }
  return { ...secrets, folder: textFolder(cleanUp, texts) }
}

t.test('the written config has a reference at each key that takes a secret', t => {
  const { folder, environment, values } = secretFolder(t.after, true)
  const { written } = loadConfig(folder, environment)
  const text = JSON.stringify(written)
  for (const value of values) t.notOk(text.includes(value))
  t.same(
    secretKeys().toSorted(),
    [
      'gateway.audit.key',
      'gateway.audit.key.*',
      'gateway.ops.secret',
      'gateway.ops.tls.key',
      'gateway.redis.password',
      'gateway.redis.sentinelPassword',
      'gateway.server.tls.key',
      'gateway.session.secrets.*',
      'routes.upstreams.*.headers.*',
      'routes.upstreams.*.tls.key'
    ],
    'another key needs another line in all-secrets.ts'
  )
  t.match(written, {
    gateway: {
      audit: { key: ['${AUDIT}'] },
      ops: { secret: '${OPS}', tls: { key: /^file:.*ops\.key$/ } },
      redis: { password: '${REDIS}', sentinelPassword: '${SENTINEL}' },
      server: { tls: { key: /^file:.*server\.key$/ } },
      session: { secrets: ['${SESSION_1}', '${SESSION_2}'] }
    },
    routes: {
      upstreams: {
        orders: {
          headers: { 'x-api-key': '${API_KEY}' },
          tls: { key: /^file:.*client\.key$/ }
        }
      }
    }
  })
  t.end()
})

/** A config without files as it may be shown. */
const hidden = (value: JsonRecord) => writtenOf({ value, fileOf: () => '' }).gateway

t.test('what stands in the place of a reference by mistake is not kept either', t => {
  for (const secret of ['plain', 12345678, ['a'], { a: 'b' }]) {
    const shown = hidden({ ops: { secret } })
    t.same(shown, { ops: { secret: '(a secret)' } })
  }
  for (const key of ['plain', 12345678, true, { value: 'plain' }]) {
    const shown = hidden({ audit: { key } })
    t.same(shown, { audit: { key: '(a secret)' } })
  }
  for (const secrets of ['plain', 12345678, { mine: 'plain' }]) {
    const shown = hidden({ session: { secrets } })
    t.same(shown, { session: { secrets: '(a secret)' } })
  }
  const lists = { audit: { key: ['${AUDIT}', 'plain'] }, redis: 'redis://:plain@redis' }
  t.same(hidden(lists), {
    audit: { key: ['${AUDIT}', '(a secret)'] },
    redis: '(a secret)'
  })
  t.end()
})

t.test('a value of the environment stays a reference, also where it is no secret', t => {
  const folder = textFolder(t.after, {
    'routes.yaml': 'upstreams: { b: { url: "${BACKEND}" } }'
  })
  const { routes, written } = loadConfig(folder, { BACKEND: 'http://127.0.0.1:9' })
  t.equal(routes.upstreams['b']?.url, 'http://127.0.0.1:9')
  t.same(written.routes, { upstreams: { b: { url: '${BACKEND}' } } })
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
  const hashes = (files: Record<string, string>, values: Record<string, string> = environment) =>
    configHashes(loadConfig(textFolder(t.after, files), values))
  const first = hashes(texts)
  t.match(first, { config: /^[0-9a-f]{16}$/, install: /^[0-9a-f]{16}$/ })
  t.same(hashes(other), first)
  const changed = hashes({
    ...texts,
    'limits.yaml': 'limits: { a: { by: user, max: 1, window: 1s } }'
  })
  t.not(changed.config, first.config)
  t.equal(changed.install, first.install)
  const idle = hashes({
    ...texts,
    'gateway.yaml': `${texts['gateway.yaml']}\nlog: { level: debug }`
  })
  t.equal(idle.config, first.config)
  t.not(idle.install, first.install)
  const rotated = hashes(texts, { ...environment, K: 'another key' })
  t.not(rotated.config, first.config, 'another secret is another config')
  t.end()
})
