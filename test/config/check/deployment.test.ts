/** What `check` says of installations that are unsafe, or useless in a browser. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { stringify } from 'yaml'
import { testAuthority } from '../../support/authority.ts'
import { stopClock } from '../../support/clock.ts'
import { run } from '../../support/command.ts'
import {
  faultsOf,
  knownHash,
  reportsOf,
  textFolder,
  type Trees
} from '../../support/config-files.ts'
import { configFolder, testGateway } from '../../support/gateway.ts'

const first = testAuthority(t.after)
const second = testAuthority(t.after)
const { certificate } = first
const pair = { certificate, key: `file:${first.key}` }
const day = 86_400_000

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
      said(t, { login: { sources: { b: { ...source, ...more } } } }, routes(credential))
    t.match(ofSource({}, 'none'), [
      /^login\.sources\.b\.token: warning: no upstream has a `credential` that sends the token/
    ])
    t.match(ofSource({ cookies: ['sid'] }, 'bearer'), [
      /^login\.sources\.b\.cookies: warning: no upstream has a `credential` that sends cookies/
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

/** About operators and the names of cookies. */
function opsReports({ ops, gateway, ...files }: Trees & { readonly ops?: object }): string[] {
  const trees = { gateway: { ...gateway, ...(ops && { ops }) }, ...files }
  return reportsOf(trees).filter(report =>
    /^(?:ops\.(?!listen)|\S*(?:\.cookie(?:\.name)?:|passCookies\.\d:))/.test(report)
  )
}

t.test('operators’ passwords cross no network in clear', async t => {
  const role = 'admin'
  for (const listen of ['0.0.0.0:9090', '[::]:9090', '10.0.0.1:9090', '192.168.1.1:9090']) {
    t.match(opsReports({ ops: { listen, role } }), [/^ops\.role: (?!warning).*clear/], listen)
    t.same(opsReports({ ops: { listen } }), [], `${listen} without the role`)
    const behindProxy = opsReports({ ops: { listen, role, trustedProxies: ['10.0.0.5'] } })
    t.same(behindProxy, [])
    t.same(opsReports({ ops: { listen, role, tls: pair } }), [])
  }
  for (const listen of ['127.0.0.1:9090', '127.1.2.3:9090', '[::1]:9090', 'localhost:9090']) {
    t.same(opsReports({ ops: { listen, role } }), [], listen)
  }
})

t.test('a source that operators may come from has to exist', async t => {
  const ops = { role: 'admin', sources: ['stuff'] }
  t.match(opsReports({ ops }), [/^ops\.sources\S*: (?!warning).*no source "stuff"/])
})

t.test('a back-end whose roles make operators is warned of', async t => {
  const source = { kind: 'upstream-login', upstream: 'b', path: '/in', user: { id: 'id' } }
  const files = {
    gateway: { login: { sources: { b: source } } },
    routes: { upstreams: { b: { url: 'http://127.0.0.1:9' } } }
  }
  const named = { role: 'admin', sources: ['b'] }
  const warnings = (ops: object) => opsReports({ ...files, ops })
  t.match(warnings(named), [/: warning: .*makes operators of the gateway/])
  t.match(warnings({ role: 'admin' }), [/: warning: .*nobody can have it/])
  t.match(warnings({ sources: ['b'] }), [/makes operators/, /no effect/])
})

t.test('no other cookie has the name of the operators’ one', async t => {
  const cookie = { name: 'console_ops', secure: false }
  t.match(opsReports({ gateway: { session: { cookie } } }), [/^session\.cookie\.name: (?!warning)/])
  const routes = {
    upstreams: { b: { url: 'http://127.0.0.1:9' } },
    routes: { r: { path: '/api/r', upstream: 'b', passCookies: ['console_ops'] } }
  }
  t.match(opsReports({ routes }), [/passCookies\.0: (?!warning).*a cookie of the gateway itself/])
})

t.test('ops.tls is held to the rules of server.tls', async t => {
  t.match(opsReports({ ops: { tls: { ...pair, key: `file:${second.key}` } } }), [
    /^ops\.tls\.key: does not fit the certificate/
  ])
  t.match(opsReports({ ops: { tls: pair, hosts: ['ops.example.com'] } }), [
    /^ops\.tls\.certificate: warning: .*does not name "ops\.example\.com"/
  ])
})

t.test('trusted proxies are addresses', async t => {
  t.match(opsReports({ ops: { trustedProxies: ['proxy'] } }), [
    /^ops\.trustedProxies\S*: (?!warning)/
  ])
})

/** About `server.tls`, with file and line. */
function tlsReports({ tls, server = {} }: { tls: object; server?: object }): string[] {
  const gateway = { server: { listen: '127.0.0.1:0', tls, hosts: ['localhost'], ...server } }
  const folder = textFolder(t.after, { 'gateway.yaml': stringify(gateway) })
  return faultsOf(folder).filter(report => report.includes(' server.tls'))
}

t.test('a certificate with its key is no fault', async t => {
  t.same(tlsReports({ tls: pair }), [])
})

t.test('a pair that cannot be used is a fault with file and line', async t => {
  const folder = t.testdir({ 'no.pem': 'no certificate' })
  const no = join(folder, 'no.pem')
  const faults: ReadonlyArray<[object, RegExp]> = [
    [
      { ...pair, certificate: 'away.pem' },
      /^gateway\.yaml:\d+ server\.tls\.certificate: .*read \(ENOENT\)/
    ],
    [
      { ...pair, key: 'file:away.pem' },
      /^gateway\.yaml:\d+ server\.tls\.key: .*cannot be read \(ENOENT\)/
    ],
    [
      { ...pair, certificate: no },
      /^gateway\.yaml:\d+ server\.tls\.certificate: .*does not begin with a/
    ],
    [{ ...pair, key: `file:${no}` }, /^gateway\.yaml:\d+ server\.tls\.key: is not a private key/],
    [
      { ...pair, key: `file:${second.key}` },
      /^gateway\.yaml:\d+ server\.tls\.key: does not fit the certificate.*\(line \d+\)$/
    ],
    [{ certificate }, /^gateway\.yaml:\d+ server\.tls: the key "key" is missing/],
    [{ ...pair, key: readFileSync(first.key, 'utf8') }, /a secret never stands in the file itself/]
  ]
  for (const [tls, fault] of faults) t.match(tlsReports({ tls }), [fault])
})

t.test('a chain is read from its first certificate on', async t => {
  const chain = join(t.testdir({}), 'chain.pem')
  const texts = [first, second].map(each => readFileSync(each.certificate, 'utf8'))
  writeFileSync(chain, texts.join(''))
  t.same(tlsReports({ tls: { ...pair, certificate: chain } }), [])
  writeFileSync(chain, texts.toReversed().join(''))
  t.match(tlsReports({ tls: { ...pair, certificate: chain } }), [/does not fit/])
})

t.test('a certificate that browsers refuse is a warning', async t => {
  t.match(tlsReports({ tls: pair, server: { hosts: ['localhost', 'other.example'] } }), [
    /certificate: warning: does not name "other\.example" of server\.hosts/
  ])
  const pass = stopClock(t.after)
  pass(3 * day)
  t.match(tlsReports({ tls: pair }), [/certificate: warning: expired on .* GMT: browsers/])
  pass(-10 * day)
  t.match(tlsReports({ tls: pair }), [/certificate: warning: is not valid before .* GMT/])
})

t.test('the listener that redirects needs names, and an address of its own', async t => {
  const tls = { ...pair, redirect: '127.0.0.1:0' }
  t.same(tlsReports({ tls }), [])
  t.match(tlsReports({ tls, server: { hosts: [] } }), [/tls\.redirect: needs `server\.hosts`/])
  const server = { listen: '127.0.0.1:443' }
  t.match(tlsReports({ tls: { ...tls, redirect: '127.0.0.1:443' }, server }), [
    /tls\.redirect: is the address of another listener/
  ])
  t.match(tlsReports({ tls: { ...tls, redirect: '127.0.0.1:70000' } }), [
    /tls\.redirect: expected a port of at most 65535/
  ])
  t.match(tlsReports({ tls, server: { listen: '127.0.0.1:8443' } }), [
    /tls\.redirect: warning: redirects to port 443, but server\.listen has 8443/
  ])
  t.same(tlsReports({ tls, server: { listen: '127.0.0.1:8443', hosts: ['localhost:443'] } }), [])
})

/** Of each place of a file of authorities, with line and key. */
function faultsWith(pem: string): string[] {
  const folder = textFolder(t.after, {
    'ca.pem': pem,
    'gateway.yaml': 'session: { secrets: ["${S}"] }\nredis:\n  url: rediss://h:1\n  ca: ca.pem\n',
    'routes.yaml': stringify({
      upstreams: {
        a: { url: 'https://a' },
        b: { url: 'https://b', tls: { ca: 'ca.pem' } }
      },
      routes: {
        a: { path: '/api/a', upstream: 'a', rewrite: '/x' },
        b: { path: '/api/b', upstream: 'b', rewrite: '/x' }
      }
    })
  })
  return faultsOf(folder, { S: 's'.repeat(32) }).filter(fault => !fault.includes('warning'))
}

t.test('a file of authorities holds a certificate', async t => {
  const message = 'the file does not begin with a certificate: expected PEM'
  const expected = [
    `gateway.yaml:4 redis.ca: ${message}`,
    `routes.yaml:7 upstreams.b.tls.ca: ${message}`
  ]
  const authority = readFileSync(certificate, 'utf8')
  const bad = {
    'another text': 'a certificate',
    'nothing': '',
    'a key': readFileSync(first.key, 'utf8'),
    'a broken one': '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'
  }
  for (const [title, pem] of Object.entries(bad)) t.same(faultsWith(pem), expected, title)
  const good = {
    'one': authority,
    'several': authority.repeat(2),
    'text before it': `Our authority\n\n${authority}`,
    'lines of Windows': authority.replaceAll('\n', '\r\n')
  }
  for (const [title, pem] of Object.entries(good)) t.same(faultsWith(pem), [], title)
})
