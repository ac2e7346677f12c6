import t from 'tap'
import { loadConfig } from '../../../src/config/load/load.ts'
import { ConfigError } from '../../../src/config/schema/faults.ts'
import { configFolder } from '../../support/gateway.ts'

interface Over {
  readonly envelope?: object
  readonly upstream?: object
  readonly route?: object
}

async function faultsOf({ envelope = {}, upstream = {}, route = {} }: Over): Promise<string[]> {
  const folder = await configFolder({
    gateway: { envelope },
    routes: {
      upstreams: { b: { url: 'http://127.0.0.1:9', ...upstream } },
      routes: { r: { path: '/api/r', upstream: 'b', ...route } }
    }
  })
  try {
    loadConfig(folder, {})
    return []
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.faults.flatMap(({ path, line, message, severity }) =>
      severity === 'fault' && line !== undefined ? [`${path}: ${message}`] : []
    )
  }
}

const tokens = {
  tokenHeaders: ['authorization', 'x-access-token', 'x-auth-token'],
  tokenCookies: ['Admin-Token'],
  tokenQuery: ['token']
}

t.test('names of the console’s token are no fault by themselves', async t => {
  t.same(await faultsOf({ envelope: tokens }), [])
  const upstream = { credential: 'header:x-access-token' }
  t.same(await faultsOf({ envelope: tokens, upstream }), [], 'the gateway may send there')
  t.same(await faultsOf({ route: { passAuthorization: true } }), [], 'and others may pass')
})

t.test('a key that passes such a name is a fault that says what to do', async t => {
  const faults: ReadonlyArray<[Over, RegExp]> = [
    [
      { route: { passAuthorization: true } },
      /^routes\.r\.passAuthorization: "authorization" is in `envelope\.tokenHeaders` of gateway\.yaml, .* real token of another user\. Remove it here/
    ],
    [
      { route: { passRefusedHeaders: ['x-auth-token'] } },
      /^routes\.r\.passRefusedHeaders\.0: "x-auth-token" is in `envelope\.tokenHeaders`/
    ],
    [
      { upstream: { passHeaders: ['accept', 'x-access-token'] } },
      /^upstreams\.b\.passHeaders\.1: "x-access-token" is in `envelope\.tokenHeaders`/
    ],
    [
      { route: { passCookies: ['theme', 'Admin-Token'] } },
      /^routes\.r\.passCookies\.1: the cookie "Admin-Token" is in `envelope\.tokenCookies`/
    ],
    [
      { route: { query: { rename: { Token: 'ticket' } } } },
      /^routes\.r\.query\.rename\.Token: the parameter "Token" is in `envelope\.tokenQuery`/
    ],
    [
      { route: { query: { rename: { ticket: 'token' } } } },
      /^routes\.r\.query\.rename\.ticket: the parameter "token" is in `envelope\.tokenQuery`/
    ]
  ]
  for (const [over, message] of faults) {
    t.match(await faultsOf({ envelope: tokens, ...over }), [message])
  }
})

t.test('a name in which no token travels is a fault', async t => {
  t.match(await faultsOf({ envelope: { tokenHeaders: ['cookie'] } }), [
    /^envelope\.tokenHeaders\.0: .*`tokenCookies`/
  ])
  t.match(await faultsOf({ envelope: { tokenHeaders: ['x-token', 'content-type'] } }), [
    /^envelope\.tokenHeaders\.1: "content-type" is a header of HTTP itself/
  ])
  t.match(await faultsOf({ envelope: { tokenCookies: ['console_sid'] } }), [
    /^envelope\.tokenCookies\.0: is the session cookie/
  ])
})
