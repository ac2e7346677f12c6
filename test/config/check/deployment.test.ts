/** What `check` says of installations that are unsafe, or useless in a browser. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { stringify } from 'yaml'
import { run } from '../../support/command.ts'
import { faultsOf, knownHash, textFolder } from '../../support/config-files.ts'
import { configFolder, testGateway } from '../../support/gateway.ts'

const sound = { server: { hosts: ['h'], trustedProxies: ['10.0.0.0/8'] } }
const said = (
  t: Test,
  gateway: object,
  texts: Record<string, string> = {},
  made: readonly string[] = []
) => {
  const folder = textFolder(t.after, {
    'gateway.yaml': stringify({ ...sound, ...gateway }),
    ...texts
  })
  for (const name of made) mkdirSync(join(folder, name))
  return faultsOf(folder, { OPS_SECRET: 'x'.repeat(32) }).map(line =>
    line.replace(/^[\w.]+:\d+ /, '')
  )
}

t.test('a production config behind a named proxy has nothing to be said of', t => {
  t.same(said(t, {}), [])
  t.end()
})

t.test(
  'a secure cookie without a proxy that ends TLS is pointed out; a plain one on loopback is not',
  t => {
    t.match(said(t, { server: { hosts: ['h'] } }), [
      /^server\.trustedProxies: warning: is empty, so no proxy ends TLS/
    ])
    const plain = said(t, { server: { hosts: ['h'] }, session: { cookie: { secure: false } } })
    t.notMatch(plain.join('\n'), /TLS/)
    const tls = { certificate: 'server.pem', key: 'x' }
    t.notMatch(said(t, { server: { hosts: ['h'], tls } }).join('\n'), /no proxy ends TLS/)
    t.end()
  }
)

t.test(
  'a block that is a large part of the internet is not accepted as a proxy without a warning',
  t => {
    for (const block of ['0.0.0.0/0', '::/0', '128.0.0.0/1', '2000::/3']) {
      t.match(
        said(t, { server: { hosts: ['h'], trustedProxies: [block] } }),
        [/^server\.trustedProxies\.0: warning: .* is a large part of the internet/],
        block
      )
    }
    t.same(
      said(t, {
        server: {
          hosts: ['h'],
          trustedProxies: ['10.0.0.0/8', '2001:db8::/32', '127.0.0.1', '::1']
        }
      }),
      []
    )
    t.end()
  }
)

t.test('the console’s folder is there, and does not hold the config', t => {
  for (const root of ['.', './', '..', '../..', '/', 'x/..']) {
    t.match(
      said(t, { console: { root } }),
      [/^console\.root: contains the config folder: anyone could download users\.yaml/],
      root
    )
  }
  t.match(said(t, { console: { root: 'dist' } }), [
    /^console\.root: warning: there is no such folder: /
  ])
  t.match(said(t, { console: { root: 'users.yaml' } }), [/there is no such folder/])
  t.same(said(t, { console: { root: 'dist' } }, {}, ['dist']), [])
  t.same(said(t, { console: { root: '..dist' } }, {}, ['..dist']), [])
  t.end()
})

t.test('an operators’ listener beyond this machine wants a secret of its own', t => {
  for (const listen of ['0.0.0.0:9090', '[::]:9090', '10.0.0.1:9090']) {
    t.match(said(t, { ops: { listen } }), [
      /^ops\.listen: warning: .* can be reached from other machines, and ops\.secret is empty/
    ])
    t.same(said(t, { ops: { listen, secret: '${OPS_SECRET}' } }), [])
  }
  for (const listen of ['127.0.0.1:9090', '[::1]:9090', 'localhost:9090']) {
    t.same(said(t, { ops: { listen } }), [])
  }
  t.end()
})

t.test('hashes of different costs are a warning', t => {
  const costly = knownHash.replace('t=2', 't=3')
  const users = (...hashes: readonly string[]) => ({
    'users.yaml': stringify({
      users: Object.fromEntries(hashes.map((password, at) => [`user-${at}`, { password }]))
    })
  })
  t.match(said(t, {}, users(knownHash, costly, knownHash)), [
    /^users: warning: the hashes differ in cost \(m=19456,t=2,p=1; m=19456,t=3,p=1\)/
  ])
  t.same(said(t, {}, users(costly, costly)), [])
  t.end()
})

t.test('a password hash that no machine can compute is a fault', t => {
  const users = (cost: string) => ({
    'users.yaml': stringify({
      users: { eve: { password: knownHash.replace('m=19456,t=2,p=1', cost) } }
    })
  })
  for (const cost of ['m=9999999,t=2,p=1', 'm=19456,t=999,p=1', 'm=19456,t=2,p=99']) {
    t.match(said(t, {}, users(cost)), [/^users\.eve\.password: costs too much to verify/], cost)
  }
  t.same(said(t, {}, users('m=2097152,t=1,p=4')), [])
  t.end()
})

t.test(
  'a token that no upstream gets is pointed out, as is a credential that no source gives',
  t => {
    const source = {
      kind: 'upstream-login',
      upstream: 'b',
      path: '/in',
      user: { id: 'id' },
      token: 'token'
    }
    const routes = (credential: string) => ({
      'routes.yaml': stringify({ upstreams: { b: { url: 'http://b', credential } }, routes: {} })
    })
    const ofSource = (more: object, credential: string) =>
      said(t, { login: { sources: [{ ...source, ...more }] } }, routes(credential))
    t.match(ofSource({}, 'none'), [
      /^login\.sources\.0\.token: warning: no upstream has a `credential` that sends the token/
    ])
    t.match(ofSource({ cookies: ['sid'] }, 'bearer'), [
      /^login\.sources\.0\.cookies: warning: no upstream has a `credential` that sends cookies/
    ])
    t.match(said(t, {}, routes('bearer')).join(), /no source of login\.sources gives a token/)
    for (const credential of ['bearer', 'header:x-token']) t.same(ofSource({}, credential), [])
    t.end()
  }
)

t.test('the start says so too, and one line tells of sign-ins over http', async t => {
  const folder = await configFolder({ gateway: { session: { cookie: { secure: true } } } })
  const gateway = await testGateway(t.after, folder)
  t.ok(
    gateway.log.some(
      ({ level, msg }) => level === 'warn' && String(msg).includes('no proxy ends TLS')
    )
  )
  const insecure = () => gateway.log.filter(({ event }) => event === 'login.insecure')
  t.same(insecure(), [])
  await gateway.signIn()
  await gateway.reload('operator')
  await gateway.signIn('bob')
  t.equal(insecure().length, 1)
  t.match(insecure()[0], {
    level: 'warn',
    msg: /name the proxy that ends TLS in server\.trustedProxies/
  })
  t.match((await run(['check', '--config', folder])).out, /no proxy ends TLS/)
})

t.test('a sign-in that a trusted proxy had by https needs no line', async t => {
  const gateway = await testGateway(t.after, {
    gateway: { server: { trustedProxies: ['127.0.0.1'] }, session: { cookie: { secure: true } } }
  })
  const { status } = await gateway.call('/api/auth/admin/login', {
    json: { username: 'alice', password: 'correct horse battery' },
    headers: { 'x-forwarded-proto': 'https' }
  })
  t.equal(status, 200)
  t.notOk(gateway.log.some(({ event }) => event === 'login.insecure'))
})
