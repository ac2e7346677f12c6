/** Cookies of a back-end that the browser keeps sealed: a captcha's session comes back at sign-in. */
import t, { type Test } from 'tap'
import { cookieOf, password, testGateway } from '../../support/gateway.ts'
import { signInAt } from '../../support/sign-in.ts'
import { json, testUpstream } from '../../support/upstream.ts'

/** A back-end that sets a cookie with the picture and needs it at sign-in. */
async function setUp(t: Test, { gateway: over = {}, source = {}, route = {} } = {}) {
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
  const files = signInAt(backend.url, { passCookies: ['SID'], token: 'token', ...source })
  const setCookies = [{ name: 'SID', sealed: true }]
  const gateway = await testGateway(t.after, {
    gateway: { ...files.gateway, ...over },
    routes: {
      upstreams: {
        b: { ...files.routes.upstreams.b, credential: 'bearer' },
        other: { url: backend.url }
      },
      routes: {
        picture: {
          path: '/api/picture',
          rewrite: '/picture',
          upstream: 'b',
          access: 'public',
          setCookies,
          passCookies: ['SID'],
          ...route
        },
        data: { path: '/api/data', rewrite: '/data', upstream: 'b' },
        elsewhere: {
          path: '/api/elsewhere',
          rewrite: '/picture',
          upstream: 'other',
          access: 'public',
          setCookies,
          passCookies: ['SID']
        }
      }
    }
  })
  const signIn = (cookie?: string) =>
    gateway.call('/api/auth/admin/login', {
      json: { username: 'ann', password },
      ...(cookie !== undefined && { cookie })
    })
  return { gateway, backend, signIn }
}

t.test('the picture’s cookie comes back at sign-in, opened, and nowhere else', async t => {
  const { gateway, backend, signIn } = await setUp(t)
  t.equal((await signIn()).status, 401, 'the back-end needs it')
  const picture = await gateway.call('/api/picture')
  t.equal(picture.text, 'PNG')
  t.equal(picture.headers.get('cache-control'), 'no-store', 'no cache keeps it')
  const [written = '', ...others] = picture.headers.getSetCookie()
  t.same(others, [])
  t.match(written, /^SID=[\w.-]+; Path=\/; HttpOnly; SameSite=Strict$/)
  t.notMatch(Buffer.from(written, 'base64url').toString('latin1'), 's1')
  const cookie = cookieOf(picture, 'SID')
  await gateway.call('/api/picture', { cookie })
  t.equal(backend.seen.at(-1)?.headers.cookie, 'SID=s1', 'a route that passes it')
  const answer = await signIn(cookie)
  t.equal(answer.status, 200)
  await gateway.call('/api/data', { cookie: `${cookieOf(answer)}; ${cookie}` })
  t.match(backend.seen.at(-1)?.headers, { authorization: 'Bearer t-1' })
  t.notOk(backend.seen.at(-1)?.headers.cookie, 'a route that does not')
  await gateway.call('/api/elsewhere', { cookie })
  t.notOk(backend.seen.at(-1)?.headers.cookie, 'another back-end')
})

t.test('where the console uses https the cookie is __Host- and Secure', async t => {
  const { gateway, signIn } = await setUp(t, { gateway: { session: { cookie: { secure: true } } } })
  const picture = await gateway.call('/api/picture')
  const [written = ''] = picture.headers.getSetCookie()
  t.match(written, /^__Host-SID=[\w.-]+; Path=\/; HttpOnly; Secure; SameSite=Strict$/)
  t.equal((await signIn(cookieOf(picture, 'SID'))).status, 200)
})

t.test(
  'a picture that is asked by POST keeps it too, and plain cookies stay beside it',
  async t => {
    const { gateway, backend, signIn } = await setUp(t, {
      route: {
        methods: ['GET', 'POST'],
        setCookies: ['theme', { name: 'SID', sealed: true }],
        passCookies: ['theme', 'SID']
      }
    })
    const picture = await gateway.call('/api/picture', { json: { again: true } })
    t.match(picture.headers.getSetCookie(), ['theme=dark', /^SID=/])
    const cookie = cookieOf(picture, 'SID')
    await gateway.call('/api/picture', { cookie: `theme=light; ${cookie}` })
    t.equal(backend.seen.at(-1)?.headers.cookie, 'theme=light; SID=s1')
    t.equal((await signIn(cookie)).status, 200)
  }
)

t.test('a back-end that keeps this session at sign-in is called with it afterwards', async t => {
  const { gateway, backend, signIn } = await setUp(t, { source: { cookies: ['SID'] } })
  t.equal((await signIn(cookieOf(await gateway.call('/api/picture'), 'SID'))).status, 200)
  t.equal(backend.seen.at(-1)?.headers.cookie, 'SID=s1')
})

t.test('what the browser changes or makes up is not sent', async t => {
  const { gateway, backend, signIn } = await setUp(t)
  const cookie = cookieOf(await gateway.call('/api/picture'), 'SID')
  const elsewhere = cookieOf(await gateway.call('/api/elsewhere'), 'SID')
  const forged = [`${cookie.slice(0, -2)}xx`, 'SID=s1', 'SID=', `SID=${'A'.repeat(900)}`, elsewhere]
  for (const each of forged) {
    t.equal((await signIn(each)).status, 401, each.slice(0, 40))
    t.notOk(backend.seen.at(-1)?.headers.cookie)
  }
  t.equal((await signIn(cookie)).status, 200)
})
