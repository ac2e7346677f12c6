/** Each stage that adds headers to those that pass. */
import type { IncomingHttpHeaders } from 'node:http'
import t from 'tap'
import {
  addAuthorization,
  addBearer,
  addCodingForShape,
  addCookies,
  addCredentialCookies,
  addForwarded,
  addIdentity,
  addingStages,
  type AddingStage,
  addLength,
  addToken,
  type ForwardedFor,
  refuseOtherSources
} from '../../src/proxy/added-headers.ts'
import { tokenNamesOf } from '../../src/proxy/token-names.ts'
import { identityKey } from '../../src/session/identity-key.ts'
import type { Session } from '../../src/session/record.ts'

const identity = { id: 'x-who', username: 'x-name', roles: 'x-may', prefix: false }
const session = (credential: Session['credential'] = {}): Session => ({
  id: 's',
  identity: { id: '7', username: 'Åsa', name: 'Åsa', roles: ['a', 'b,c'], profile: {} },
  source: 'backend',
  credential,
  remembered: false,
  createdAt: 0,
  absoluteEnd: 1,
  idleMs: 1,
  address: '',
  agent: ''
})
const caller: ForwardedFor = {
  address: '192.0.2.7',
  protocol: 'https',
  host: undefined,
  requestId: 'req-1',
  session: undefined
}
const withToken = { session: session({ token: 't' }) }

interface Case {
  readonly sent?: Record<string, string>
  readonly headers?: IncomingHttpHeaders
  readonly by?: Partial<ForwardedFor>
  readonly hasBody?: boolean
}

/** What is sent after the stage. */
function after(stage: AddingStage, { sent = {}, headers = {}, by, hasBody = false }: Case) {
  const result: Record<string, string | string[]> = { ...sent }
  stage(result, headers, { ...caller, ...by }, hasBody)
  return result
}

t.test('the length passes with its body', async t => {
  const headers = { 'content-length': '3', 'connection': 'content-length' }
  t.strictSame(after(addLength, { headers, hasBody: true }), { 'content-length': '3' })
  t.strictSame(after(addLength, { headers }), {})
  t.strictSame(after(addLength, { hasBody: true }), {})
})

t.test('a response that will be shaped is asked for without a coding', async t => {
  t.strictSame(after(addCodingForShape, {}), { 'accept-encoding': 'identity' })
})

t.test('the client’s own authorization passes as it is', async t => {
  const headers = { authorization: 'Basic eA==' }
  t.strictSame(after(addAuthorization, { headers }), headers)
  t.strictSame(after(addAuthorization, {}), {})
})

t.test('of cookies, those that are named', async t => {
  const headers = { cookie: 'sid=1; theme=dark;lang=de; theme=x' }
  t.strictSame(after(addCookies(['theme', 'lang']), { headers }), {
    cookie: 'theme=dark; lang=de; theme=x'
  })
  t.strictSame(after(addCookies(['other']), { headers }), {})
  t.strictSame(after(addCookies(['theme']), {}), {})
})

t.test('the request’s id and the client’s side of the connection', async t => {
  const forwarded = {
    'x-request-id': 'req-1',
    'x-forwarded-for': '192.0.2.7',
    'x-forwarded-proto': 'https'
  }
  t.strictSame(after(addForwarded, {}), forwarded)
  t.strictSame(after(addForwarded, { by: { host: 'c.test' } }), {
    ...forwarded,
    'x-forwarded-host': 'c.test'
  })
})

t.test('the user, in values that no header can be broken by', async t => {
  const by = { session: session() }
  t.strictSame(after(addIdentity(identity), { by }), {
    'x-who': '7',
    'x-name': '%C3%85sa',
    'x-may': 'a,b%2Cc'
  })
  const whole = { ...identity, prefix: true, source: 'x-from' }
  t.match(after(addIdentity(whole), { by }), {
    'x-who': identityKey(by.session),
    'x-from': 'backend'
  })
  t.strictSame(after(addIdentity(identity), {}), {})
})

t.test('a session of another source is refused, before its credential is sent', async t => {
  const by = { session: session() }
  t.throws(() => after(refuseOtherSources('other'), { by }), { code: 'route.credential' })
  t.strictSame(after(refuseOtherSources('backend'), { by }), {})
  t.strictSame(after(refuseOtherSources('other'), {}), {})
})

t.test('a token, where the session has one', async t => {
  t.strictSame(after(addToken('x-key', ''), { by: withToken }), { 'x-key': 't' })
  t.strictSame(after(addToken('x-key', 'Key '), { by: withToken }), { 'x-key': 'Key t' })
  t.strictSame(after(addToken('x-key', ''), { by: { session: session() } }), {})
  t.strictSame(after(addToken('x-key', ''), {}), {})
})

t.test('a bearer token, unless the client’s own authorization has passed', async t => {
  const stage = addBearer('Bearer ')
  t.strictSame(after(stage, { by: withToken }), { authorization: 'Bearer t' })
  const sent = { authorization: 'Basic eA==' }
  t.strictSame(after(stage, { by: withToken, sent }), sent)
})

t.test('the session’s cookies, after those of the client', async t => {
  const by = { session: session({ cookies: 'up=1' }) }
  t.strictSame(after(addCredentialCookies, { by }), { cookie: 'up=1' })
  t.strictSame(after(addCredentialCookies, { by, sent: { cookie: 'a=2' } }), {
    cookie: 'a=2; up=1'
  })
  t.strictSame(after(addCredentialCookies, { by: withToken }), {})
})

t.test('a stage that is not configured is left out', async t => {
  const tokenNames = tokenNamesOf({
    tokenHeaders: ['authorization'],
    tokenCookies: ['token'],
    tokenQuery: []
  })
  const options = {
    identity,
    tellIdentity: false,
    credential: 'none',
    passAuthorization: false,
    passCookies: [],
    tokenNames,
    shaped: false
  }
  t.strictSame(addingStages(options), [addLength, addForwarded])
  t.strictSame(
    addingStages({ ...options, passAuthorization: true, passCookies: ['token'] }),
    [addLength, addForwarded],
    'names of the console’s own token never pass'
  )
  t.equal(addingStages({ ...options, tellIdentity: true, credential: 'cookies' }).length, 4)
})
