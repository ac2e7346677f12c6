import { join } from 'node:path'
import t from 'tap'
import { loadConfig } from '../../../src/config/load/load.ts'
import { ConfigError, describeFault } from '../../../src/config/schema/faults.ts'
import { testAuthority } from '../../support/authority.ts'
import { configFolder } from '../../support/gateway.ts'

const { certificate, key } = testAuthority(t.after)
const tls = { certificate, key: `file:${key}` }

interface Files {
  readonly ops?: object
  readonly gateway?: object
  readonly limits?: Record<string, unknown>
  readonly routes?: Record<string, unknown>
}

const isAbout = (text: string) =>
  /^\w+ \S+ (?:ops\.(?!listen)|\S*(?:\.cookie(?:\.name)?:|passCookies))/.test(text)

/** What `check` says of operators, as "fault" or "warning" with key and message. */
async function said({ ops, gateway, limits, routes }: Files): Promise<string[]> {
  const folder = await configFolder({
    gateway: { ...gateway, ...(ops && { ops }) },
    ...(limits && { limits }),
    ...(routes && { routes })
  })
  const textOf = (fault: ConfigError['faults'][number]) =>
    `${fault.severity} ${describeFault(fault).replace(join(folder, ''), '')}`
  try {
    return loadConfig(folder, {}).warnings.map(textOf).filter(isAbout)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.faults.map(textOf).filter(isAbout)
  }
}

t.test('operators’ passwords cross no network in clear', async t => {
  const role = 'admin'
  for (const listen of ['0.0.0.0:9090', '[::]:9090', '10.0.0.1:9090', '192.168.1.1:9090']) {
    t.match(await said({ ops: { listen, role } }), [/^fault .*ops\.role.*clear/], listen)
    t.same(await said({ ops: { listen } }), [], `${listen} without the role`)
    const behindProxy = await said({ ops: { listen, role, trustedProxies: ['10.0.0.5'] } })
    t.same(behindProxy, [])
    t.same(await said({ ops: { listen, role, tls } }), [])
  }
  for (const listen of ['127.0.0.1:9090', '127.1.2.3:9090', '[::1]:9090', 'localhost:9090']) {
    t.same(await said({ ops: { listen, role } }), [], listen)
  }
})

t.test('a source that operators may come from has to exist', async t => {
  const ops = { role: 'admin', sources: ['stuff'] }
  t.match(await said({ ops }), [/^fault .*ops\.sources.*no source "stuff"/])
})

t.test('a back-end whose roles make operators is warned of', async t => {
  const source = { kind: 'upstream-login', upstream: 'b', path: '/in', user: { id: 'id' } }
  const files = {
    gateway: { login: { sources: [source] } },
    routes: { upstreams: { b: { url: 'http://127.0.0.1:9' } } }
  }
  const named = { role: 'admin', sources: ['upstream-login:b'] }
  const warnings = async (ops: object) => await said({ ...files, ops })
  t.match(await warnings(named), [/^warning .*makes operators of the gateway/])
  t.match(await warnings({ role: 'admin' }), [/^warning .*nobody can have it/])
  t.match(await warnings({ sources: ['upstream-login:b'] }), [/makes operators/, /no effect/])
})

t.test('no other cookie has the name of the operators’ one', async t => {
  const cookie = { name: 'console_ops', secure: false }
  t.match(await said({ gateway: { session: { cookie } } }), [/^fault .*session\.cookie\.name/])
  const routes = {
    upstreams: { b: { url: 'http://127.0.0.1:9' } },
    routes: { r: { path: '/api/r', upstream: 'b', passCookies: ['console_ops'] } }
  }
  t.match(await said({ routes }), [/^fault .*passCookies.*own cookies/])
})

t.test('ops.tls is held to the rules of server.tls', async t => {
  const other = testAuthority(t.after)
  t.match(await said({ ops: { tls: { ...tls, key: `file:${other.key}` } } }), [
    /^fault .*ops\.tls\.key: does not fit the certificate/
  ])
  t.match(await said({ ops: { tls, hosts: ['ops.example.com'] } }), [
    /^warning .*ops\.tls\.certificate: .*does not name "ops\.example\.com"/
  ])
})

t.test('trusted proxies are addresses', async t => {
  t.match(await said({ ops: { trustedProxies: ['proxy'] } }), [/^fault .*ops\.trustedProxies/])
})
