import { gzipSync } from 'node:zlib'
import t from 'tap'
import { type TestGateway, testGateway } from '../support/gateway.ts'
import { json, rawUpstream, testUpstream } from '../support/upstream.ts'
import { until } from '../support/until.ts'

type Answer = NonNullable<Parameters<typeof testUpstream>[1]>
type CleanUp = (undo: () => unknown) => void

const limits = {
  limits: { generous: { by: 'address', max: 100_000, window: '1m' } },
  sizes: { shape: '100KiB' }
}

/** A public route `r` to a back-end `b` with parts of another, `c`. */
async function setUp(
  cleanUp: CleanUp,
  {
    own = json(200, { id: 1 }),
    other = json(200, { count: 7 }),
    route = {},
    upstream = {},
    shapes = {}
  }: { own?: Answer; other?: Answer; route?: object; upstream?: object; shapes?: object }
) {
  const [b, c] = [await testUpstream(cleanUp, own), await testUpstream(cleanUp, other)]
  const gateway = await testGateway(cleanUp, {
    limits,
    routes: {
      upstreams: { b: { url: b.url }, c: { url: `${c.url}/base`, ...upstream } },
      routes: { r: { path: '/api/r', access: 'public', upstream: 'b', ...route } },
      shapes: { count, ...shapes }
    }
  })
  return Object.assign(gateway, { b, c })
}

/** An answer that comes only once another upstream was asked too: else nobody could see that end. */
const onceAsked = (other: () => { readonly begun: () => number }, answer: Answer): Answer => {
  return (incoming, response, seen) => {
    void until('the other upstream is asked', () => other().begun() > 0).then(() =>
      answer(incoming, response, seen)
    )
  }
}

const metricsOf = async (gateway: Pick<TestGateway, 'ops'>) =>
  (await gateway.ops('/metrics')).text()
const unread = { upstream: 'c', rewrite: '/unread', shape: 'count', into: 'user.unreadCount' }
const count = [{ unwrap: 'count' }]

t.test('all are asked at the same time, and one shaped answer is made of them', async t => {
  let asked = 0
  let goOn = () => {}
  const all = new Promise<void>(resolve => {
    goOn = resolve
  })
  // Each answers only once every one of them was asked.
  const together =
    (value: unknown): Answer =>
    (incoming, response) => {
      if (++asked === 4) goOn()
      void all.then(() => json(200, value)(incoming, response, {} as never))
    }
  const gateway = await setUp(t.after, {
    own: together({ code: 0, data: { id: 7, user: { name: 'Al' } } }),
    other: (incoming, response) => {
      const values: Record<string, unknown> = {
        '/base/unread': { count: 3 },
        '/base/team': { result: { team: 'Ops', floor: 2 } },
        '/base/flags': { a: 1 }
      }
      together(values[incoming.url ?? ''])(incoming, response, {} as never)
    },
    route: {
      shape: 'all',
      parts: {
        unread: { ...unread, into: 'data.user.unreadCount' },
        team: { upstream: 'c', rewrite: '/team', shape: 'team', into: 'data.team' },
        flags: { upstream: 'c', rewrite: '/flags', into: 'data.flags.all' }
      }
    },
    shapes: {
      all: [{ open: 'code-data' }, { rename: { id: 'key' } }, { wrap: 'envelope' }],
      team: [{ unwrap: 'result' }, { pick: ['team'] }]
    }
  })
  const answer = await gateway.call('/api/r')
  t.same(
    [answer.status, answer.json.data],
    [
      200,
      {
        key: 7,
        user: { name: 'Al', unreadCount: 3 },
        team: { team: 'Ops' },
        flags: { all: { a: 1 } }
      }
    ]
  )
  t.notOk('missing' in answer.json)
})

t.test(
  'parts are told who asks, get no body fields, and only what their upstream may see',
  async t => {
    const [b, c] = [
      await testUpstream(t.after, json(200, {})),
      await testUpstream(t.after, json(200, { count: 1 }))
    ]
    const gateway = await testGateway(t.after, {
      limits,
      routes: {
        upstreams: { b: { url: b.url }, c: { url: c.url }, d: { url: c.url, identity: false } },
        routes: {
          r: {
            path: '/api/r/*',
            rewrite: '/*',
            upstream: 'b',
            passHeaders: ['authorization'],
            passCookies: ['theme'],
            parts: {
              one: { upstream: 'c', rewrite: '/one/*', into: 'one' },
              two: { upstream: 'd', rewrite: '/two', into: 'two' },
              three: { upstream: 'b', rewrite: '/three', into: 'three' }
            }
          }
        }
      }
    })
    const cookie = `${await gateway.signIn('bob')}; theme=dark`
    const answer = await gateway.call('/api/r/a%20b?x=1&y=2', {
      cookie,
      headers: {
        'authorization': 'Bearer x',
        'x-tenant-id': 'acme',
        'range': 'bytes=0-1',
        'if-none-match': '"1"',
        'accept-encoding': 'br'
      }
    })
    t.same(answer.json, { one: { count: 1 }, two: { count: 1 }, three: {} })
    t.equal(answer.headers.get('cache-control'), 'no-store')
    const [one, two] = [
      c.seen.find(({ url }) => url.startsWith('/one')),
      c.seen.find(({ url }) => url.startsWith('/two'))
    ]
    t.match(one, {
      method: 'GET',
      url: '/one/a%20b',
      headers: {
        'x-user-name': 'bob',
        'x-user-id': '2',
        'x-tenant-id': 'acme',
        'x-request-id': answer.headers.get('x-request-id'),
        'accept-encoding': 'identity'
      }
    })
    t.same(
      ['authorization', 'cookie', 'range', 'if-none-match'].map(name => one?.headers[name]),
      [undefined, undefined, undefined, undefined]
    )
    t.same([two?.url, two?.headers['x-user-name']], ['/two', undefined])
    const three = b.seen.find(({ url }) => url === '/three')
    t.match(
      three?.headers,
      { authorization: 'Bearer x', cookie: 'theme=dark' },
      'the upstream of the route itself'
    )
  }
)

interface PartFailure {
  readonly answer: Answer
  readonly code: string
  readonly status: number
  /** A long part is read once all are there. */
  readonly isLong?: boolean
}

const failures: Record<string, PartFailure> = {
  'an error': {
    answer: json(404, { message: 'No such customer' }),
    code: 'upstream.error',
    status: 404
  },
  'a fault': { answer: json(500, {}), code: 'upstream.error', status: 500 },
  'a redirect': {
    answer: (_request, response) => {
      response.writeHead(302, { location: '/x' }).end()
    },
    code: 'upstream.redirect',
    status: 502
  },
  'no JSON': {
    answer: (_request, response) => {
      response.end('<html>do-not-log</html>')
    },
    code: 'shape.not-json',
    status: 502
  },
  'too much': {
    answer: (_request, response) => {
      response.end(`["${'x'.repeat(200_000)}"]`)
    },
    code: 'shape.too-large',
    status: 502
  },
  'a bomb': {
    answer: (_request, response) => {
      response
        .writeHead(200, { 'content-encoding': 'gzip' })
        .end(gzipSync(Buffer.alloc(2 ** 22, ' ')))
    },
    code: 'shape.too-large',
    status: 502,
    isLong: true
  },
  'a broken connection': {
    answer: incoming => {
      incoming.socket.destroy()
    },
    code: 'upstream.reset',
    status: 502
  },
  'a late answer': { answer: () => {}, code: 'upstream.timeout', status: 504 },
  'its own word for no': {
    answer: json(200, { code: 403, msg: 'Not yours' }),
    code: 'upstream.error',
    status: 403
  }
}

/** Short only where waiting is the point. */
const timeOf = (code: string) => ({
  responseTimeout: code === 'upstream.timeout' ? '200ms' : '30s'
})

t.test(
  'a part that is not required is left out where it fails, named in the answer, in the log and in the metrics',
  async t => {
    for (const [title, { answer, code }] of Object.entries(failures)) {
      const part = { ...unread, required: false, shape: 'part' }
      const gateway = await setUp(t.after, {
        other: answer,
        upstream: timeOf(code),
        route: {
          shape: 'all',
          parts: { unread: part, other: { ...part, into: 'other', default: 0 } }
        },
        shapes: { all: [{ wrap: 'envelope' }], part: [{ open: 'code-data' }] }
      })
      const { status, json: body } = await gateway.call('/api/r')
      t.same(
        [status, body.data, body.missing],
        [200, { id: 1, other: 0 }, ['unread', 'other']],
        title
      )
      const line = await gateway.logged(({ msg }) => msg === 'request')
      t.match(
        line,
        { route: 'r', missing: ['unread', 'other'], reason: /^part (?:unread|other): / },
        title
      )
      t.match(line['reason'], code, title)
      t.match(
        await metricsOf(gateway),
        /console_gateway_parts_missing_total\{route="r",part="unread"\} 1/
      )
      t.notMatch(JSON.stringify(gateway.log), 'do-not-log')
    }
  }
)

t.test(
  'a required part that fails fails the request with its error; which it was stands in the log alone',
  async t => {
    for (const [title, { answer, code, status, isLong = false }] of Object.entries(failures)) {
      const gateway: Awaited<ReturnType<typeof setUp>> = await setUp(t.after, {
        // Nobody waits for the route's own answer then.
        own: isLong ? json(200, { id: 1 }) : () => {},
        other: onceAsked(() => gateway.b, answer),
        upstream: timeOf(code),
        route: {
          timeout: '30s',
          parts: { 'the-part': { upstream: 'c', rewrite: '/unread', into: 'n', shape: 'part' } }
        },
        shapes: { part: [{ open: 'code-data' }] }
      })
      const failed = await gateway.call('/api/r')
      t.match(failed, { status, json: { success: false, errorCode: code } }, title)
      t.notMatch(failed.text, /the-part|do-not-log|127\.0\.0\.1/, title)
      t.match(
        gateway.log.find(line => line['code'] === code),
        { route: 'r', reason: /the part "the-part"/ },
        title
      )
      // A part that is late may be so before anybody was asked.
      if (gateway.b.begun() > 0 && !isLong) await gateway.b.aborted()
      t.ok(gateway.b.begun() <= 1, 'and it was not asked again')
    }
  }
)

t.test(
  'where the route’s own upstream fails, its error is the answer, and the parts end',
  async t => {
    const gateway: Awaited<ReturnType<typeof setUp>> = await setUp(t.after, {
      own: onceAsked(() => gateway.c, json(409, { message: 'Closed.' })),
      other: () => {},
      route: { parts: { unread } }
    })
    t.match(await gateway.call('/api/r'), {
      status: 409,
      json: { errorCode: 'upstream.error', message: 'Closed.' }
    })
    await gateway.c.aborted()
    t.equal(
      gateway.log.find(({ part }) => part !== undefined),
      undefined,
      'no part is called missing'
    )
  }
)

t.test('a part’s time is for its whole answer', async t => {
  const slow = await rawUpstream(t.after, socket => {
    socket.write(
      'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n'
    )
    const timer = setInterval(() => socket.write(' '), 20)
    socket.on('close', () => clearInterval(timer))
  })
  const b = await testUpstream(t.after, json(200, { id: 1 }))
  const gateway = await testGateway(t.after, {
    limits,
    routes: {
      upstreams: { b: { url: b.url }, c: { url: slow.url, responseTimeout: '200ms' } },
      routes: {
        r: {
          path: '/api/r',
          access: 'public',
          upstream: 'b',
          parts: { slow: { upstream: 'c', rewrite: '/', into: 'slow', required: false } }
        }
      }
    }
  })
  t.same((await gateway.call('/api/r')).json, { id: 1, missing: ['slow'] })
  t.match(await gateway.logged(({ missing }) => missing !== undefined), {
    missing: ['slow'],
    reason: 'part slow: upstream.timeout'
  })
})

t.test('a client that leaves ends all of them, and nothing is called missing', async t => {
  const gateway = await setUp(t.after, {
    own: () => {},
    other: () => {},
    route: { parts: { unread: { ...unread, required: false }, needed: { ...unread, into: 'n' } } }
  })
  const abort = new AbortController()
  const call = fetch(`${gateway.url}/api/r`, { signal: abort.signal }).catch(() => 'left')
  await until('all were asked', () => gateway.b.seen.length === 1 && gateway.c.seen.length === 2)
  abort.abort()
  await Promise.all([gateway.b.aborted(), gateway.c.aborted()])
  t.equal(await call, 'left')
  await until('the client that left was logged', () =>
    gateway.log.some(({ status }) => status === 499)
  )
  t.equal(
    gateway.log.find(({ missing }) => missing !== undefined),
    undefined
  )
  t.notMatch(await metricsOf(gateway), /console_gateway_errors_total\{.*\} [1-9]/)
})

t.test('a compressed part is unpacked', async t => {
  const gateway = await setUp(t.after, {
    other: (_request, response) => {
      const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' }
      response.writeHead(200, headers).end(gzipSync('{"count":7}'))
    },
    route: { parts: { unread } }
  })
  t.same((await gateway.call('/api/r')).json, { id: 1, user: { unreadCount: 7 } })
})

t.test('a route may be made of parts alone', async t => {
  const c = await testUpstream(t.after, (incoming, response, seen) =>
    json(incoming.url === '/gone' ? 500 : 200, { n: incoming.url })(incoming, response, seen)
  )
  const gateway = await testGateway(t.after, {
    limits,
    routes: {
      upstreams: { c: { url: c.url } },
      aliases: { '/api/overview': '/api/dashboard' },
      routes: {
        dashboard: {
          path: '/api/dashboard',
          shape: 'w',
          parts: {
            a: { upstream: 'c', rewrite: '/a', into: 'a' },
            b: { upstream: 'c', rewrite: '/b', shape: 'n', into: 'b.n' },
            c: { upstream: 'c', rewrite: '/c' },
            d: { upstream: 'c', rewrite: '/gone', required: false }
          }
        }
      },
      shapes: { w: [{ wrap: 'envelope' }], n: [{ unwrap: 'n' }] }
    }
  })
  t.match(await gateway.call('/api/dashboard'), {
    status: 401,
    json: { errorCode: 'session.none' }
  })
  t.equal(c.begun(), 0)
  const cookie = await gateway.signIn()
  for (const path of ['/api/dashboard', '/api/overview']) {
    const answer = await gateway.call(path, { cookie })
    t.same(
      [answer.status, answer.json.data, answer.json.missing, answer.headers.get('content-type')],
      [200, { a: { n: '/a' }, b: { n: '/b' }, n: '/c' }, ['d'], 'application/json; charset=utf-8']
    )
  }
  t.match(await gateway.call('/api/dashboard', { method: 'HEAD', cookie }), {
    status: 200,
    text: ''
  })
  t.match(await gateway.call('/api/dashboard', { method: 'POST', cookie, json: {} }), {
    status: 405,
    json: { errorCode: 'route.method' }
  })
  t.ok(
    gateway.log.some(
      ({ msg, route, path }) =>
        msg === 'request' && route === 'dashboard' && path === '/api/overview'
    )
  )
})

t.test('the profile has parts too, from a session or from an upstream', async t => {
  const profile = '/api/account/profile'
  const c = await testUpstream(t.after, (incoming, response) => {
    json(200, incoming.url === '/me' ? { result: { uid: 42, loginName: 'al' } } : { count: 7 })(
      incoming,
      response,
      {} as never
    )
  })
  const parts = {
    notices: {
      upstream: 'c',
      rewrite: '/unread',
      shape: 'count',
      into: 'unreadCount',
      required: false,
      default: 0
    }
  }
  const ask = async (profileConfig: object, shapes: object = {}) => {
    const gateway = await testGateway(t.after, {
      limits,
      routes: {
        upstreams: { c: { url: c.url } },
        aliases: { '/api/currentUser': profile },
        endpoints: { profile: profileConfig },
        shapes: { count, ...shapes }
      }
    })
    t.match(await gateway.call(profile), {
      status: 401,
      json: { errorCode: 'session.none', data: { isLogin: false } }
    })
    const answer = await gateway.call('/api/currentUser', { cookie: await gateway.signIn() })
    t.equal(answer.headers.get('cache-control'), 'no-store')
    return answer.json
  }
  t.match(await ask({ parts }), {
    success: true,
    data: { username: 'alice', email: 'alice@example.com', unreadCount: 7 }
  })
  t.match(
    await ask(
      {
        upstream: 'c',
        rewrite: '/me',
        shape: 'me',
        parts: { notices: { ...parts.notices, into: 'result.unreadCount' } }
      },
      { me: [{ unwrap: 'result' }, { rename: { uid: 'id', loginName: 'username' } }] }
    ),
    { data: { id: 42, username: 'al', unreadCount: 7 } }
  )
  await c.close()
  const without = await ask({ parts })
  t.same(
    [without.data.unreadCount, without.missing, without.data.username],
    [0, ['notices'], 'alice']
  )
})

t.test(
  'a list has its own place among the parts; without one it is no answer that parts could be added to',
  async t => {
    const route = { parts: { unread: { upstream: 'c', rewrite: '/unread', into: 'n' } } }
    const lists = await setUp(t.after, {
      own: json(200, [1, 2]),
      route: { ...route, into: 'rows.all' }
    })
    t.same((await lists.call('/api/r')).json, { rows: { all: [1, 2] }, n: { count: 7 } })
    const lost = await setUp(t.after, { own: json(200, [1, 2]), route })
    t.match(await lost.call('/api/r'), { status: 502, json: { errorCode: 'upstream.invalid' } })
    t.match(
      lost.log.find(({ code }) => code === 'upstream.invalid'),
      { reason: /not an object to which parts can be added/ }
    )
    const nothing = await setUp(t.after, {
      own: (_request, response) => {
        response.writeHead(204).end()
      },
      route
    })
    t.match(
      await nothing.call('/api/r'),
      { status: 200, json: { n: { count: 7 } } },
      'the answer is not empty'
    )
  }
)

t.test('a part without a place is missing, or an error where it is required', async t => {
  const taken = { upstream: 'c', rewrite: '/unread', into: 'id.count' }
  const optional = await setUp(t.after, {
    route: { parts: { taken: { ...taken, required: false } } }
  })
  t.same((await optional.call('/api/r')).json, { id: 1, missing: ['taken'] })
  const required = await setUp(t.after, { route: { parts: { taken } } })
  t.match(await required.call('/api/r'), { status: 502, json: { errorCode: 'upstream.invalid' } })
  t.match(
    required.log.find(({ code }) => code === 'upstream.invalid'),
    { reason: /the part "taken" has no place/ }
  )
})

t.test('what is empty has its default, and is not missing', async t => {
  for (const other of [
    json(200, { count: null }),
    json(200, {}),
    ((_request, response) => {
      response.writeHead(204).end()
    }) as Answer
  ]) {
    const gateway = await setUp(t.after, {
      other,
      route: { parts: { unread: { ...unread, default: 0 }, plain: { ...unread, into: 'plain' } } }
    })
    t.same((await gateway.call('/api/r')).json, { id: 1, user: { unreadCount: 0 }, plain: null })
  }
})
