import t from 'tap'
import type { UpstreamLoginConfig } from '../../src/config/schema/upstream-login.ts'
import { LoginResponse } from '../../src/login/login-response.ts'

const config = {
  user: { id: 'id', username: 'name' },
  cookies: ['sid', 'csrf']
} as unknown as UpstreamLoginConfig

function responseOf(...cookies: string[]): LoginResponse {
  const headers = { 'content-type': 'application/json', 'set-cookie': cookies }
  return new LoginResponse(config, { status: 200, headers, body: Buffer.from('{"token":"t"}') })
}

t.test('a renewal keeps the cookies that it does not set anew', async t => {
  const cookiesAfter = (old: string, ...set: string[]) => {
    const credential = { token: 'old', cookies: old }
    return responseOf(...set).credential(credential, { token: 'token' }).cookies
  }
  t.equal(cookiesAfter('sid=1; csrf=1', 'csrf=2; Path=/', 'other=3'), 'sid=1; csrf=2')
  t.equal(cookiesAfter('sid=1; csrf=1'), 'sid=1; csrf=1')
})

t.test('of a cookie that is set twice the last value counts', async t => {
  const { cookies } = responseOf('sid=; Max-Age=0', 'csrf=1', 'sid=new').credential({
    cookies: 'sid=sent'
  })
  t.equal(cookies, 'csrf=1; sid=new')
})

t.test('an expiry that is empty, negative or of 1970 is none: the token does not expire', t => {
  const expiryOf = (value: unknown, as: NonNullable<UpstreamLoginConfig['expires']>['as']) => {
    const body = Buffer.from(JSON.stringify({ value }))
    const expiring = { ...config, expires: { path: 'value', as } }
    return new LoginResponse(expiring, { status: 200, headers: {}, body }).credential({}).expiresAt
  }
  for (const value of [-1, -2, '-1', '', ' ', null, false, 'never']) {
    for (const as of ['seconds', 'milliseconds', 'epoch-seconds', 'epoch-milliseconds'] as const) {
      t.equal(expiryOf(value, as), undefined, `${JSON.stringify(value)} as ${as}`)
    }
  }
  for (const value of [0, '0']) {
    t.equal(expiryOf(value, 'epoch-seconds'), undefined)
    t.equal(expiryOf(value, 'epoch-milliseconds'), undefined)
    t.ok((expiryOf(value, 'seconds') ?? Infinity) <= Date.now(), 'due at once')
    t.ok((expiryOf(value, 'milliseconds') ?? Infinity) <= Date.now(), 'due at once')
  }
  const ofOtherZones = ['1970-01-01T08:00:00Z', '1970-01-01T00:00:00-05:00', '1970-01-02']
  for (const date of ['', '0001-01-01T00:00:00Z', '1970-01-01T00:00:00Z', ...ofOtherZones]) {
    t.equal(expiryOf(date, 'date'), undefined, date)
  }
  const first = Date.UTC(1971, 0)
  t.equal(expiryOf(first / 1000, 'epoch-seconds'), first)
  t.equal(expiryOf(`${first}`, 'epoch-milliseconds'), first)
  t.equal(expiryOf('1971-01-01T00:00:00Z', 'date'), first)
  t.equal(expiryOf(first - 1, 'epoch-milliseconds'), undefined)
  const before = Date.now()
  t.ok((expiryOf(60, 'seconds') ?? 0) >= before + 60_000)
  t.ok((expiryOf('60', 'milliseconds') ?? Infinity) <= Date.now() + 60)
  t.end()
})
