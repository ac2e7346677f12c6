import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { loadConfig } from '../../../src/config/load/load.ts'
import { ConfigError, describeFault } from '../../../src/config/schema/faults.ts'
import { testAuthority } from '../../support/authority.ts'
import { stopClock } from '../../support/clock.ts'
import { configFolder } from '../../support/gateway.ts'

const first = testAuthority(t.after)
const second = testAuthority(t.after)

interface Over {
  readonly tls: object
  readonly server?: object
}

/** About `server`, with file and line. */
async function reportsOf({ tls, server = {} }: Over): Promise<string[]> {
  const folder = await configFolder({
    gateway: { server: { tls, hosts: ['localhost'], ...server } }
  })
  const textsOf = (faults: ConfigError['faults']) =>
    faults
      .map(fault => describeFault(fault).replace(folder, ''))
      .filter(text => text.includes(' server.'))
  try {
    return textsOf(loadConfig(folder, {}).warnings)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return textsOf(error.faults)
  }
}

const { certificate } = first
const day = 86_400_000
const pair = { certificate, key: `file:${first.key}` }

t.test('a certificate with its key is no fault', async t => {
  t.same(await reportsOf({ tls: pair }), [])
})

t.test('a pair that cannot be used is a fault with file and line', async t => {
  const folder = t.testdir({ 'no.pem': 'no certificate' })
  const no = join(folder, 'no.pem')
  const faults: ReadonlyArray<[object, RegExp]> = [
    [{ ...pair, certificate: 'away.pem' }, /yaml:\d+ server\.tls\.certificate: .*read \(ENOENT\)/],
    [{ ...pair, key: 'file:away.pem' }, /yaml:\d+ server\.tls\.key: .*cannot be read \(ENOENT\)/],
    [{ ...pair, certificate: no }, /yaml:\d+ server\.tls\.certificate: .*does not begin with a/],
    [{ ...pair, key: `file:${no}` }, /yaml:\d+ server\.tls\.key: is not a private key/],
    [
      { ...pair, key: `file:${second.key}` },
      /yaml:\d+ server\.tls\.key: does not fit the certificate.*\(line \d+\)$/
    ],
    [{ certificate }, /yaml:\d+ server\.tls: the key "key" is missing/],
    [{ ...pair, key: readFileSync(first.key, 'utf8') }, /a secret never stands in the file itself/]
  ]
  for (const [tls, fault] of faults) t.match(await reportsOf({ tls }), [fault])
})

t.test('a chain is read from its first certificate on', async t => {
  const chain = join(t.testdir({}), 'chain.pem')
  const texts = [first, second].map(each => readFileSync(each.certificate, 'utf8'))
  writeFileSync(chain, texts.join(''))
  t.same(await reportsOf({ tls: { ...pair, certificate: chain } }), [])
  writeFileSync(chain, texts.toReversed().join(''))
  t.match(await reportsOf({ tls: { ...pair, certificate: chain } }), [/does not fit/])
})

t.test('a certificate that browsers refuse is a warning', async t => {
  t.match(await reportsOf({ tls: pair, server: { hosts: ['localhost', 'other.example'] } }), [
    /certificate: warning: does not name "other\.example" of server\.hosts/
  ])
  const pass = stopClock(t.after)
  pass(3 * day)
  t.match(await reportsOf({ tls: pair }), [/certificate: warning: expired on .* GMT: browsers/])
  pass(-10 * day)
  t.match(await reportsOf({ tls: pair }), [/certificate: warning: is not valid before .* GMT/])
})

t.test('the listener that redirects needs names, and an address of its own', async t => {
  const tls = { ...pair, redirect: '127.0.0.1:0' }
  t.same(await reportsOf({ tls }), [])
  t.match(await reportsOf({ tls, server: { hosts: [] } }), [/tls\.redirect: needs `server\.hosts`/])
  const server = { listen: '127.0.0.1:443' }
  t.match(await reportsOf({ tls: { ...tls, redirect: '127.0.0.1:443' }, server }), [
    /tls\.redirect: is the address of another listener/
  ])
  t.match(await reportsOf({ tls: { ...tls, redirect: '127.0.0.1:70000' } }), [
    /tls\.redirect: expected a port of at most 65535/
  ])
  t.match(await reportsOf({ tls, server: { listen: '127.0.0.1:8443' } }), [
    /tls\.redirect: warning: redirects to port 443, but server\.listen has 8443/
  ])
  t.same(await reportsOf({ tls, server: { listen: '127.0.0.1:8443', ports: [443] } }), [])
})
