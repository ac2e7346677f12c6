/** Config with a secret at every key that takes one, and a search for their values. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { schemaOf } from '../../src/config/schema/config.ts'
import type { Node } from '../../src/config/schema/node.ts'
import { testAuthority } from './authority.ts'

const valueOf = (name: string) => `value-of-${name}-${'x'.repeat(32)}`
const names =
  'SESSION_1 SESSION_2 OPS AUDIT REDIS SENTINEL API_KEY SERVICE_KEY LDAP JWT OIDC'.split(' ')

/**
 * @param sslFolder gets the files of the private keys
 * @param redis whether the passwords of Redis are among them: then none can be reached
 */
export function allSecrets(
  cleanUp: (undo: () => unknown) => void,
  sslFolder: string,
  redis: boolean
) {
  const { key, certificate } = testAuthority(cleanUp)
  const keyFiles = ['server.key', 'ops.key', 'client.key', 'jwt.key'].map(name =>
    join(sslFolder, name)
  )
  const [serverKey, opsKey, clientKey, jwtKey] = keyFiles
  const pem = readFileSync(key, 'utf8')
  for (const file of keyFiles) writeFileSync(file, pem)
  return {
    gateway: {
      server: { tls: { certificate, key: `file:${serverKey}` } },
      session: { secrets: ['${SESSION_1}', '${SESSION_2}'] },
      ops: { secret: '${OPS}', tls: { certificate, key: `file:${opsKey}` } },
      audit: { key: ['${AUDIT}'] },
      login: {
        sources: {
          'users-file': { kind: 'users-file' },
          'staff': {
            kind: 'ldap',
            urls: ['ldaps://127.0.0.1:9'],
            bind: { dn: 'cn=console,dc=example', password: '${LDAP}' },
            base: 'dc=example'
          },
          'sso': {
            kind: 'oidc',
            issuer: 'https://127.0.0.1:9',
            clientId: 'console',
            clientSecret: '${OIDC}'
          }
        }
      },
      identity: { prefix: true },
      ...(redis && {
        redis: {
          sentinels: ['127.0.0.1:1'],
          password: '${REDIS}',
          sentinelPassword: '${SENTINEL}'
        }
      })
    },
    upstream: {
      url: 'https://127.0.0.1:9',
      headers: { 'x-api-key': '${API_KEY}' },
      tls: { certificate, key: `file:${clientKey}` }
    },
    /** Further upstreams, with tokens of their own. */
    others: {
      asked: {
        url: 'http://127.0.0.1:9',
        credential: { exchange: { path: '/t', token: 't', headers: { 'x-key': '${SERVICE_KEY}' } } }
      },
      shared: { url: 'http://127.0.0.1:9', credential: { jwt: { secret: '${JWT}' } } },
      signed: { url: 'http://127.0.0.1:9', credential: { jwt: { keys: [`file:${jwtKey}`] } } }
    },
    environment: Object.fromEntries(names.map(name => [name, valueOf(name)])),
    /** Texts of which none may leave the process. */
    values: [
      ...names.map(valueOf),
      ...pem.split('\n').filter(line => /^[A-Za-z0-9+/]{20}/.test(line))
    ]
  }
}

type Key = readonly [path: string, node: Node]

/** Every key of the files with such a format, dotted; `*` for names that operators choose. */
export function keysOf(format: RegExp): Key[] {
  const keysBelow = (schema: Node, path: string, above: readonly Node[]): Key[] => {
    if (format.test(schema.format ?? '')) return [[path, schema]]
    if (above.includes(schema)) return []
    const { properties = {}, patternProperties = {}, items, anyOf = [] } = schema
    const anyName = [...Object.values(patternProperties), ...(items ? [items] : [])]
    const members: Array<readonly [Node, string]> = [
      ...Object.entries(properties).map(([name, member]) => [member, `${path}.${name}`] as const),
      ...anyName.map(member => [member, `${path}.*`] as const),
      ...anyOf.map(branch => [branch, path] as const)
    ]
    return members.flatMap(([member, at]) => keysBelow(member, at, [...above, schema]))
  }
  return Object.entries(schemaOf).flatMap(([file, schema]) => keysBelow(schema, file, []))
}
