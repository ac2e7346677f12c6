/** Paths: one spelling for each address, the nearest route takes it, and nothing leads out of one. */
import t, { type Test } from 'tap'
import { testGateway } from '../support/gateway.ts'
import { raw, request } from '../support/raw.ts'
import { inside, isEnvelope, openWire, serves } from '../support/wire.ts'

const wire = await openWire(t.after)
const { gateway, backend, signedIn } = wire
const bob = `Cookie: ${await gateway.signIn('bob')}`
const words = (text: string) => text.trim().split(/\s+/)

/** Bytes as they stand: no client tidies them up. */
const ask = (target: string, fields: string[] = [], method = 'GET') =>
  raw(gateway.url, Buffer.from(request(`${method} ${target}`, fields), 'latin1'), {
    ...(method === 'HEAD' && { enough: (text: string) => text.includes('\r\n\r\n') })
  })

/** Each is the client's fault, and none reaches the back-end. */
async function areRefused(t: Test, targets: readonly string[], fields: string[] = []) {
  const before = backend.begun()
  for (const target of targets) {
    const answer = await ask(target, fields)
    const title = JSON.stringify(target.slice(0, 80))
    t.ok(answer.status >= 400 && answer.status < 500, `${title}: ${answer.status}`)
    isEnvelope(t, answer.body, title)
    t.notMatch(answer.whole, inside, title)
  }
  t.equal(backend.begun(), before)
  await serves(t, wire)
}

/** Other spellings of a protected address. */
const spellings = (path: string) => {
  const [, first = '', rest = ''] = /^(\/[^/]+)\/(.*)$/.exec(path) ?? []
  const encoded = path.replace(/[^/]/g, char => `%${char.charCodeAt(0).toString(16)}`)
  return words(`
    /${path} //${path} ${first}//${rest} ${path}// ${path}/ ${first}/./${rest} /.${path} ${path}/.
    ${first}/x/../${rest} /x/..${path} ${path}/.. ${path}/../${rest}
    ${first}/%2e/${rest} ${first}/x/%2e%2e/${rest} ${first}/x/%2E./${rest} ${first}/x/.%2e/${rest}
    ${first}%2f${rest} ${first}%2F${rest} %2f${path.slice(1)} ${first}%252f${rest}
    ${first}%5c${rest} ${first}\\${rest} \\${path.slice(1)} ${first}/%252e%252e/${rest}
    ${encoded} ${first}/%${rest.charCodeAt(0).toString(16)}${rest.slice(1)}
    ${first.toUpperCase()}/${rest} ${first}/${rest.toUpperCase()}
    ${path}; ${path};jsessionid=1 ${first};x=1/${rest} ${first}/..;/${rest} ${first}/;/${rest}
    ${path}.json ${path}.css ${path}%00 ${path}%00.css ${path}%20 ${path}%09 ${path}%0a
    ${path}%0d%0a ${path}%3f ${path}%23 ${path}%2f ${path}? ${path}?? ${path}?/healthz
    ${path}?/api/open/x ${path}# ${path}#/api/open/x
    ${path}%u002f ${path}%c0%af ${path}%c0%ae ${path}\xc0\xaf ${path}%ef%bc%8f
    /api/open/..${path} /api/open/../..${path} /api/open/x/../../../${path.slice(1)}
    /api/open/%2e%2e/${rest} /api/open/..%2f${rest} /api/open/..;/${rest} /api/open/.%2e/${rest}
    http://gateway.test${path} HTTP://gateway.test${path} http://127.0.0.1${path}
    @gateway.test${path} * ${path.slice(1)}
    ${path}* ${path}:80 ${path}&x=1 ${path}%26x=1 ${path}+ ${path}~
  `)
}

t.test('no spelling opens an address to who is not signed in, or lacks its role', async t => {
  const admins = '/api/admin/x'
  const addresses = ['/api/notices', '/api/things/1', admins, '/api/account/profile']
  await areRefused(t, addresses.flatMap(spellings))
  await areRefused(t, spellings(admins), [bob])
  for (const path of addresses) {
    const { status, body } = await ask(path, [], 'HEAD')
    t.same([status, body], [401, ''], path)
  }
  for (const method of ['GET', 'HEAD']) t.equal((await ask(admins, [bob], method)).status, 403)
  t.equal((await ask(admins, [signedIn])).status, 200, 'who has it may')
})

const outs = words(`
  .. . %2e%2e %2E%2E .%2e %2e. ..; ..;x=1 %2e%2e; ..%00 ..%2f ..%5c ..\\ %252e%252e ..%252f ..%255c
  %25%32%65%25%32%65 %c0%ae%c0%ae %e0%80%ae%e0%80%ae %uff0e%uff0e ..%c0%af ..%ef%bc%8f
  %ef%bc%8e%ef%bc%8e ..%0d ..%09 ..%20 ... .... ..x
`)
function decodeAll(text: string): string {
  try {
    const decoded = decodeURIComponent(text)
    return decoded === text ? text : decodeAll(decoded)
  } catch {
    return text
  }
}

t.test('nobody gets out of a route, also not with a back-end that decodes twice', async t => {
  for (const out of outs) {
    for (const target of [
      `/api/things/${out}/secret`,
      `/api/things/a/${out}/${out}/secret`,
      `/api/things/${out}`,
      `/api/things/${out}secret`,
      `/api/things/a${out}/b`
    ]) {
      const before = backend.seen.length
      const { status } = await ask(target, [signedIn])
      const [url, ...others] = backend.seen.slice(before).map(seen => seen.url)
      t.match(String(status), url === undefined ? /^4/ : '200', target)
      t.same(others, [])
      if (url === undefined) continue
      t.match(url, /^\/store\//, target)
      const segments = decodeAll(url).split(/[/\\]/)
      const dots = segments.map(each => each.split(';')[0]?.replace(/[\0\s]+$/, ''))
      t.notOk(dots.includes('..') || dots.includes('.'), `${target} arrived as ${url}`)
    }
  }
})

t.test('an absolute target calls no other host', async t => {
  const elsewhere = new URL(backend.url).host
  const targets = words(`
    http://${elsewhere}/api/notices http://gateway.test@${elsewhere}/api/notices
    http://${elsewhere} //${elsewhere}/api/notices ///${elsewhere}/api/notices
    /\\${elsewhere}/api/notices http:/${elsewhere}/api/notices http:${elsewhere} @${elsewhere}/
    ${elsewhere}/api/notices file:///etc/passwd gopher://${elsewhere}/_x /http://${elsewhere}/
  `)
  await areRefused(t, targets, [signedIn])
  const seen = backend.seen.length
  for (const tail of words(`
    @evil.example @evil.example/x :80@evil.example http://evil.example/ //${elsewhere}/x
  `)) {
    await ask(`/api/things/${tail}`, [signedIn])
  }
  for (const { url } of backend.seen.slice(seen)) t.match(url, /^\/store\//)
})

/** Broken, no ASCII, separators, decoded twice, or escapes of what needs none. */
const bad = words(`
  % %z %zz %1 %% %-1 %ff %c3 %c3%28 %ed%a0%80 %f8%a1%a1%a1 \xff \xe4 \x80 %80 < > " { } ^^% \`
  a%2fb a%2Fb a%5cb a%5Cb a%00b a%0ab a%7fb %f0%80%80%af
  a%252fb a%2523 %25%32%65%25%32%65/secret %25252e%25252e/secret %25c0%25ae%25C0%25AE/secret
  %25e0%2580%25af %25F0%2580%2580%25AF %255C%255c %2500 %250d%250a %253F
  a%0d%0aX-Injected:%201 a%E5%98%8A%E5%98%8DX:\u010dX a%2e %61 %6e%6f %4E %30 %2d %5f %7e %u002e%u002e/secret ...
`)

t.test('a spelling that is not the one, and bytes that are no ASCII, are refused', async t => {
  const before = ['/api/things/', '/api/open/', '/api/', '/', '/api/notices']
  const targets = before.flatMap(start => bad.map(each => start + each))
  const queries = ['\xff', '\xe4', 'a#b'].map(each => `/api/open/x?q=${each}`)
  await areRefused(t, [...targets, ...queries], [signedIn])
})

t.test('all else arrives as the client wrote it: segments and queries', async t => {
  for (const kept of words(`
    a%20b %E4%B8%AD a%3Fb a%23b a%26b a%40b a:b a@b a|b a^b a..b file.tar.gz a. -b._~c @user a=b
    a+b (x)!$&'*, %e4%bd%a0 a%3Bb %7B1%7D %25E4%25BD%25A0 %F0%9F%92%A1 a[b] a'b a(b) a%22b 100%25
    q?a=1&a=2&b= q?q=a+b%20c%2Bd q?path=%2Fa%2Fb%5Cc q?f[0]=1&f[]=2&f[x][y]=3 q?a;b;c
    q?x=%zz&y=% q?? q?a=?b? q?q='"<>{}|\\^\` q?u=http://evil.example/../x//y q?n=%00%0d%0aX-Injected:%201
    q?&&& q?= q?q=%u0041 q?__proto__=1&constructor[prototype]=2 q?q=%E4%B8%AD%E6%96%87
  `)) {
    t.equal((await ask(`/api/things/${kept}`, [signedIn])).status, 200, kept)
    t.equal(backend.seen.at(-1)?.url, `/store/${kept}`)
  }
})

t.test('a target that is too long is refused', async t => {
  t.equal((await ask(`/api/things/${'a'.repeat(8000)}`, [signedIn])).status, 200)
  const long = [
    `/api/things/${'a'.repeat(8200)}`,
    `/api/open/x?${'a'.repeat(8200)}`,
    `/${'a/'.repeat(4500)}`,
    `/api/things/${'%C3%A4'.repeat(1500)}`
  ]
  for (const target of long) t.equal((await ask(target, [signedIn])).status, 414)
  const huge = `/${'a'.repeat(100_000)}`
  t.equal((await ask(huge)).status, 431)
  await areRefused(t, [...long, huge], [signedIn])
})

t.test('an address that is not there reflects nothing, nor the Host', async t => {
  for (const target of words(`
    /api/<script>alert(1)</script> /api/%3Cscript%3Ealert(1)%3C/script%3E
    /nothing?q=%3Cimg%20onerror%3D1%3E /api/javascript:alert(1) /api/notices/%3Csvg%3E
  `)) {
    const answer = await ask(target)
    t.ok([400, 404].includes(answer.status), target)
    t.match(answer.head, /content-type: application\/json; charset=utf-8/)
    t.notMatch(answer.whole, /script|img|svg|alert|gateway\.test/i)
    isEnvelope(t, answer.body)
  }
})

const route = (path: string, methods: string[], more: object = {}) => ({
  path,
  methods,
  access: 'public',
  ...more
})
const roles = { access: { roles: ['admin'] } }
const admins = { ...roles, rewrite: '/accounts/:id/password' }
const slashes = { passEncodedSlashes: true }
const nearest = await testGateway(t.after, {
  backend: backend.url,
  routes: {
    aliases: {
      '/api/currentUser': '/api/account/profile',
      '/users/old/:id/reset': '/users/:id/reset'
    },
    routes: {
      wide: route('/api/*', ['POST', 'DELETE']),
      narrow: route('/api/v1/*', ['GET', 'DELETE']),
      one: route('/api/v1/one', ['GET']),
      same: route('/api/v1/one', ['PUT']),
      other: route('/api/two', ['PATCH']),
      users: route('/users/*', ['GET', 'DELETE']),
      user: route('/users/:id', ['GET'], { rewrite: '/one/:id' }),
      reset: route('/users/:id/reset', ['POST'], admins),
      me: route('/users/me/reset', ['POST'], { rewrite: '/me' }),
      queues: route('/queues/:vhost/:name', ['GET'], slashes),
      objects: route('/objects/*', ['GET'], { ...slashes, rewrite: '/o/*' }),
      secret: route('/objects/secret/*', ['GET'], roles),
      at: route('/users/@admins', ['GET'], roles),
      signs: route('/api/v1/a$b&c+d,e=f/*', ['GET'], roles),
      both: route('/api/v1/(x)/@y', ['GET'], roles)
    }
  }
})

/** What the back-end gets, the methods of a 405, or the status. */
const rows: ReadonlyArray<readonly [method: string, path: string, expected: string | number]> = [
  ['POST', '/api/x', '> /api/x'],
  ['GET', '/api/x', 'POST, DELETE'],
  ['GET', '/api/v1/x', '> /api/v1/x'],
  ['DELETE', '/api/v1/x?q=1', '> /api/v1/x?q=1'],
  ['POST', '/api/v1/x', 'GET, HEAD, DELETE'],
  ['GET', '/api/v1/one', '> /api/v1/one'],
  ['PUT', '/api/v1/one', '> /api/v1/one'],
  ['DELETE', '/api/v1/one', 'GET, HEAD, PUT'],
  ['POST', '/api/v1/one?q=/api/x', 'GET, HEAD, PUT'],
  ['PROPFIND', '/api/v1/one', 'GET, HEAD, PUT'],
  ['PATCH', '/api/two', '> /api/two'],
  ['POST', '/api/two', 'PATCH'],
  ...['LOCK', 'PURGE', 'SOURCE', 'OPTIONS'].map(name => [name, '/api/two', 'PATCH'] as const),
  ['GET', '/api/auth/admin/login', 'POST'],
  ['POST', '/api/currentUser', 'GET, HEAD'],
  ['GET', '/', 404],
  ['GET', '/api', 404],
  ['GET', '/apix/x', 404],
  ['GET', '/users/7', '> /one/7'],
  ['GET', '/users/a%20b?q=1', '> /one/a%20b?q=1'],
  ['GET', '/users/', '> /users/'],
  ['DELETE', '/users/7', 'GET, HEAD'],
  ['GET', '/users/7/x', '> /users/7/x'],
  ['GET', '/users/7/reset', 'POST'],
  ['POST', '/users/7/reset', 401],
  ['POST', `/users/${'7'.repeat(3000)}/reset`, 401],
  ['POST', '/users/me/reset', '> /me'],
  ['GET', '/users/me/reset', 'POST'],
  ['POST', '/users/old/7/reset', 401],
  ['POST', '/users//reset', 400],
  ['GET', '/users/a%2Fb', 400],
  ['POST', '/users/a%2fb/reset', 400],
  ['POST', '/users/%37/reset', 400],
  // Case 21: a route may take an encoded slash, and sends it as it came.
  ['GET', '/queues/%2F/tasks', '> /queues/%2F/tasks'],
  ['GET', '/queues/a%2fb/tasks?x=%2F', '> /queues/a%2fb/tasks?x=%2F'],
  ['GET', '/objects/2024%2F01%2Freport.pdf', '> /o/2024%2F01%2Freport.pdf'],
  ...['..%2F..%2Fetc', 'a%2F..%2Fb', 'a%2F.%2Fb', 'a%252Fb', 'a%5Cb', 'secret%2Fx%2fy'].map(
    path => ['GET', `/objects/${path}`, 400] as const
  ),
  // No escape leads past a nearer route that holds the character itself.
  ['GET', '/users/@admins', 401],
  ['GET', '/users/%40admins?q=1', 400],
  ...[
    ...['a%24b&c+d,e=f/1', 'a$b%26c+d,e=f/1', 'a$b&c%2Bd,e=f/1', 'a$b&c%2bd,e=f/1'],
    ...['a$b&c+d%2Ce=f/1', '(x)/%40y', '%28x%29/%40y', 'a$b&c+d,e%3Df/%E4%BD%A0'],
    'a%24b%26c%2Bd%2Ce%3Df/'
  ].map(path => ['GET', `/api/v1/${path}`, 400] as const),
  ['GET', '/users/a%40b', '> /one/a%40b'],
  ['GET', '/users/%40admins2', '> /one/%40admins2'],
  ...words(`
    /users/%40admins/x /api/v1/%40admins /api/v1/a%24b /api/v1/q?u=/users/%40admins
  `).map(path => ['GET', path, `> ${path}`] as const)
]

t.test('case 21: the nearest path decides alone, by its methods, access and slashes', async t => {
  backend.seen.length = 0
  for (const [method, path, expected] of rows) {
    const { status, headers, json } = await nearest.call(path, { method })
    const seen = backend.seen.pop()
    const title = `${method} ${path.slice(0, 60)}`
    t.equal(seen ? `> ${seen.url}` : (headers.get('allow') ?? status), expected, title)
    if (seen) t.same([seen.method, status], [method, 200], title)
    else if (typeof expected === 'string') t.same([status, json.errorCode], [405, 'route.method'])
  }
})

t.test('a mount prefix stands before public paths, and before none at the upstream', async t => {
  const { status } = await testGateway(t.after, {
    gateway: { server: { mount: '/console-x' } },
    backend: backend.url,
    routes: { routes: { files: { path: '/api/files/*', access: 'public' } } }
  })
  t.equal(await status('/console-x/api/files/a'), 200)
  t.equal(backend.seen.at(-1)?.url, '/api/files/a')
  t.equal(await status('/api/files/a'), 404)
})

t.test('a doubled /api gets a hint', async t => {
  const answer = await gateway.call('/api/api/account/profile')
  t.match(answer, { status: 404, json: { errorCode: 'route.unknown', message: /base URL/ } })
})

t.end()
