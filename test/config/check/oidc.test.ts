import t from 'tap'
import { reportsOf } from '../../support/config-files.ts'

interface Over {
  readonly source?: object
  readonly gateway?: object
  readonly routes?: object
}

const environment = { OIDC_SECRET: 'secret' }

function faultsOf({ source, gateway, routes }: Over): string[] {
  const sso = {
    kind: 'oidc',
    issuer: 'https://sso.example.com/realms/staff',
    clientId: 'console',
    clientSecret: '${OIDC_SECRET}',
    ...source
  }
  const files = { login: { sources: { sso, file: { kind: 'users-file' } } }, ...gateway }
  const identity = { source: 'x-user-source' }
  return reportsOf({ gateway: { identity, ...files }, routes }, environment).filter(
    report => !/^(?:server|console\.root)\b/.test(report)
  )
}

t.test('what a provider needs passes', t => {
  const gateway = { console: { root: 'site', signIn: 'sso' } }
  const source = { require: { groups: ['console'], email_verified: [true] }, user: { id: 'oid' } }
  t.same(faultsOf({ gateway, source }), [])
  t.same(faultsOf({ source: { issuer: 'http://127.0.0.1:8080/realms/staff' } }), [])
  t.end()
})

t.test('claims that change, plain http and clashes of paths are faults', t => {
  const route = (path: string) => ({
    upstreams: { b: { url: 'http://127.0.0.1:9' } },
    routes: { r: { path, upstream: 'b' } }
  })
  const rows: ReadonlyArray<readonly [Over, RegExp]> = [
    [{ source: { user: { id: 'email' } } }, /sso\.user\.id: "email" may change/],
    [{ source: { path: '/' } }, /sso\.path: must not end with a slash/],
    [{ source: { user: { id: 'preferred_username' } } }, /sso\.user\.id: "preferred_username" may/],
    [{ source: { issuer: 'http://sso.example.com' } }, /sso\.issuer: has to be https/],
    [{ source: { scope: ['profile'] } }, /unknown key "scope"/],
    [{ source: { clientSecret: 'in-clear' } }, /sso\.clientSecret: a secret never stands in/],
    [{ gateway: { ops: { role: 'admin', sources: ['sso'] } } }, /makes operators of the gateway/],
    [{ gateway: { console: { root: 'site', signIn: 'file' } } }, /has to be a source of kind oidc/],
    [{ gateway: { console: { root: 'site', signIn: 'other' } } }, /there is no source "other"/],
    [
      { routes: route('/api/auth/oidc/sso/finish') },
      /GET \S+\/finish is taken by login.sources.sso/
    ]
  ]
  for (const [over, fault] of rows) {
    t.match(faultsOf(over).join('\n'), fault, JSON.stringify(over))
  }
  t.end()
})

t.end()
