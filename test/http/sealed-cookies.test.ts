/** Cookies of a back-end that the browser keeps sealed: a captcha's session comes back at sign-in. */
import t, { type Test } from 'tap'
import { cookieOf, password, testGateway } from '../support/gateway.ts'
import { json, testUpstream } from '../support/upstream.ts'

/** A back-end that sets a cookie with the picture and needs it at sign-in. */
async function setUp(t: Pick<Test, 'after'>, more = {}, source = {}) {
  let pictures = 0
  const backend = await testUpstream(t.after, (request, response, seen) => {
    const { cookie = '' } = seen.headers
    if (seen.url.startsWith('/picture')) {
      if (!cookie.includes('SID=')) {
        response.setHeader('set-cookie', [`SID=s${++pictures}; Path=/app`, 'other=1', 'theme=dark'])
      }
      const headers = { 'content-type': 'image/png', 'cache-control': 'public, max-age=60' }
      return void response.writeHead(200, headers).end('PNG')
    }
    if (seen.url.startsWith('/data')) return json(200, {})(request, response, seen)
    const isRight = /(?:^|; )SID=s\d+$/.test(cookie)
    json(isRight ? 200 : 401, { id: 1, token: 't-1' })(request, response, seen)
  })
  const SID = { name: 'SID', sealed: true }
  const picture = {
    rewrite: '/picture',
    access: 'public',
    methods: ['GET', 'POST'],
    setCookies: [SID],
    passCookies: ['SID']
  }
  const plain = { setCookies: ['theme', SID], passCookies: ['theme', 'SID'] }
  const gateway = await testGateway(t.after, {
    gateway: more,
    backend: { url: backend.url, credential: 'bearer' },
    source: { passCookies: ['SID'], token: 'token', ...source },
    routes: {
      upstreams: { other: { url: backend.url } },
      routes: {
        picture,
        elsewhere: { ...picture, upstream: 'other' },
        both: { ...picture, ...plain },
        data: { rewrite: '/data' }
      }
    }
  })
  const signIn = async (cookie = '') =>
    await gateway.call('/api/auth/admin/login', { json: { username: 'ann', password }, cookie })
  return { ...gateway, signIn, sent: () => backend.seen.at(-1)?.headers.cookie, backend }
}

const plain = await setUp(t)

t.test('the picture’s cookie comes back at sign-in, opened, and nowhere else', async t => {
  const { call, signIn, sent, backend } = plain
  t.equal((await signIn()).status, 401, 'the back-end needs it')
  const picture = await call('/api/picture')
  t.equal(picture.text, 'PNG')
  t.equal(picture.headers.get('cache-control'), 'no-store', 'no cache keeps it')
  const [written = '', ...others] = picture.headers.getSetCookie()
  t.same(others, [])
  t.match(written, /^SID=[\w.-]+; Path=\/; HttpOnly; SameSite=Strict$/)
  t.notMatch(Buffer.from(written, 'base64url').toString('latin1'), 's1')
  const cookie = cookieOf(picture, 'SID')
  await call('/api/picture', { cookie })
  t.equal(sent(), 'SID=s1', 'a route that passes it')
  await call('/api/elsewhere', { cookie })
  t.notOk(sent(), 'another back-end')
  const answer = await signIn(cookie)
  t.equal(answer.status, 200)
  t.equal(sent(), 'SID=s1')
  await call('/api/data', { cookie: `${cookieOf(answer)}; ${cookie}` })
  t.match(backend.seen.at(-1)?.headers, { authorization: 'Bearer t-1' })
  t.notOk(sent(), 'a route that does not')
})

t.test('where the console uses https the cookie is __Host- and Secure', async t => {
  const session = { cookie: { secure: true } }
  const { call, signIn, sent } = await setUp(t, { session }, { cookies: ['SID'] })
  const picture = await call('/api/picture')
  const [written = ''] = picture.headers.getSetCookie()
  t.match(written, /^__Host-SID=[\w.-]+; Path=\/; HttpOnly; Secure; SameSite=Strict$/)
  t.equal((await signIn(cookieOf(picture, 'SID'))).status, 200)
  t.equal(sent(), 'SID=s1', 'also where the source keeps this session')
})

t.test('by POST too, and plain cookies stay beside it', async t => {
  const { call, signIn, sent } = plain
  const picture = await call('/api/both', { json: { again: true } })
  t.match(picture.headers.getSetCookie(), ['theme=dark', /^SID=/])
  const cookie = cookieOf(picture, 'SID')
  await call('/api/both', { cookie: `theme=light; ${cookie}` })
  t.match(sent(), /^theme=light; SID=s\d$/)
  t.equal((await signIn(cookie)).status, 200)
})

t.test('what the browser changes or makes up is not sent', async t => {
  const { call, signIn, sent } = plain
  const cookie = cookieOf(await call('/api/picture'), 'SID')
  const elsewhere = cookieOf(await call('/api/elsewhere'), 'SID')
  const forged = [`${cookie.slice(0, -2)}xx`, 'SID=s1', 'SID=', `SID=${'A'.repeat(900)}`, elsewhere]
  for (const each of forged) {
    t.equal((await signIn(each)).status, 401, each.slice(0, 40))
    t.notOk(sent())
  }
  t.equal((await signIn(cookie)).status, 200)
})

t.end()
