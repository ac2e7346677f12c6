/** Paths: one spelling for each address, and nothing leads out of what a route opens. */
import t from 'tap'
import { testGateway } from '../support/gateway.ts'
import { raw, request } from '../support/raw.ts'
import { inside, isEnvelope, openWire, serves } from '../support/wire.ts'

const wire = await openWire(t.after)
const { gateway, backend, signedIn } = wire

/** Bytes as they stand: no client tidies them up. */
const ask = (target: string, fields: string[] = [], method = 'GET') =>
  raw(gateway.url, Buffer.from(request(`${method} ${target}`, fields), 'latin1'))

/** Other spellings of a protected address: `A` stands before it, `B` after. */
const spellings = (path: string) => {
  const [, first = '', rest = ''] = /^(\/[^/]+)\/(.*)$/.exec(path) ?? []
  const encoded = path
    .split('')
    .map(char => (char === '/' ? char : `%${char.charCodeAt(0).toString(16)}`))
    .join('')
  return [
    `/${path}`,
    `//${path}`,
    `${first}//${rest}`,
    `${path}//`,
    `${first}/./${rest}`,
    `${first}/x/../${rest}`,
    `/x/..${path}`,
    `/.${path}`,
    `${path}/.`,
    `${path}/..`,
    `${path}/../${rest}`,
    `${path}/`,
    `${first}/%2e/${rest}`,
    `${first}/x/%2e%2e/${rest}`,
    `${first}/x/%2E./${rest}`,
    `${first}/x/.%2e/${rest}`,
    `${first}%2f${rest}`,
    `${first}%2F${rest}`,
    `%2f${path.slice(1)}`,
    `${first}%5c${rest}`,
    `${first}\\${rest}`,
    `\\${path.slice(1)}`,
    `${first}%252f${rest}`,
    `${first}/%252e%252e/${rest}`,
    encoded,
    `${first}/%${rest.charCodeAt(0).toString(16)}${rest.slice(1)}`,
    `${first.toUpperCase()}/${rest}`,
    `${first}/${rest.toUpperCase()}`,
    `${path};`,
    `${path};jsessionid=1`,
    `${first};x=1/${rest}`,
    `${first}/..;/${rest}`,
    `${first}/;/${rest}`,
    `${path}.json`,
    `${path}.css`,
    `${path}%00`,
    `${path}%00.css`,
    `${path}%20`,
    `${path}%09`,
    `${path}%0a`,
    `${path}%0d%0a`,
    `${path}%3f`,
    `${path}%23`,
    `${path}%2f`,
    `${path}?`,
    `${path}??`,
    `${path}?/healthz`,
    `${path}?/api/open/x`,
    `${path}#`,
    `${path}#/api/open/x`,
    `${path}%u002f`,
    `${path}%c0%af`,
    `${path}%c0%ae`,
    `${path}\xc0\xaf`,
    `${path}%ef%bc%8f`,
    `/api/open/..${path}`,
    `/api/open/../..${path}`,
    `/api/open/x/../../../${path.slice(1)}`,
    `/api/open/%2e%2e/${rest}`,
    `/api/open/..%2f${rest}`,
    `/api/open/..;/${rest}`,
    `/api/open/.%2e/${rest}`,
    `http://gateway.test${path}`,
    `HTTP://gateway.test${path}`,
    `http://127.0.0.1${path}`,
    `@gateway.test${path}`,
    `*`,
    path.slice(1),
    `${path}*`,
    `${path}:80`,
    `${path}&x=1`,
    `${path}%26x=1`,
    `${path}+`,
    `${path}~`
  ]
}

t.test('no spelling of an address opens it to someone who is not signed in', async t => {
  const tried = ['/api/notices', '/api/things/1', '/api/admin/x', '/api/account/profile'].flatMap(
    spellings
  )
  t.ok(tried.length > 250)
  const before = backend.begun()
  for (const target of tried) {
    const answer = await ask(target)
    t.ok(answer.status >= 400 && answer.status < 500, `${JSON.stringify(target)}: ${answer.status}`)
    isEnvelope(t, answer.body, JSON.stringify(target))
  }
  t.equal(backend.begun(), before)
  await serves(t, wire)
})

t.test('nobody gets out of a route, also not with a back-end that decodes twice', async t => {
  const outs = [
    '..',
    '.',
    '%2e%2e',
    '%2E%2E',
    '.%2e',
    '%2e.',
    '..;',
    '..;x=1',
    '%2e%2e;',
    '..%00',
    '..%2f',
    '..%5c',
    '..\\',
    '%252e%252e',
    '%25%32%65%25%32%65',
    '..%252f',
    '..%255c',
    '%c0%ae%c0%ae',
    '%e0%80%ae%e0%80%ae',
    '%uff0e%uff0e',
    '..%c0%af',
    '..%ef%bc%8f',
    '%ef%bc%8e%ef%bc%8e',
    '..%0d',
    '..%09',
    '..%20',
    '...',
    '....',
    '..x'
  ]
  const decodeAll = (text: string) => {
    for (let round = 0; round < 5; round++) {
      try {
        text = decodeURIComponent(text)
      } catch {
        return text
      }
    }
    return text
  }
  for (const out of outs) {
    for (const target of [
      `/api/things/${out}/secret`,
      `/api/things/a/${out}/${out}/secret`,
      `/api/things/${out}`,
      `/api/things/${out}secret`,
      `/api/things/a${out}/b`
    ]) {
      const before = backend.seen.length
      const answer = await ask(target, [signedIn])
      const arrived = backend.seen.slice(before).map(({ url }) => url)
      t.ok(
        answer.status === 200 || (answer.status >= 400 && answer.status < 500),
        `${target}: ${answer.status}`
      )
      t.equal(arrived.length, answer.status === 200 ? 1 : 0, target)
      for (const url of arrived) {
        t.ok(url.startsWith('/store/'), `${target} arrived as ${url}`)
        const segments = decodeAll(url)
          .replaceAll('\\', '/')
          .split('/')
          .map(segment => segment.split(';')[0]?.replace(/[\0\s]+$/, ''))
        t.notOk(
          segments.some(segment => segment === '..' || segment === '.'),
          `${target} arrived as ${url}`
        )
      }
    }
  }
})

t.test('an absolute target calls no other host', async t => {
  const elsewhere = new URL(backend.url).host
  const before = backend.begun()
  for (const target of [
    `http://${elsewhere}/api/notices`,
    `http://gateway.test@${elsewhere}/api/notices`,
    `http://${elsewhere}`,
    `//${elsewhere}/api/notices`,
    `///${elsewhere}/api/notices`,
    `/\\${elsewhere}/api/notices`,
    `http:/${elsewhere}/api/notices`,
    `http:${elsewhere}`,
    `@${elsewhere}/`,
    `${elsewhere}/api/notices`,
    `file:///etc/passwd`,
    `gopher://${elsewhere}/_x`,
    `/http://${elsewhere}/`
  ]) {
    const answer = await ask(target, [signedIn])
    t.ok(answer.status >= 400 && answer.status < 500, `${target}: ${answer.status}`)
    t.notMatch(answer.whole, inside)
  }
  t.equal(backend.begun(), before)
  for (const tail of [
    '@evil.example',
    '@evil.example/x',
    ':80@evil.example',
    'http://evil.example/',
    `//${elsewhere}/x`
  ]) {
    const seen = backend.seen.length
    await ask(`/api/things/${tail}`, [signedIn])
    for (const { url } of backend.seen.slice(seen)) {
      t.ok(url.startsWith('/store/'), `${tail} arrived as ${url}`)
    }
  }
})

t.test('line ends in a path or a query add neither fields nor requests', async t => {
  for (const injected of [
    '%0d%0aX-Injected:%201',
    '%0aX-Injected:%201',
    '%0d',
    '%E5%98%8A%E5%98%8DX-Injected:1',
    '\u010dX-Injected',
    '%00'
  ]) {
    for (const target of [`/api/things/a${injected}`, `/api/things/a?q=${injected}`]) {
      const before = backend.seen.length
      await raw(gateway.url, Buffer.from(request(`GET ${target}`, [signedIn]), 'utf8'))
      for (const { rawHeaders, url } of backend.seen.slice(before)) {
        t.notMatch(rawHeaders.join('\n'), /X-Injected/i, target)
        t.match(url, /^\/store\/a[\x21-\x7e]*$/)
      }
    }
  }
  await serves(t, wire)
})

t.test('broken escapes and bytes that are no ASCII are the client’s fault', async t => {
  const before = backend.begun()
  for (const bad of [
    '%',
    '%z',
    '%zz',
    '%1',
    '%%',
    '%-1',
    '%ff',
    '%c3',
    '%c3%28',
    '%ed%a0%80',
    '%f8%a1%a1%a1',
    '\xff',
    '\xe4',
    '\x80',
    '%80',
    '<',
    '>',
    '"',
    '{',
    '}',
    '^^%',
    '`',
    // Decoded twice, or in other spellings of what needs none.
    '%25%32%65%25%32%65/secret',
    '%25252e%25252e/secret',
    '%u002e%u002e/secret',
    '%25c0%25ae%25C0%25AE/secret',
    '%25e0%2580%25af',
    '%25F0%2580%2580%25AF',
    '%f0%80%80%af',
    '%255C%255c',
    '%2500',
    '%250d%250a',
    '%253F',
    '%6e%6f',
    '%4E',
    '%30',
    '%2d',
    '%5f',
    '%7e',
    '...'
  ]) {
    for (const target of [
      `/api/things/${bad}`,
      `/api/open/${bad}`,
      `/api/${bad}`,
      `/${bad}`,
      `/api/notices${bad}`
    ]) {
      const answer = await ask(target, [signedIn])
      t.ok(
        answer.status >= 400 && answer.status < 500,
        `${JSON.stringify(target)}: ${answer.status}`
      )
      isEnvelope(t, answer.body, JSON.stringify(target))
    }
  }
  t.equal(backend.begun(), before)
  for (const bad of ['\xff', '\xe4', 'a#b']) {
    t.equal((await ask(`/api/open/x?q=${bad}`)).status, 400, `a query with ${JSON.stringify(bad)}`)
  }
  await serves(t, wire)
})

t.test('a target that is too long is refused', async t => {
  t.equal((await ask(`/api/things/${'a'.repeat(8000)}`, [signedIn])).status, 200)
  const before = backend.begun()
  for (const target of [
    `/api/things/${'a'.repeat(8200)}`,
    `/api/open/x?${'a'.repeat(8200)}`,
    `/${'a'.repeat(9000)}`,
    `/${'a/'.repeat(4500)}`,
    `/api/things/${'%C3%A4'.repeat(1500)}`
  ]) {
    const answer = await ask(target, [signedIn])
    t.equal(answer.status, 414)
    isEnvelope(t, answer.body)
  }
  t.equal((await ask(`/${'a'.repeat(100_000)}`)).status, 431)
  t.equal(backend.begun(), before)
  await serves(t, wire)
})

t.test('methods that an address does not have are refused, and it says which it has', async t => {
  const before = backend.begun()
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
    const answer = await ask('/api/notices', [signedIn], method)
    t.equal(answer.status, 405, method)
    t.match(answer.head, /^allow: GET, HEAD\r?$/m)
    isEnvelope(t, answer.body)
  }
  for (const method of [
    'PROPFIND',
    'SEARCH',
    'PURGE',
    'LINK',
    'MKCOL',
    'M-SEARCH',
    'SUBSCRIBE',
    'QUERY',
    'REPORT',
    'LOCK',
    'SOURCE',
    'ACL',
    'BIND',
    'COPY',
    'NOTIFY'
  ]) {
    for (const path of ['/api/notices', '/api/open/x', '/api/account/logout']) {
      const answer = await ask(path, [signedIn], method)
      t.ok([400, 404, 405].includes(answer.status), `${method} ${path}: ${answer.status}`)
      isEnvelope(t, answer.body, method)
    }
  }
  const star = await ask('*', [signedIn], 'OPTIONS')
  t.ok(star.status >= 400 && star.status < 500)
  t.equal(backend.begun(), before)
  await serves(t, wire)
})

t.test('HEAD without a session is refused as GET is', async t => {
  const before = backend.begun()
  for (const path of ['/api/notices', '/api/things/1', '/api/admin/x']) {
    const answer = await raw(gateway.url, request(`HEAD ${path}`), {
      enough: received => received.includes('\r\n\r\n')
    })
    t.equal(answer.status, 401, path)
    t.equal(answer.body, '')
  }
  t.equal(backend.begun(), before)
})

t.test('a role that is missing opens no spelling either', async t => {
  const bob = `Cookie: ${await gateway.signIn('bob')}`
  const before = backend.begun()
  for (const method of ['GET', 'HEAD']) {
    const answer = await raw(gateway.url, request(`${method} /api/admin/x`, [bob]), {
      enough: received => received.includes('\r\n\r\n')
    })
    t.equal(answer.status, 403, method)
  }
  for (const target of spellings('/api/admin/x')) {
    const answer = await ask(target, [bob])
    t.ok(answer.status >= 400 && answer.status < 500, `${JSON.stringify(target)}: ${answer.status}`)
  }
  t.equal(backend.begun(), before)
  t.equal((await ask('/api/admin/x', [signedIn])).status, 200, 'who has it may')
})

t.test('no escape leads past a nearer route that holds the character itself', async t => {
  const route = (path: string, more: object = {}) => ({ path, upstream: 'b', ...more })
  const strict = await testGateway(t.after, {
    routes: {
      upstreams: { b: { url: backend.url } },
      routes: {
        wide: route('/api/*'),
        admins: route('/api/users/@admins', { access: { roles: ['admin'] } }),
        all: route('/api/a$b&c+d,e=f/*', { access: { roles: ['admin'] } }),
        both: route('/api/(x)/@y', { access: { roles: ['admin'] } }),
        user: route('/api/users/:id')
      }
    }
  })
  const bob = `Cookie: ${await strict.signIn('bob')}`
  const statusOf = async (target: string) =>
    (await raw(strict.url, request(`GET ${target}`, [bob]))).status
  const before = backend.seen.length
  t.equal(await statusOf('/api/users/@admins'), 403)
  for (const target of [
    '/api/users/%40admins',
    '/api/users/%40admins?q=1',
    '/api/a%24b&c+d,e=f/1',
    '/api/a$b%26c+d,e=f/1',
    '/api/a$b&c%2Bd,e=f/1',
    '/api/a$b&c%2bd,e=f/1',
    '/api/a$b&c+d%2Ce=f/1',
    '/api/a$b&c+d,e%3Df/%E4%BD%A0',
    '/api/a%24b%26c%2Bd%2Ce%3Df/',
    '/api/(x)/%40y',
    '/api/%28x%29/%40y'
  ]) {
    t.equal(await statusOf(target), 400, target)
  }
  t.equal(backend.seen.length, before)
  for (const target of [
    '/api/users/a%40b',
    '/api/users/%40admins2',
    '/api/users/%40admins/x',
    '/api/things/%40admins',
    '/api/a%24b',
    '/api/q?u=/api/users/%40admins'
  ]) {
    t.equal(await statusOf(target), 200, target)
    t.equal(backend.seen.at(-1)?.url, target)
  }
})

t.test('an address that is not there reflects nothing', async t => {
  for (const target of [
    '/api/<script>alert(1)</script>',
    '/api/%3Cscript%3Ealert(1)%3C/script%3E',
    '/nothing?q=%3Cimg%20onerror%3D1%3E',
    '/api/javascript:alert(1)',
    '/api/notices/%3Csvg%3E'
  ]) {
    const answer = await ask(target)
    t.ok([400, 404].includes(answer.status), target)
    t.match(answer.head, /content-type: application\/json; charset=utf-8/)
    t.notMatch(answer.whole, /script|img|svg|alert/i)
    isEnvelope(t, answer.body)
  }
})

t.test('a query arrives byte for byte', async t => {
  for (const query of [
    'a=1&a=2&b=',
    'q=a+b%20c%2Bd',
    'path=%2Fa%2Fb%5Cc',
    'f[0]=1&f[]=2&f[x][y]=3',
    'a;b;c',
    'x=%zz&y=%',
    '?',
    'a=?b?',
    'q=\'"<>{}|\\^`',
    'u=http://evil.example/../x//y',
    'n=%00%0d%0a',
    '&&&',
    '=',
    'q=%u0041',
    '__proto__=1&constructor[prototype]=2',
    'q=%E4%B8%AD%E6%96%87'
  ]) {
    const answer = await ask(`/api/things/q?${query}`, [signedIn])
    t.equal(answer.status, 200, query)
    t.equal(backend.seen.at(-1)?.url, `/store/q?${query}`)
  }
})

t.test(
  'a separator that is escaped within a segment is refused, other escapes arrive as they are',
  async t => {
    const before = backend.begun()
    for (const escaped of [
      'a%2fb',
      'a%2Fb',
      'a%5cb',
      'a%5Cb',
      'a%00b',
      'a%0ab',
      'a%7fb',
      'a%252fb',
      'a%2523',
      'a%2e',
      '%61'
    ]) {
      t.equal((await ask(`/api/things/${escaped}`, [signedIn])).status, 400, escaped)
    }
    t.equal(backend.begun(), before)
    for (const kept of [
      'a%20b',
      '%E4%B8%AD',
      'a%3Fb',
      'a%23b',
      'a%26b',
      'a%40b',
      'a:b',
      'a@b',
      'a|b',
      'a^b',
      'a..b',
      'file.tar.gz',
      'a.',
      '-b._~c',
      '@user',
      'a=b',
      'a+b',
      "(x)!$&'*,",
      '%e4%bd%a0',
      'a%3Bb',
      '%7B1%7D',
      '%25E4%25BD%25A0',
      '%F0%9F%92%A1',
      'a[b]',
      "a'b",
      'a(b)',
      'a%22b',
      '100%25'
    ]) {
      const answer = await ask(`/api/things/${kept}`, [signedIn])
      t.equal(answer.status, 200, kept)
      t.equal(backend.seen.at(-1)?.url, `/store/${kept}`)
    }
    await serves(t, wire)
  }
)

t.end()
