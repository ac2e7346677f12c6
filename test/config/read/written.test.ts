import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { stringify } from 'yaml'
import type { JsonRecord } from '../../../src/json/values.ts'
import { configHash } from '../../../src/config/config-hash.ts'
import { openFolder } from '../../../src/config/read/files.ts'
import { loadConfig } from '../../../src/config/read/load.ts'
import { folderSteps, writtenOf } from '../../../src/config/read/presets.ts'
import { runSteps } from '../../../src/config/schema/steps.ts'
import { allSecrets, secretKeys } from '../../support/all-secrets.ts'
import { textFolder } from '../../support/config-files.ts'

function secretFolder(cleanUp: (undo: () => unknown) => void, redis: boolean) {
  const sslFolder = mkdtempSync(join(tmpdir(), 'ssl-'))
  cleanUp(() => rmSync(sslFolder, { recursive: true, force: true }))
  const secrets = allSecrets(cleanUp, sslFolder, redis)
  const texts = {
    'gateway.yaml': stringify({ server: { hosts: ['h'] }, ...secrets.gateway }),
    'routes.yaml': stringify({ upstreams: { orders: secrets.upstream, ...secrets.others } })
  }
  return { ...secrets, folder: textFolder(cleanUp, texts) }
}

t.test('the written config has a reference at each key that takes a secret', t => {
  const { folder, environment, values } = secretFolder(t.after, true)
  const written = writtenOf(runSteps(folderSteps(openFolder(folder, environment))))
  const text = JSON.stringify(written)
  for (const value of values) t.notOk(text.includes(value))
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
        },
        asked: { credential: { exchange: { headers: { 'x-key': '${SERVICE_KEY}' } } } },
        shared: { credential: { jwt: { secret: '${JWT}' } } },
        signed: { credential: { jwt: { keys: [/^file:.*jwt\.key$/] } } }
      }
    }
  })
  t.end()
})

/** A config without files as it may be shown. */
const hidden = (value: JsonRecord) => writtenOf({ value }).gateway

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
