/** Captchas whose answer the back-end keeps in a session of its own, through the gateway. */
import t, { type Test } from 'tap'
import { createSeal } from '../../../src/session/seal.ts'
import { createCaptchaJars } from '../../../src/app/hooks/captcha-jar.ts'
import { sessionCookie } from '../../../src/app/hooks/session.ts'
import { stopClock } from '../../support/clock.ts'
import { cookieOf, password, testGateway } from '../../support/gateway.ts'
import { signInAt } from '../../support/sign-in.ts'
import { json, testUpstream } from '../../support/upstream.ts'

const path = '/api/auth/admin/login'
const name = 'console_captcha_b'

/** A back-end that sets a cookie with the picture and needs it at sign-in. */
async function setUp(t: Test, { gateway: over = {}, source = {}, route = {} } = {}) {
  let pictures = 0
  const backend = await testUpstream(t.after, (request, response, seen) => {
    const { cookie = '' } = seen.headers
    if (seen.url.startsWith('/picture')) {
      if (!cookie.includes('SID=')) {
        response.setHeader('set-cookie', [`SID=s${++pictures}; Path=/`, 'other=1', 'theme=dark'])
      }
      return void response.writeHead(200, { 'content-type': 'image/png' }).end('PNG')
    }
    if (seen.url.startsWith('/data')) return json(200, {})(request, response, seen)
    const isRight = /(?:^|; )SID=s\d+$/.test(cookie)
    json(isRight ? 200 : 401, { id: 1, token: 't-1' })(request, response, seen)
  })
  const files = signInAt(backend.url, { captchaCookies: ['SID'], token: 'token', ...source })
  const gateway = await testGateway(t.after, {
    gateway: { ...files.gateway, ...over },
    routes: {
      upstreams: { b: { ...files.routes.upstreams.b, credential: 'bearer' } },
      routes: {
        picture: {
          path: '/api/picture',
          rewrite: '/picture',
          upstream: 'b',
          access: 'public',
          ...route
        },
        data: { path: '/api/data', rewrite: '/data', upstream: 'b' }
      }
    }
  })
  const signIn = (cookie?: string) =>
    gateway.call(path, {
      json: { username: 'ann', password },
      ...(cookie !== undefined && { cookie })
    })
  return { gateway, backend, signIn }
}

t.test('the picture’s cookie comes back at sign-in, and is gone after it', async t => {
  const { gateway, backend, signIn } = await setUp(t)
  t.equal((await signIn()).status, 401, 'the back-end needs it')
  const picture = await gateway.call('/api/picture')
  t.equal(picture.text, 'PNG')
  t.equal(picture.headers.get('cache-control'), 'no-store')
  const [written = '', ...others] = picture.headers.getSetCookie()
  t.same(others, [])
  t.match(written, /^console_captcha_b=[\w.-]+; Max-Age=300; Path=\/; HttpOnly; SameSite=strict$/)
  t.notMatch(Buffer.from(written, 'base64url').toString('latin1'), 's1')
  const cookie = cookieOf(picture, name)
  await gateway.call('/api/picture', { cookie })
  t.equal(backend.seen.at(-1)?.headers.cookie, 'SID=s1', 'at the picture’s route again')
  const answer = await signIn(cookie)
  t.equal(answer.status, 200)
  t.match(
    answer.headers.getSetCookie().find(each => each.startsWith(name)),
    `${name}=; Max-Age=0; Path=/`
  )
  const session = cookieOf(answer)
  await gateway.call('/api/data', { cookie: `${session}; ${cookie}` })
  t.match(backend.seen.at(-1)?.headers, { authorization: 'Bearer t-1' })
  t.notOk(backend.seen.at(-1)?.headers.cookie, 'routes with a session do not send it')
})

t.test('where the console uses https the cookie is __Host- and Secure', async t => {
  const { gateway, signIn } = await setUp(t, { gateway: { session: { cookie: { secure: true } } } })
  const picture = await gateway.call('/api/picture')
  const [written = ''] = picture.headers.getSetCookie()
  t.match(written, /^__Host-console_captcha_b=[\w.-]+; .*; HttpOnly; Secure; SameSite=strict$/)
  t.equal((await signIn(cookieOf(picture, name))).status, 200)
})

t.test('a picture that is asked by POST keeps it too', async t => {
  const { gateway, signIn } = await setUp(t, { route: { methods: ['GET', 'POST'] } })
  const picture = await gateway.call('/api/picture', { json: { again: true } })
  t.equal((await signIn(cookieOf(picture, name))).status, 200)
})

t.test('cookies that the route passes by itself stay beside it', async t => {
  const { gateway, backend } = await setUp(t, {
    route: { setCookies: ['theme'], passCookies: ['theme'] }
  })
  const picture = await gateway.call('/api/picture')
  t.match(picture.headers.getSetCookie(), ['theme=dark', /^console_captcha_b=/])
  const cookie = `theme=light; ${cookieOf(picture, name)}`
  await gateway.call('/api/picture', { cookie })
  t.equal(backend.seen.at(-1)?.headers.cookie, 'theme=light; SID=s1')
})

t.test(
  'a back-end that keeps its session at sign-in is called with it, not the browser',
  async t => {
    const { gateway, backend, signIn } = await setUp(t, { source: { cookies: ['SID'] } })
    const cookie = cookieOf(await gateway.call('/api/picture'), name)
    t.equal((await signIn(cookie)).status, 200)
    t.equal(backend.seen.at(-1)?.headers.cookie, 'SID=s1')
  }
)

t.test('what the browser changes, chooses or keeps too long is not sent', async t => {
  const { gateway, backend, signIn } = await setUp(t)
  const cookie = cookieOf(await gateway.call('/api/picture'), name)
  const forged = [
    `${cookie.slice(0, -2)}xx`,
    `${name}=SID=s1`,
    `${name}=`,
    'SID=s1',
    `${name}=${'A'.repeat(5000)}`,
    cookie.replace('_b=', '_c=')
  ]
  for (const each of forged) {
    t.equal((await signIn(each)).status, 401, each.slice(0, 40))
    t.notOk(backend.seen.at(-1)?.headers.cookie)
  }
  t.equal((await signIn(cookie)).status, 200)
})

const secrets = ['a secret of at least thirty-two characters']
const cookie = sessionCookie({ name: 'console_sid', secure: false, sameSite: 'strict' })

function jarsOf(upstreams: readonly string[]) {
  const sources = upstreams.map(upstream => ({
    kind: 'upstream-login',
    upstream,
    captchaCookies: ['SID']
  }))
  const jars = createCaptchaJars({ sources: sources as never, cookie, secrets })
  return upstreams.map(upstream => {
    const jar = jars.get(upstream)
    if (jar === undefined) throw new Error('no jar')
    return jar
  })
}

const valueOf = (written: string | undefined) => /=([^;]*)/.exec(written ?? '')?.[1] ?? ''
const holding = (upstream: string, value: string) => ({
  cookies: { [`console_captcha_${upstream}`]: value }
})

t.test('it ends by its content, not by the browser’s clock', async t => {
  const pass = stopClock(t.after)
  const [jar] = jarsOf(['b'])
  const value = valueOf(jar?.write('', 'SID=s1'))
  t.equal(jar?.read(holding('b', value)), 'SID=s1')
  pass(299_999)
  t.equal(jar?.read(holding('b', value)), 'SID=s1')
  pass(1)
  t.equal(jar?.read(holding('b', value)), '')
})

t.test('it opens for its own back-end and purpose alone', async t => {
  const [b, c] = jarsOf(['b', 'c'])
  const value = valueOf(b?.write('', 'SID=s1'))
  t.equal(c?.read(holding('c', value)), '')
  const record = createSeal(secrets).close('captcha b', `${Date.now() + 60_000} SID=s1`)
  t.equal(b?.read(holding('b', record)), '', 'a session’s seal is none of a captcha')
  t.equal(createSeal(secrets).open('captcha b', value), undefined, 'nor the other way round')
})

t.test('a later value replaces an earlier one; more than 1 KB is not kept', async t => {
  const [jar] = jarsOf(['b'])
  t.equal(
    jar?.read(holding('b', valueOf(jar.write('SID=old', ['SID=new; Path=/', 'x=1'])))),
    'SID=new'
  )
  t.equal(jar?.read(holding('b', valueOf(jar.write('SID=old', undefined)))), 'SID=old')
  t.equal(jar?.write('', 'other=1'), undefined)
  t.equal(jar?.write('', 'SID=a\u00e9'), undefined, 'what no header can hold')
  const fits = jar?.write('', `SID=${'x'.repeat(680)}`)
  t.ok(fits !== undefined && valueOf(fits).length <= 1024)
  t.equal(jar?.write('', `SID=${'x'.repeat(800)}`), undefined)
})
