/** The request headers of a route, compiled from stages, against the same stages one by one. */
import { IncomingMessage, type IncomingHttpHeaders } from 'node:http'
import { inspect, isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import t from 'tap'
import { addingStages } from '../../src/proxy/added-headers.ts'
import {
  type ForwardedFor,
  requestHeaders,
  type RequestHeaderOptions
} from '../../src/proxy/headers.ts'
import { kindOf, passingStages } from '../../src/proxy/passing-headers.ts'
import { tokenNamesOf } from '../../src/proxy/token-names.ts'
import { seed } from '../support/seed.ts'

const lists = 100_000
const listsOfRoute = 250

type Build = ReturnType<typeof requestHeaders>

/** Each stage is a pass of its own over all headers. */
function stageByStage(options: RequestHeaderOptions): Build {
  return (headers, caller, hasBody, isRead) => {
    const kind = kindOf(hasBody, isRead)
    const listed = (headers.connection ?? '').split(',').map(name => name.trim().toLowerCase())
    let left = Object.entries(headers)
    for (const stage of passingStages(options)) {
      left = left.filter(([name]) => (stage(name) & kind) !== 0)
    }
    left = left.filter(([name]) => !listed.includes(name))
    let sent: ReturnType<Build> = Object.fromEntries(left as Array<[string, string]>)
    for (const stage of addingStages(options)) {
      const added = { ...sent }
      stage(added, headers, caller, hasBody)
      sent = added
    }
    return sent
  }
}

const names = [
  ...['Accept', 'User-Agent', 'X-Tenant', 'If-Match', 'X-A', 'X-B', 'constructor', 'X_User_Id'],
  ...['Accept-Encoding', 'Range', 'If-Range', 'If-None-Match', 'If-Modified-Since'],
  ...['X-User-Id', 'X-User-Name', 'X-User-Roles', 'X-Source', 'X-Role', 'Remote-User', 'X-Who'],
  ...['X-Forwarded-For', 'X-Forwarded-Host', 'Forwarded', 'X-Real-IP', 'X-Request-Id'],
  ...['Keep-Alive', 'TE', 'Upgrade', 'Transfer-Encoding', 'Proxy-Authorization'],
  ...['Host', 'Content-Length', 'Content-Type', 'Authorization'],
  ...['X-Token', 'X-Access-Token', 'X-Back-End-Key']
]
const values = ['', '1', 'a, b', 'W/"x"', 'Bearer of-the-client']

const anyOf = <T>(all: readonly T[]) => fc.constantFrom(...all)
/** Some of them in a text, in any order and also twice. */
const listOf = (parts: readonly string[], separator: string) =>
  fc.array(anyOf(parts), { maxLength: 5 }).map(chosen => chosen.join(separator))
const connections = listOf([...names, 'x-tenant', 'keep-alive', 'close', '', '\tX-A '], ', ')
const pairs = ['a=1', 'b=2', 'a="3"', ' a =4', 'token=5', 'sid', '=6', 'b=2=3', '\ta=7', '', 'A=8']
const cookies = listOf(pairs, ';')

/** Lines of which requests are made: drawing a whole line is faster than making one. */
const pool = [
  ...names.flatMap(name => values.map(value => [name, value])),
  ...fc.sample(connections, { numRuns: 20, seed }).map(value => ['Connection', value]),
  ...fc.sample(cookies, { numRuns: 30, seed }).map(value => ['Cookie', value])
].flatMap(([name = '', value = '']) => [
  [name, value],
  [name.toLowerCase(), value],
  [name.toUpperCase(), value]
])

/** Node's own method, without a parser. */
const addLines = '_addHeaderLines'

/** As Node reads the lines of a request, some of them sent twice. */
function read(lines: readonly string[]): IncomingHttpHeaders {
  const message = new IncomingMessage(null as never) as IncomingMessage & {
    readonly [addLines]: (lines: readonly string[], count: number) => void
  }
  message[addLines](lines, lines.length)
  return message.headers
}

const session = fc.record({
  id: fc.constant('s'),
  identity: fc.record({
    id: anyOf(['7', 'é']),
    username: fc.constant('alice'),
    name: fc.constant('Alice'),
    roles: anyOf([[], ['admin', 'a,b']]),
    profile: fc.constant({})
  }),
  source: anyOf(['backend', 'users-file']),
  credential: anyOf([{}, { token: 't' }, { cookies: 'up=1; more=2' }]),
  remembered: fc.constant(false),
  createdAt: fc.constant(0),
  absoluteEnd: fc.constant(1),
  idleMs: fc.constant(1),
  address: fc.constant(''),
  agent: fc.constant('')
})
const callers = fc.sample(
  fc.record<ForwardedFor>({
    address: anyOf(['192.0.2.7', '']),
    protocol: anyOf(['http', 'https']),
    host: anyOf([undefined, 'console.example.com']),
    requestId: fc.constant('req-1'),
    session: fc.option(session, { nil: undefined })
  }),
  { numRuns: 200, seed }
)

const request = fc.tuple(
  fc.array(anyOf(pool), { maxLength: 12, size: 'max' }).map(lines => lines.flat()),
  anyOf(callers),
  fc.boolean(),
  fc.boolean()
)
const options: fc.Arbitrary<RequestHeaderOptions> = fc.record({
  identity: anyOf([
    { id: 'x-user-id', username: 'x-user-name', roles: 'x-user-roles', prefix: false },
    { id: 'x-who', username: 'x-user-name', roles: 'x-role', prefix: true, source: 'x-source' }
  ]),
  tellIdentity: fc.boolean(),
  credential: anyOf(['none', 'bearer', 'cookies', 'header:x-back-end-key']),
  credentialScheme: anyOf([undefined, 'Token']),
  credentialFrom: anyOf([undefined, undefined, 'backend']),
  passAuthorization: fc.boolean(),
  passCookies: fc.subarray(['a', 'b', 'token']),
  passHeaders: anyOf([undefined, [], ['accept', 'x-a', 'x-access-token', 'content-type']]),
  passRefusedHeaders: fc.subarray(['x-role', 'x-real-ip']),
  tokenNames: fc
    .tuple(fc.subarray(['x-token', 'x-access-token', 'authorization']), fc.subarray(['token']))
    .map(([tokenHeaders, tokenCookies]) =>
      tokenNamesOf({ tokenHeaders, tokenCookies, tokenQuery: [] })
    ),
  shaped: fc.boolean()
})

/** The headers, or the refusal of a session whose credential is another back-end's. */
function resultOf(build: Build, ...request: Parameters<Build>) {
  try {
    return build(...request)
  } catch (error) {
    return String(error)
  }
}

t.test('compiled and stage by stage, 100,000 header lists give the same', async t => {
  let refused = 0
  const routes = fc.sample(options, { numRuns: lists / listsOfRoute, seed })
  for (const [index, route] of routes.entries()) {
    const compiled = requestHeaders(route)
    const staged = stageByStage(route)
    const requests = fc.sample(request, { numRuns: listsOfRoute, seed: seed + index })
    for (const [lines, caller, hasBody, isRead] of requests) {
      const headers = read(lines)
      const expected = resultOf(staged, headers, caller, hasBody, isRead)
      const result = resultOf(compiled, headers, caller, hasBody, isRead)
      if (!isDeepStrictEqual(result, expected)) {
        return t.strictSame(result, expected, inspect({ route, lines, caller, hasBody, isRead }))
      }
      if (typeof expected === 'string') refused++
    }
  }
  t.ok(refused > 0 && refused < lists / 2, `${refused} were refused for their credential`)
})
