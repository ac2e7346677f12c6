/** Back-ends whose session is a cookie, and that want a token against forged requests (CSRF). */
import t from 'tap'
import { cookieOf, testGateway } from '../support/gateway.ts'
import { until } from '../support/until.ts'
import { testUpstream } from '../support/upstream.ts'

interface Answer {
  readonly status: number
  readonly headers?: Readonly<Record<string, string | string[]>>
  readonly json?: unknown
}

interface Asked {
  readonly call: string
  readonly cookies: URLSearchParams
  readonly header: (name: string) => string | undefined
  readonly isRight: boolean
}

interface BackEnd {
  /** A back-end of its own state. */
  readonly create: () => (asked: Asked) => Answer
  readonly source: Record<string, unknown>
  readonly csrf: object
  readonly headers?: Readonly<Record<string, string>>
}

const user = { id: 7, username: 'carol', roles: ['admin'] }
const drupal = { user, csrf_token: 'of-this-session', logout_token: 'of-its-end' }
const drupalLogout = '/user/logout?_format=json&token=of-its-end'
const no = (status: number): Answer => ({ status, json: { message: 'no' } })
const toPlace = (location: string, ...cookies: string[]): Answer => ({
  status: 302,
  headers: { location, 'set-cookie': cookies }
})

const logouts: ReadonlyArray<string | undefined> = ['POST /logout', `POST ${drupalLogout}`]

const backEnds: Readonly<Record<string, BackEnd>> = {
  'Laravel Sanctum': {
    create: () => {
      let [session, count, isIn] = ['none', 0, false]
      // Each answer encrypts the token of the session anew; a script decodes it.
      const withCookies = (status: number, json?: unknown): Answer => {
        const token = encodeURIComponent(`${session}/${++count}=`)
        const cookies = [`XSRF-TOKEN=${token}; Path=/`, `laravel_session=${session}; HttpOnly`]
        return { status, headers: { 'set-cookie': cookies }, ...(json !== undefined && { json }) }
      }
      const renew = () => (session = `s-${++count}`)
      return ({ call, cookies, header, isRight }) => {
        if (header('referer') !== 'https://console.example.com/') return no(401)
        if (call === 'GET /sanctum/csrf-cookie') {
          renew()
          return withCookies(204)
        }
        if (cookies.get('laravel_session') !== session) return no(419)
        const isForged = header('x-xsrf-token')?.split('/')[0] !== session
        if (!call.startsWith('GET') && isForged) return no(419)
        if (call === 'POST /login') {
          if (!isRight) return no(422)
          renew()
          isIn = true
          return withCookies(200, { two_factor: false })
        }
        if (!isIn) return no(401)
        isIn = call !== 'POST /logout'
        return withCookies(200, call === 'GET /api/user' ? user : { ok: 1 })
      }
    },
    source: {
      before: '/sanctum/csrf-cookie',
      path: '/login',
      cookies: ['laravel_session', 'XSRF-TOKEN'],
      user: { from: { path: '/api/user' }, id: 'id', roles: 'roles' },
      logout: { path: '/logout' }
    },
    csrf: { cookie: 'XSRF-TOKEN', header: 'x-xsrf-token' },
    headers: { referer: 'https://console.example.com/' }
  },
  'Spring Security’s form, whose answers are redirects': {
    create: () => {
      let [token, isIn] = ['', false]
      const show = (answer: Answer): Answer => {
        token = `t-${Math.random()}`
        return { ...answer, headers: { 'set-cookie': `XSRF-TOKEN=${token}; Path=/` } }
      }
      return ({ call, cookies, header, isRight }) => {
        const sent = header('x-xsrf-token')
        const isForged = sent !== token || cookies.get('XSRF-TOKEN') !== token
        if (!call.startsWith('GET') && isForged) return no(403)
        if (call === 'POST /login') {
          if (!isRight) return toPlace('/login?error')
          isIn = true
          token = ''
          return toPlace('/', 'JSESSIONID=j1; HttpOnly', 'XSRF-TOKEN=; Max-Age=0; Path=/')
        }
        if (call === 'GET /login') return show({ status: 200, json: {} })
        if (!isIn || cookies.get('JSESSIONID') !== 'j1') return toPlace('/login')
        isIn = call !== 'POST /logout'
        return isIn ? show({ status: 200, json: user }) : toPlace('/login?logout')
      }
    },
    source: {
      before: '/login',
      path: '/login',
      format: 'form',
      cookies: ['JSESSIONID', 'XSRF-TOKEN'],
      outcomes: [
        { is: 'refused', location: ['/login?error'] },
        { is: 'success', status: [302] }
      ],
      user: { from: { path: '/me' }, id: 'id', roles: 'roles' },
      logout: { path: '/logout' }
    },
    csrf: { cookie: 'XSRF-TOKEN', header: 'x-xsrf-token' }
  },
  'Drupal, of the answer to the sign-in,': {
    create: () => {
      let isIn = false
      return ({ call, cookies, header, isRight }) => {
        if (call === 'POST /user/login?_format=json') {
          isIn = isRight
          const headers = { 'set-cookie': 'SESS=1; HttpOnly' }
          return isIn ? { status: 200, headers, json: drupal } : no(400)
        }
        if (!isIn || cookies.get('SESS') !== '1') return no(401)
        if (!call.startsWith('GET') && header('x-csrf-token') !== 'of-this-session') return no(403)
        isIn = call !== `POST ${drupalLogout}`
        return { status: 200, json: { ok: 1 } }
      }
    },
    source: {
      path: '/user/login',
      query: { _format: 'json' },
      token: 'csrf_token',
      refreshToken: 'logout_token',
      cookies: ['SESS'],
      user: { id: 'user.id', username: 'user.username', roles: 'user.roles' },
      logout: { path: '/user/logout', query: { _format: 'json', token: '{refreshToken}' } }
    },
    csrf: { header: 'x-csrf-token' }
  }
}

for (const [name, { create, source, csrf, headers = {} }] of Object.entries(backEnds)) {
  t.test(`the token that ${name} wants is sent for the console`, async t => {
    const answer = create()
    const answered: Array<readonly [call: string, status: number]> = []
    const backend = await testUpstream(t.after, (request, response, { body }) => {
      const call = `${request.method} ${request.url}`
      const reply = answer({
        call,
        cookies: new URLSearchParams((request.headers.cookie ?? '').replaceAll('; ', '&')),
        header: key => request.headers[key]?.toString(),
        isRight: /right/.test(body.toString())
      })
      answered.push([call, reply.status])
      const type = { 'content-type': 'application/json' }
      response.writeHead(reply.status, { ...type, ...reply.headers })
      response.end(reply.json === undefined ? '' : JSON.stringify(reply.json))
    })
    const { call, log, attempt, opsJson } = await testGateway(t.after, {
      backend: { url: backend.url, credential: { as: 'cookies', csrf }, headers },
      source,
      routes: { routes: { orders: { methods: ['GET', 'POST'] } } }
    })
    const wrong = await attempt('carol', { password: 'wrong' })
    t.match(wrong, { status: 401, json: { errorCode: 'login.refused' } })
    const signIn = async () => {
      const signedIn = await attempt('carol', { password: 'right' })
      t.equal(signedIn.status, 200)
      t.notMatch(String(signedIn.headers.getSetCookie()), /XSRF|laravel|JSESSION|SESS=/)
      return cookieOf(signedIn)
    }
    const isOver = async (who: string) => {
      await until('a sign-out there', () => logouts.includes(answered.at(-1)?.[0]))
      t.ok([200, 302].includes(answered.at(-1)?.[1] ?? 0), `the back-end’s session ends by ${who}`)
    }
    const cookie = await signIn()
    const profile = await call('/api/account/profile', { cookie })
    t.match(profile.json.data, { id: '7', access: 'admin' })
    for (const method of ['POST', 'GET', 'POST', 'POST']) {
      const forged = { 'x-xsrf-token': 'forged', 'x-csrf-token': 'forged' }
      const order = await call('/api/orders', { method, cookie, headers: forged })
      t.equal(order.status, 200, method)
      t.strictSame(order.headers.getSetCookie(), [])
    }
    t.equal((await call('/api/account/logout', { method: 'POST', cookie })).status, 200)
    await isOver('the user')
    const other = await signIn()
    for (const method of ['GET', 'GET']) await call('/api/orders', { method, cookie: other })
    t.match(await opsJson('sessions/close', { user: 'carol' }), { closed: 1 })
    await isOver('an operator, with the cookies of the last answer')
    t.notMatch(JSON.stringify(log), /XSRF|x-xsrf|of-this-session|of-its-end/)
  })
}
