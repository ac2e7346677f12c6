import t from 'tap'
import { stringify } from 'yaml'
import { faultsOf, knownHash, type Texts, textFolder } from '../../support/config-files.ts'

interface Files {
  readonly gateway?: object
  readonly routes?: object
  readonly limits?: object
}

const upstreams = { b: { url: 'http://backend.internal:81' } }
const route = (more: object = {}) => ({ path: '/api/r', upstream: 'b', ...more })
const withRoute = (more: object): Files => ({ routes: { upstreams, routes: { r: route(more) } } })
const withPaths = (paths: Readonly<Record<string, string>>): Files => ({
  routes: {
    upstreams,
    routes: Object.fromEntries(Object.entries(paths).map(([name, path]) => [name, route({ path })]))
  }
})
/** Two shapes, `s` and `t`, each used by a route. */
const withShapes = (shapes: { s: object[]; t: object[] }): Files => ({
  routes: {
    upstreams,
    routes: { r: route({ shape: 's' }), q: route({ shape: 't', path: '/api/q' }) },
    shapes
  }
})
const part = { upstream: 'b', rewrite: '/n' }
const source = { kind: 'upstream-login', upstream: 'b', path: '/in', user: { id: 'id' } }

/** What `check` says of a production config that is sound but for what is given. */
function said(
  cleanUp: (undo: () => unknown) => void,
  { gateway, routes, limits }: Files
): string[] {
  const { server = { hosts: ['console.example.com'] } } = (gateway ?? {}) as { server?: object }
  const texts: Texts = {
    'gateway.yaml': stringify({
      ...gateway,
      server: { trustedProxies: ['10.0.0.0/8'], ...server }
    }),
    ...(routes && { 'routes.yaml': stringify(routes) }),
    ...(limits && { 'limits.yaml': stringify(limits) })
  }
  return faultsOf(textFolder(cleanUp, texts), { LONG: 'x'.repeat(32), SHORT: 'x'.repeat(31) }).map(
    line => line.replace(/^(\w+\.yaml):\d+/, '$1')
  )
}

const rules: ReadonlyArray<readonly [title: string, files: Files, ...expected: string[]]> = [
  [
    'a config that uses everything is sound',
    {
      gateway: {
        redis: { url: 'rediss://redis.internal:6380/2' },
        session: { secrets: ['${LONG}'] },
        login: { sources: [{ ...source, token: 'token' }, { kind: 'users-file' }] },
        identity: { source: 'x-user-source' }
      },
      routes: {
        upstreams: {
          ...upstreams,
          c: { url: 'https://[::1]:8443/base', credential: 'header:x-token' }
        },
        endpoints: { profile: { from: 'upstream', upstream: 'c', rewrite: '/me', shape: 's' } },
        aliases: {
          '/api/currentUser': '/api/account/profile',
          '/api/v1/all/*': '/api/all/*',
          '/api/login': '/api/auth/admin/login'
        },
        routes: {
          r: route({ methods: ['GET', 'POST'] }),
          other: { path: '/api/r', methods: ['PUT'], upstream: 'c' },
          all: { path: '/api/all/*', rewrite: '/internal/*', upstream: 'b' }
        },
        shapes: { s: [{ unwrap: 'data' }, { wrap: 'list' }] }
      },
      limits: {
        limits: {
          r: { by: 'user', max: 1, window: '1s', routes: ['r', 'profile'] },
          a: { by: 'address', max: 1, window: '1s' }
        }
      }
    }
  ],
  [
    'a secret is long enough to sign with',
    { gateway: { session: { secrets: ['${LONG}', '${SHORT}'] } } },
    'gateway.yaml session.secrets.1: the secret has fewer than 32 characters; make one with `console-gateway generate-secret`'
  ],
  [
    'a secret that stands twice is pointed out',
    { gateway: { server: { hosts: ['h'] }, session: { secrets: ['${LONG}', '${LONG}'] } } },
    'gateway.yaml session.secrets.1: warning: is listed twice: remove it, or write the one that was meant (line 8)'
  ],
  [
    'with Redis there is a secret that outlives the process',
    { gateway: { redis: { url: 'redis://redis' } } },
    'gateway.yaml session.secrets: with Redis, sessions outlive this process, so the secret must not change at a restart: set ${SESSION_SECRET} or file:PATH; make one with `console-gateway generate-secret`'
  ],
  ['an empty Redis address means the embedded store', { gateway: { redis: { url: '' } } }],
  [
    'an idle time longer than the absolute one is pointed out',
    { gateway: { session: { idle: '9h' } } },
    'gateway.yaml session.idle: warning: is longer than session.absolute, so it never applies'
  ],
  ...['/proc/audit', '/proc/self/none/audit', '/sys/audit'].map(
    (folder): (typeof rules)[number] => [
      `the ledger cannot be in ${folder}`,
      { gateway: { audit: { folder, key: '${LONG}' } } },
      'gateway.yaml audit.folder: is in a file system of the kernel, such as /proc, where no file can be made: name a folder on a disk, such as /var/lib/console-gateway/audit'
    ]
  ),
  [
    'SameSite=None needs Secure',
    { gateway: { session: { cookie: { sameSite: 'none', secure: false } } } },
    'gateway.yaml session.cookie.sameSite: browsers refuse SameSite=None without Secure: set session.cookie.secure: true',
    'gateway.yaml session.cookie.secure: warning: the session cookie travels without https; fine on loopback, nowhere else'
  ],
  [
    'a cookie without https is pointed out',
    { gateway: { session: { cookie: { secure: false } } } },
    'gateway.yaml session.cookie.secure: warning: the session cookie travels without https; fine on loopback, nowhere else'
  ],
  [
    'no list of hosts is pointed out',
    { gateway: { server: {} } },
    'gateway.yaml server.hosts: warning: is empty, so every well-formed Host is accepted: name your own'
  ],
  [
    'a host is a name alone',
    {
      gateway: {
        server: {
          hosts: [
            'console.example.com',
            'a.example:8080',
            'https://b.example',
            'c.example/x',
            '[::1]',
            '10.0.0.1'
          ]
        }
      }
    },
    ...['a.example:8080', 'https://b.example', 'c.example/x'].map(
      (host, index) =>
        `gateway.yaml server.hosts.${index + 1}: expected a host name alone, without scheme, port or path, found "${host}"`
    )
  ],
  [
    'an origin is written as browsers write it',
    {
      gateway: {
        server: {
          hosts: ['h'],
          origins: [
            'https://ok.example',
            'https://Shop.Example',
            'https://a.example:443',
            'http://b:99999'
          ]
        }
      }
    },
    'gateway.yaml server.origins.1: expected the origin as browsers write it: https://shop.example',
    'gateway.yaml server.origins.2: expected the origin as browsers write it: https://a.example',
    'gateway.yaml server.origins.3: is not a valid URL: expected an origin such as https://console.example.com'
  ],
  [
    'a trusted proxy is an address or a block',
    {
      gateway: {
        server: {
          hosts: ['h'],
          trustedProxies: [
            '10.0.0.0/8',
            '::1',
            'fd00::/8',
            '10.0.0.1',
            'loopback',
            '10.0.0.0/33',
            '10.0.0/8',
            'fd00::/129',
            '10.0.0.0/8/8',
            '0/0'
          ]
        }
      }
    },
    ...['loopback', '10.0.0.0/33', '10.0.0/8', 'fd00::/129', '10.0.0.0/8/8', '0/0'].map(
      (block, index) =>
        `gateway.yaml server.trustedProxies.${index + 4}: expected an address or a CIDR block such as 10.0.0.0/8, found "${block}"`
    )
  ],
  [
    'a port exists',
    {
      gateway: {
        server: { hosts: ['h'], listen: '127.0.0.1:65536' },
        ops: { listen: '[::1]:99999' }
      }
    },
    'gateway.yaml server.listen: expected a port of at most 65535, found 65536',
    'gateway.yaml ops.listen: expected a port of at most 65535, found 99999'
  ],
  [
    'a port of a Redis node exists',
    {
      gateway: {
        redis: { sentinels: ['s:26379', 's:99999'] },
        session: { secrets: ['${LONG}'] }
      }
    },
    'gateway.yaml redis.sentinels.1: expected a port of at most 65535, found 99999'
  ],
  [
    'so does that of a node of a cluster',
    { gateway: { redis: { cluster: ['n:65536'] }, session: { secrets: ['${LONG}'] } } },
    'gateway.yaml redis.cluster.0: expected a port of at most 65535, found 65536'
  ],
  [
    'an upstream has a hundred addresses at most',
    {
      routes: {
        upstreams: { b: { urls: Array.from({ length: 101 }, (_, index) => `http://b${index}`) } },
        routes: { r: route() }
      }
    },
    'routes.yaml upstreams.b.urls: expected at most 100 items, found 101'
  ],
  ...['2031-02-30T00:00:00Z', '2031-02-29T00:00Z', '2031-04-31T14:00+08:00'].map(
    until =>
      [
        `maintenance does not end at ${until}, which is in no calendar`,
        { routes: { upstreams, routes: { r: route() }, maintenance: { until } } },
        `routes.yaml maintenance.until: is not a valid time: expected one such as 2026-12-01T06:00:00Z, found "${until}"`
      ] as const
  ),
  [
    'a leap day is in the calendar',
    {
      routes: {
        upstreams,
        routes: { r: route() },
        maintenance: { until: '2032-02-29T23:59+08:00' }
      }
    }
  ],
  [
    'operators have a port of their own',
    {
      gateway: {
        server: { hosts: ['h'], listen: '0.0.0.0:8080', trustedProxies: [] },
        ops: { listen: '0.0.0.0:8080', secret: '${LONG}' }
      }
    },
    'gateway.yaml ops.listen: is the same as server.listen: the operators’ listener needs a port of its own (line 5)',
    'gateway.yaml server.trustedProxies: warning: is empty, so no proxy ends TLS: over plain http, browsers drop the secure session cookie and each sign-in leads back to the sign-in page. Name the proxy that ends TLS; for development without one set session.cookie.secure: false',
    'gateway.yaml server.trustedProxies: warning: is empty: if a load balancer stands in front, all clients count as one address; name it'
  ],
  [
    'Redis has an address that can be dialled',
    { gateway: { redis: { url: 'redis://redis:99999' }, session: { secrets: ['${LONG}'] } } },
    'gateway.yaml redis.url: is not a valid URL: expected one such as redis://redis.internal:6379'
  ],
  [
    'what tells who a user is holds no token',
    {
      gateway: {
        login: {
          sources: [
            {
              ...source,
              token: 'data.authToken',
              user: { id: 'data.authToken', username: 'data.name', profile: 'data' }
            },
            { ...source, name: 'other', user: { id: 'access_token' } }
          ]
        },
        identity: { prefix: true }
      },
      routes: { upstreams, routes: { r: route() } }
    },
    'gateway.yaml login.sources.0.user.id: "data.authToken" is the back-end’s token, which the browser and every upstream would see; name a member without it',
    'gateway.yaml login.sources.0.user.profile: "data" holds the back-end’s token (data.authToken), which the browser and every upstream would see; name a member without it',
    'gateway.yaml login.sources.1.user.id: "access_token" is the back-end’s token, which the browser and every upstream would see; name a member without it',
    'gateway.yaml login.sources.0.token: warning: no upstream has a `credential` that sends the token, so no back-end gets it'
  ],
  [
    'where two sources give a token, it is said whose goes where',
    {
      gateway: {
        login: {
          sources: [
            { ...source, token: 'token' },
            { ...source, name: 'other', token: 'token' },
            { kind: 'users-file' }
          ]
        },
        identity: { prefix: true }
      },
      routes: {
        upstreams: {
          b: { url: 'http://b', credential: 'bearer' },
          c: { url: 'http://c', credential: { from: 'other', as: 'bearer' } },
          d: { url: 'http://d', credential: { from: 'othr', as: 'bearer' } },
          e: { url: 'http://e', credential: { from: 'users-file', as: 'bearer' } }
        },
        routes: {
          r: route(),
          c: route({ path: '/api/c', upstream: 'c' }),
          d: route({ path: '/api/d', upstream: 'd' }),
          e: route({ path: '/api/e', upstream: 'e' })
        }
      }
    },
    'routes.yaml upstreams.b.credential: upstream-login:b and other each give a token: name the source for this upstream, such as { from: upstream-login:b, as: bearer }',
    'routes.yaml upstreams.d.credential.from: there is no credential source "othr". Did you mean "other"?',
    'routes.yaml upstreams.e.credential.from: the source "users-file" gives no token.'
  ],
  [
    'two credential sources have two names',
    {
      gateway: {
        login: {
          sources: [
            { kind: 'users-file' },
            { kind: 'users-file', file: 'users.yaml' },
            { ...source, name: 'staff' },
            { ...source, name: 'staff' }
          ]
        },
        identity: { prefix: true }
      },
      routes: { upstreams }
    },
    'gateway.yaml login.sources.1: login.sources.0 has the name "users-file" too, so users of both with the same id would be one; give this one another `name`',
    'gateway.yaml login.sources.3.name: login.sources.2 has the name "staff" too, so users of both with the same id would be one; give this one another `name`'
  ],
  [
    'two credential sources are told apart by upstreams',
    {
      gateway: { login: { sources: [{ kind: 'users-file' }, source] } },
      routes: {
        upstreams: { b: { ...upstreams.b, identity: false }, c: upstreams.b },
        routes: { r: route(), c: route({ path: '/api/c', upstream: 'c' }) }
      }
    },
    'gateway.yaml identity: two credential sources may give two people the same id, and upstreams.c gets only the id; set `source: x-user-source` or `prefix: true`'
  ],
  [
    'upstreams that are told no identity, or the source with it, tell two credential sources apart',
    {
      gateway: {
        login: { sources: [{ kind: 'users-file' }, source] },
        identity: { source: 'x-user-source' }
      },
      routes: { upstreams, routes: { r: route() } }
    }
  ],
  [
    'the source of an identity has a header field of its own',
    { gateway: { identity: { id: 'x-who', source: 'x-who' } } },
    'gateway.yaml identity: id, username, roles and source need a different header each'
  ],
  [
    'two parts of the identity do not share a header field',
    { gateway: { identity: { id: 'x-who', username: 'x-who' } } },
    'gateway.yaml identity: id, username and roles need a different header each'
  ],
  [
    'a message belongs to an error code',
    { gateway: { envelope: { messages: { 'login.refuse': 'No.', 'login.refused': 'No.' } } } },
    'gateway.yaml envelope.messages.login.refuse: there is no error code "login.refuse". Did you mean "login.refused"?'
  ],
  [
    'a message for what objects are born with belongs to no code',
    { gateway: { envelope: { messages: { constructor: 'No.' } } } },
    'gateway.yaml envelope.messages.constructor: there is no error code "constructor".'
  ],

  [
    'a sign-in asks an upstream that is there',
    { gateway: { login: { sources: [{ ...source, upstream: 'c' }] } }, routes: { upstreams } },
    'gateway.yaml login.sources.0.upstream: there is no upstream "c". Did you mean "b"?',
    'routes.yaml upstreams.b: warning: no route uses this upstream'
  ],
  [
    'the profile asks an upstream that is there',
    { routes: { endpoints: { profile: { from: 'upstream', upstream: 'accounts' } } } },
    'routes.yaml endpoints.profile.upstream: there is no upstream "accounts".'
  ],
  [
    'a profile from an upstream says which',
    { routes: { endpoints: { profile: { from: 'upstream' } } } },
    'routes.yaml endpoints.profile.from: the key "upstream" is missing: name the upstream that knows the current user'
  ],
  [
    'a profile from the session has no upstream',
    { routes: { upstreams, endpoints: { profile: { upstream: 'b' } } } },
    'routes.yaml endpoints.profile.from: the session answers, so upstream, rewrite, shape and timeout have no effect; set `from: upstream`'
  ],
  [
    'a profile from the session has no rewrite either',
    { routes: { endpoints: { profile: { rewrite: '/me' } } } },
    'routes.yaml endpoints.profile.from: the session answers, so upstream, rewrite, shape and timeout have no effect; set `from: upstream`'
  ],
  [
    'an upstream that nothing uses is pointed out',
    { routes: { upstreams } },
    'routes.yaml upstreams.b: warning: no route uses this upstream'
  ],
  [
    'an upstream has an address that can be dialled',
    { routes: { upstreams: { b: { url: 'http://backend:99999' } }, routes: { r: route() } } },
    'routes.yaml upstreams.b.url: is not a valid URL: expected one such as http://orders.internal:8080, found "http://backend:99999"'
  ],

  [
    'two routes do not share a method and a path',
    {
      routes: {
        upstreams,
        routes: {
          r: route({ methods: ['GET', 'POST'] }),
          again: route({ methods: ['POST', 'PUT'] })
        }
      }
    },
    'routes.yaml routes.again.path: POST /api/r is taken by routes.r (line 6)'
  ],
  [
    'a route does not take an endpoint’s path',
    withRoute({ path: '/api/account/logout', methods: ['DELETE', 'POST'] }),
    'routes.yaml routes.r.path: POST /api/account/logout is taken by endpoints.logout'
  ],
  [
    'two endpoints do not share a path',
    { routes: { endpoints: { profile: { path: '/api/x' }, logout: { path: '/api/x' } } } },
    'routes.yaml endpoints.profile.path: GET /api/x is taken by endpoints.logout (line 5)'
  ],
  [
    'an alias does not take a route’s path',
    {
      routes: { upstreams, aliases: { '/api/r': '/api/account/profile' }, routes: { r: route() } }
    },
    'routes.yaml aliases./api/r: GET /api/r is taken by routes.r (line 8)'
  ],
  [
    'two paths that take one request need a third, unless one is the nearer',
    withPaths({ r: '/api/users/:id/reset', q: '/api/users/export/*', p: '/api/users/:any' }),
    'routes.yaml routes.r.path: and /api/users/export/* both take /api/users/export/reset, and ' +
      'neither is the nearer path: add a route with the path /api/users/export/reset (line 9)'
  ],
  [
    'a third path that takes just what two take settles whose it is',
    withPaths({ r: '/api/users/:id/reset', q: '/api/users/export/*', p: '/api/users/export/reset' })
  ],
  [
    'a path is not there twice under other names',
    withPaths({ r: '/api/users/:id', q: '/api/users/:name' }),
    'routes.yaml routes.r.path: is the same path as /api/users/:name: use the same names in both (line 9)'
  ],
  [
    'a path has each name once',
    withPaths({ r: '/api/:id/x/:id' }),
    'routes.yaml routes.r.path: must not contain :id twice'
  ],
  [
    'a rewrite has only names of its path',
    withRoute({ path: '/api/users/:user', rewrite: '/u/:usr' }),
    'routes.yaml routes.r.rewrite: the public path has no :usr. Did you mean "user"?'
  ],
  [
    'a part’s rewrite has only names of the path',
    withRoute({ path: '/api/users/:user', parts: { n: { ...part, rewrite: '/n/:id' } } }),
    'routes.yaml routes.r.parts.n.rewrite: the public path has no :id.'
  ],
  [
    'an alias has the names of what it stands for',
    {
      routes: {
        upstreams,
        aliases: { '/api/old/:name': '/api/users/:user' },
        routes: { r: route({ path: '/api/users/:user' }) }
      }
    },
    'routes.yaml aliases./api/old/:name: alias and target must have the same :name segments'
  ],
  [
    'a name is a whole segment',
    withRoute({ path: '/api/users-:id' }),
    'routes.yaml routes.r.path: expected a path that begins with /, with :name as a whole segment, and /* at its end at most, found "/api/users-:id"'
  ],
  [
    'paging of a query has one target, which can be computed',
    withRoute({
      query: { paging: { page: 'p', to: { page: 'n', offset: 'o', size: 's' } } }
    }),
    'routes.yaml routes.r.query.paging.to: needs one of page and offset',
    'routes.yaml routes.r.query.paging: `to.offset` needs `defaultSize`: the console may send a page without a size',
    'routes.yaml routes.r.query.paging.to.size: has no effect: set `size` or `defaultSize`'
  ],
  [
    'paging of an upstream has one target, which can be computed',
    {
      routes: {
        upstreams: {
          b: { url: 'http://b.internal', paging: { offset: 'o', size: 's' } },
          c: { url: 'http://c.internal', paging: { page: 'p', offset: 'o' } }
        },
        paging: { page: 'p' },
        routes: { r: route({}), q: route({ path: '/api/q', upstream: 'c' }) }
      }
    },
    'routes.yaml paging: the upstream "b" takes an offset, which needs `paging.defaultSize`: the console may send a page without a size',
    'routes.yaml upstreams.c.paging: needs one of page and offset',
    'routes.yaml paging: the upstream "c" takes an offset, which needs `paging.defaultSize`: the console may send a page without a size'
  ],
  [
    'a body is mapped where requests have one, by a shape that is not about responses',
    {
      routes: {
        upstreams,
        routes: {
          r: route({ body: { shape: 's' } }),
          q: route({ path: '/api/q', methods: ['POST'], maxShaped: '1MiB', body: { shape: 'zzz' } })
        },
        shapes: { s: [{ use: 't' }], t: [{ rename: { a: 'b' } }, { wrap: 'list' }] }
      }
    },
    'routes.yaml routes.r.body: has no effect: requests with GET have no body',
    'routes.yaml routes.r.body.shape: must not use `wrap`, which is about responses',
    'routes.yaml routes.q.body.shape: there is no shape "zzz".'
  ],
  [
    'fixed headers of an upstream are not the gateway’s own, and there once',
    {
      routes: {
        upstreams: {
          b: {
            ...upstreams.b,
            credential: 'bearer',
            headers: { 'host': 'x', 'x-user-id': '1', 'authorization': 'Basic x', 'x-key': 'k' },
            secretHeaders: { 'x-key': '${LONG}' }
          }
        },
        routes: { r: route() }
      }
    },
    'routes.yaml upstreams.b.headers.host: "host" is set by the gateway',
    'routes.yaml upstreams.b.headers.x-user-id: "x-user-id" is a header of `identity`: choose another one',
    'routes.yaml upstreams.b.headers.authorization: `credential` sends "authorization" already',
    'routes.yaml upstreams.b.headers.x-key: is in `secretHeaders` too',
    'routes.yaml upstreams.b.credential: warning: no source of login.sources gives a token: none is ever sent'
  ],
  [
    'a secret header is a reference',
    {
      routes: {
        upstreams: { b: { ...upstreams.b, secretHeaders: { 'x-key': 'plain' } } },
        routes: { r: route() }
      }
    },
    'routes.yaml upstreams.b.secretHeaders.x-key: a secret never stands in the file itself: write ${NAME} for an environment variable, or file:PATH'
  ],
  [
    'an alias stands for something',
    { routes: { aliases: { '/api/me': '/api/acount/profile' } } },
    'routes.yaml aliases./api/me: no route or endpoint has the path "/api/acount/profile". Did you mean "/api/account/profile"?'
  ],
  [
    'an alias of an alias is none',
    { routes: { aliases: { '/api/a': '/api/account/profile', '/api/b': '/api/a' } } },
    'routes.yaml aliases./api/b: no route or endpoint has the path "/api/a".'
  ],
  [
    'an alias keeps the star',
    {
      routes: {
        upstreams,
        aliases: { '/api/a/*': '/api/r', '/api/all': '/api/all/*' },
        routes: { r: route(), all: route({ path: '/api/all/*' }) }
      }
    },
    'routes.yaml aliases./api/a/*: either both alias and target must end in /*, or neither',
    'routes.yaml aliases./api/all: either both alias and target must end in /*, or neither'
  ],
  [
    'an alias is a path like others',
    {
      routes: {
        aliases: Object.fromEntries(
          [
            '/api/x:name',
            '/api/../x',
            '/api//x',
            '/api/x/',
            '/a*b',
            '/api/*/x',
            '/api/x?y',
            '/ü',
            '/a b'
          ].map(alias => [alias, '/api/account/profile'])
        )
      }
    },
    ...[
      '/api/x:name',
      '/api/../x',
      '/api//x',
      '/api/x/',
      '/a*b',
      '/api/*/x',
      '/api/x?y',
      '/ü',
      '/a b'
    ].map(
      alias =>
        `routes.yaml aliases.${alias}: expected a path such as routes have: :name as a whole segment, * only as /* at the end, no empty or dot segments`
    )
  ],
  [
    'an endpoint has one path',
    { routes: { endpoints: { login: { path: '/api/login/*' } } } },
    'routes.yaml endpoints.login.path: must not end in *: an endpoint has one path'
  ],
  [
    'an endpoint’s path has no dots and no empty segments',
    { routes: { endpoints: { login: { path: '/api//login' }, logout: { path: '/api/../out' } } } },
    'routes.yaml endpoints.login.path: must not contain empty or dot segments',
    'routes.yaml endpoints.logout.path: must not contain empty or dot segments'
  ],
  ...['/', '/admin/', '/admin/*', '/*', '/admin//x', '/admin/../x', '/./admin', '/admin/..'].map(
    mount =>
      [
        `the mount ${mount} is no prefix of a path`,
        { gateway: { server: { hosts: ['console.example.com'], mount } } },
        `gateway.yaml server.mount: expected a path such as /admin, with no / or * at its end and no empty or dot segments, found "${mount}"`
      ] as const
  ),
  [
    'a mount may have several segments',
    { gateway: { server: { hosts: ['console.example.com'], mount: '/admin/.v1..2' } } }
  ],
  [
    'a route is not called like an endpoint',
    { routes: { upstreams, routes: { profile: route() } } },
    'routes.yaml routes.profile: "profile" is the name of an endpoint: choose another name'
  ],
  ...['/api/../x', '/api//x', '/api/./x', '/api/x/', '//x'].map(
    path =>
      [
        `the path ${path} has no dots and no empty segments`,
        withRoute({ path }),
        'routes.yaml routes.r.path: must not contain empty or dot segments'
      ] as const
  ),
  [
    'a rewrite has no dots and no empty segments',
    withRoute({ rewrite: '/internal/../secret' }),
    'routes.yaml routes.r.rewrite: must not contain empty or dot segments'
  ],
  [
    'a rewrite keeps only a star that is there',
    withRoute({ rewrite: '/internal/*' }),
    'routes.yaml routes.r.rewrite: must not end in /*, since the public path does not'
  ],
  [
    'a rewrite does not lose the star',
    withRoute({ path: '/api/r/*', rewrite: '/internal' }),
    'routes.yaml routes.r.rewrite: must end in /*, as the public path does'
  ],
  [
    'is public, although the path contains /admin: set access: session unless that is meant is pointed out',
    withRoute({ path: '/api/admin/r', access: 'public' }),
    'routes.yaml routes.r.access: warning: is public, although the path contains /admin: set access: session unless that is meant'
  ],
  [
    'an upstream neither gets nor sets the session cookie',
    withRoute({ passCookies: ['theme', 'console_sid'], setCookies: ['__Host-console_sid'] }),
    'routes.yaml routes.r.passCookies: must not list the gateway’s own cookies, of the session and of known browsers',
    'routes.yaml routes.r.setCookies: must not list the gateway’s own cookies, of the session and of known browsers'
  ],

  [
    'a route has a shape that is there',
    {
      routes: {
        upstreams,
        routes: { r: route({ shape: 'notice' }) },
        shapes: { notices: [{ wrap: 'list' }] }
      }
    },
    'routes.yaml routes.r.shape: there is no shape "notice". Did you mean "notices"?',
    'routes.yaml shapes.notices: warning: no route uses this shape'
  ],
  [
    'a route may be made of parts alone, or have them beside its own answer',
    {
      routes: {
        upstreams,
        routes: {
          r: {
            path: '/api/r',
            parts: { n: { ...part, into: 'a.b' }, m: { ...part, into: 'a.c' }, o: part, p: part }
          },
          q: route({
            path: '/api/q/*',
            into: 'own',
            maxShaped: '1MiB',
            parts: { n: { ...part, rewrite: '/n/*', shape: 's', into: 'n' } }
          })
        },
        shapes: { s: [{ pick: ['a'] }] },
        endpoints: { profile: { parts: { n: part } } }
      }
    }
  ],
  [
    'a route asks somebody',
    { routes: { routes: { r: { path: '/api/r' } } } },
    'routes.yaml routes.r: needs an upstream, parts or an answer'
  ],
  [
    'a part asks an upstream that is there, and has a shape that is there',
    withRoute({ parts: { n: { upstream: 'bb', rewrite: '/n', shape: 's' } } }),
    'routes.yaml routes.r.parts.n.upstream: there is no upstream "bb". Did you mean "b"?',
    'routes.yaml routes.r.parts.n.shape: there is no shape "s".'
  ],
  [
    'two parts have two places',
    withRoute({
      into: 'own',
      parts: {
        n: { ...part, into: 'a' },
        m: { ...part, into: 'a.b' },
        o: { ...part, into: 'own' },
        p: { ...part, into: 'ab' }
      }
    }),
    'routes.yaml routes.r.parts.m.into: "a" is taken by the part "n" (line 13)',
    'routes.yaml routes.r.parts.o.into: "own" is taken by the response of the route’s own upstream (line 8)'
  ],
  [
    'an answer of parts is read only and shaped',
    withRoute({ methods: ['GET', 'POST'], tooLarge: 'pass', parts: { n: part } }),
    'routes.yaml routes.r.methods: a response made of parts can only be read: set methods: [GET]',
    'routes.yaml routes.r.tooLarge: a response made of parts cannot pass unshaped: remove tooLarge'
  ],
  [
    'without an upstream of its own, a route passes nothing on to it',
    { routes: { upstreams, routes: { r: { path: '/api/r', rewrite: '/x', parts: { n: part } } } } },
    'routes.yaml routes.r.rewrite: has no effect without an upstream of the route’s own'
  ],
  [
    'a place among parts needs parts',
    withRoute({ into: 'own' }),
    'routes.yaml routes.r.into: has no effect without parts'
  ],
  [
    'a part’s path fits the route’s',
    withRoute({ parts: { n: { ...part, rewrite: '/n/*' }, m: { ...part, rewrite: '/a/../b' } } }),
    'routes.yaml routes.r.parts.n.rewrite: must not end in /*, since the public path does not',
    'routes.yaml routes.r.parts.m.rewrite: must not contain empty or dot segments'
  ],
  [
    'the profile’s parts are checked too',
    { routes: { endpoints: { profile: { parts: { n: part } } } } },
    'routes.yaml endpoints.profile.parts.n.upstream: there is no upstream "b".'
  ],
  [
    'a bound on shaping that stalls other requests is pointed out',
    {
      routes: {
        upstreams,
        shapes: { s: [{ unwrap: 'a' }] },
        routes: { r: route({ shape: 's', maxShaped: '10MiB' }) }
      },
      limits: { sizes: { shape: '4MiB' } }
    },
    'routes.yaml routes.r.maxShaped: warning: responses of this size delay all other requests by up to 1.3 s: use smaller pages'
  ],
  [
    'a bound on shaping has a bound',
    {
      routes: {
        upstreams,
        shapes: { s: [{ unwrap: 'a' }] },
        routes: { r: route({ shape: 's', maxShaped: '1GiB' }) }
      },
      limits: { sizes: { shape: '5MiB' } }
    },
    'routes.yaml routes.r.maxShaped: expected at most 64MiB, found "1GiB"',
    'limits.yaml sizes.shape: warning: responses of this size delay all other requests by up to 0.7 s: use smaller pages'
  ],
  [
    'a bound on shaping needs a shape',
    withRoute({ maxShaped: '1MiB' }),
    'routes.yaml routes.r.maxShaped: has no effect without a shape: a response of any size passes'
  ],
  [
    'what is too large to be shaped needs a shape too',
    withRoute({ tooLarge: 'pass' }),
    'routes.yaml routes.r.tooLarge: has no effect without a shape: a response of any size passes'
  ],
  [
    'the profile has a shape that is there',
    {
      routes: {
        upstreams,
        endpoints: { profile: { from: 'upstream', upstream: 'b', shape: 'account' } }
      }
    },
    'routes.yaml endpoints.profile.shape: there is no shape "account".'
  ],
  [
    'how it went is asked first, and within the whole answer',
    withShapes({
      s: [{ unwrap: 'a' }, { open: 'code-data' }],
      t: [{ each: [{ status: { path: 'a', ok: [1] } }, { wrap: 'list' }] }, { use: 's' }]
    }),
    'routes.yaml shapes.s.1: `open` has to be the first operation',
    'routes.yaml shapes.t.0.each.0: `status` is for the whole response: it cannot stand within another operation',
    'routes.yaml shapes.t.0.each.1: `wrap` is for the whole response: it cannot stand within another operation',
    'routes.yaml shapes.t.1: `open` has to be the first operation'
  ],
  [
    'a shape that is used brings nothing that is for the whole response',
    withShapes({ s: [{ at: { path: 'a', operations: [{ use: 't' }] } }], t: [{ wrap: 'list' }] }),
    'routes.yaml shapes.s.0.at.operations.0.use: the shape "t" has `wrap`, which is for the whole response'
  ],
  [
    'the envelope is put on last, by a shape that is used too',
    withShapes({ s: [{ use: 't' }, { pick: ['a'] }], t: [{ paging: { list: 'a' } }] }),
    'routes.yaml shapes.s.0: `paging` has to be the last operation'
  ],
  [
    'a shape does not hold itself',
    withShapes({ s: [{ each: [{ use: 't' }] }], t: [{ use: 's' }] }),
    'routes.yaml shapes.s: contains itself: s → t → s',
    'routes.yaml shapes.t: contains itself: t → s → t'
  ],
  [
    'nor does one that another shape uses',
    withShapes({ s: [{ use: 't' }, { each: [{ use: 't' }] }], t: [{ use: 't' }] }),
    'routes.yaml shapes.t: contains itself: t → t'
  ],
  [
    'a shape that is used is there',
    withShapes({ s: [{ use: 'tt' }], t: [{ pick: ['a'] }] }),
    'routes.yaml shapes.s.0.use: there is no shape "tt". Did you mean "t"?'
  ],
  [
    'two members do not become one',
    withShapes({ s: [{ rename: { a: 'c', b: 'c' } }], t: [{ move: { 'a.b': 'a.b.c' } }] }),
    'routes.yaml shapes.s.0.rename: two members become "c"',
    'routes.yaml shapes.t.0.move.a.b: cannot be moved into itself'
  ],
  [
    'a value is not success and failure',
    withShapes({
      s: [{ status: { path: 'a', ok: [0], statuses: { 0: 404 } } }],
      t: [{ pick: ['a'] }]
    }),
    'routes.yaml shapes.s.0.status.statuses.0: is listed in `ok` too, so it never applies'
  ],
  [
    'the envelope is put on last',
    {
      routes: {
        upstreams,
        routes: { r: route({ shape: 's' }) },
        shapes: { s: [{ wrap: 'envelope' }, { pick: ['a'] }] }
      }
    },
    'routes.yaml shapes.s.0: `wrap` has to be the last operation'
  ],

  [
    'a limit holds for routes that are there',
    {
      routes: { upstreams, routes: { orders: route() } },
      limits: {
        limits: {
          l: { by: 'user', max: 1, window: '1s', routes: ['order', 'logout'] },
          ...guards()
        }
      }
    },
    'limits.yaml limits.l.routes.0: there is no route "order". Did you mean "orders"?'
  ],
  [
    'who signs in is no user yet',
    {
      limits: {
        limits: { l: { by: 'user', max: 1, window: '1s', routes: ['login'] }, ...guards() }
      }
    },
    'limits.yaml limits.l.by: counts nobody, since sign-in has no user yet; set by: address'
  ],
  [
    'a time-out that outlasts the load balancer’s is pointed out',
    {
      routes: {
        upstreams: { b: { ...upstreams.b, responseTimeout: '61s' } },
        routes: {
          r: route({ timeout: '2m' }),
          q: { path: '/api/q', upstream: 'b', timeout: '60s' }
        }
      }
    },
    ...['upstreams.b.responseTimeout', 'routes.r.timeout'].map(
      path =>
        `routes.yaml ${path}: warning: is longer than the 1m that load balancers usually wait: set a longer time-out in yours`
    )
  ],
  [
    'a bound of the whole response below that of its first byte is pointed out',
    {
      routes: {
        upstreams: {
          b: { ...upstreams.b, totalTimeout: '10s' },
          c: { url: 'http://127.0.0.1:2', responseTimeout: '10s', totalTimeout: '10s' }
        },
        routes: {
          r: route({ timeout: '12s' }),
          s: { path: '/api/s', upstream: 'b', timeout: '5s', totalTimeout: '4s' },
          q: { path: '/api/q', upstream: 'b', timeout: '10s' },
          o: { path: '/api/o', upstream: 'b' },
          p: { path: '/api/p', upstream: 'c', totalTimeout: '9s' }
        }
      }
    },
    ...[
      ['upstreams.b.totalTimeout', '10s', '15s'],
      ['routes.r.timeout', '10s', '12s'],
      ['routes.s.totalTimeout', '4s', '5s'],
      ['routes.p.totalTimeout', '9s', '10s']
    ].map(
      ([path, total, first]) =>
        `routes.yaml ${path}: warning: the whole response may take ${total}, less than its first byte (${first})`
    )
  ],
  [
    'limits that leave sign-in open to guessing are pointed out',
    {
      limits: {
        lockout: { account: 'off', address: 'off' },
        limits: {
          l: { by: 'address', max: 1, window: '1s', routes: ['profile'] },
          pair: { by: ['user', 'address'], max: 1, window: '1s', routes: ['login', 'profile'] }
        }
      }
    },
    ...['address', 'account'].map(
      by =>
        `limits.yaml lockout.${by}: warning: nothing counts sign-ins by ${by}: passwords can be guessed without limit`
    )
  ],
  [
    'a lockout has a length',
    { limits: { lockout: { account: { every: '0s' } } } },
    'limits.yaml lockout.account.every: expected at least 1ms, found "0s"'
  ],
  [
    'a limit behind a tighter one of the same callers is pointed out',
    {
      ...withRoute({}),
      limits: {
        limits: {
          all: { by: 'user', max: 10, window: '1m' },
          r: { by: 'user', max: 20, window: '1m', routes: ['r'] }
        }
      }
    },
    'limits.yaml limits.r.max: warning: can never be reached: all lets the same callers have at most 20 in 1m; lower it, or leave it out'
  ],
  [
    'one that leaves room for it is not',
    {
      ...withRoute({}),
      limits: {
        limits: {
          all: { by: 'user', max: 10, window: '1m' },
          r: { by: 'user', max: 19, window: '1m', routes: ['r'] }
        }
      }
    }
  ],
  [
    'a session’s count is its user’s too',
    {
      ...withRoute({}),
      limits: {
        limits: {
          all: { by: 'user', max: 10, window: '1m', burst: 5 },
          r: { by: ['session', 'address'], max: 15, window: '1m', routes: ['r'] },
          shadowed: { by: 'session', max: 9, window: '1m' }
        }
      }
    },
    'limits.yaml limits.r.max: warning: can never be reached: all lets the same callers have at most 15 in 1m; lower it, or leave it out'
  ],
  [
    'one that only some roles, methods or routes meet, or that is in shadow, makes no other useless',
    {
      ...withRoute({ methods: ['GET', 'POST'] }),
      limits: {
        limits: {
          roles: { by: 'user', max: 1, window: '1m', roles: ['x'] },
          methods: { by: 'user', max: 2, window: '1m', methods: ['POST'] },
          routes: { by: 'user', max: 3, window: '1m', routes: ['r'] },
          shadow: { by: 'user', max: 4, window: '1m', mode: 'shadow' },
          address: { by: 'address', max: 5, window: '1m' },
          all: { by: 'user', max: 60, window: '1m' }
        }
      }
    }
  ],
  [
    'a limit on methods that its routes do not take is pointed out',
    {
      ...withRoute({}),
      limits: {
        limits: {
          l: { by: 'user', max: 1, window: '1m', routes: ['r'], methods: ['POST', 'DELETE'] },
          ok: { by: 'user', max: 1, window: '1m', routes: ['r'], methods: ['HEAD'] }
        }
      }
    },
    'limits.yaml limits.l.methods: warning: never applies: r takes GET, HEAD'
  ],
  [
    'more in flight than the upstream takes is pointed out',
    { ...withRoute({}), limits: { inFlightPerRoute: { r: 301 } } },
    'limits.yaml inFlightPerRoute.r: warning: can never be reached: the upstream b takes 200 at once and lets 100 wait (connections, queue)'
  ],
  [
    'methods that a nearer path takes away are pointed out',
    {
      routes: {
        upstreams,
        routes: {
          all: route({ path: '/api/*', methods: ['GET', 'POST'] }),
          near: route({ path: '/api/near' }),
          deep: route({ path: '/api/near/*', methods: ['GET', 'POST'] })
        }
      }
    },
    'routes.yaml routes.near.methods: warning: POST /api/near is refused (405), although all takes it for /api/*: only the nearer path decides; name the methods here too'
  ],
  [
    'a credential that no source gives is pointed out',
    {
      gateway: { login: { sources: [{ ...source, token: 'token' }] } },
      routes: {
        upstreams: {
          b: { url: 'http://b', credential: 'bearer' },
          c: { url: 'http://c', credential: 'cookies' }
        },
        routes: { r: route(), c: route({ path: '/api/c', upstream: 'c' }) }
      }
    },
    'routes.yaml upstreams.c.credential: warning: no source of login.sources gives a cookie: none is ever sent'
  ],
  [
    'connections that the gateway gives up before a load balancer does are pointed out',
    {
      gateway: {
        server: {
          hosts: ['h'],
          listen: '0.0.0.0:8080',
          trustedProxies: ['10.0.0.0/8'],
          keepAlive: '60s'
        }
      }
    },
    'gateway.yaml server.keepAlive: warning: is not longer than the 1m for which load balancers usually keep a connection: one that uses a connection just closed answers 502; set a longer time'
  ]
]

t.test('a role that no user has is pointed out, unless a back-end may give it', async t => {
  const files = (sources: object[]) => ({
    'gateway.yaml': stringify({
      server: { hosts: ['h'], trustedProxies: ['10.0.0.0/8'] },
      login: { sources },
      identity: { prefix: true }
    }),
    'routes.yaml': stringify({
      upstreams,
      routes: { r: route({ access: { roles: ['admin', 'amdin'] } }) },
      maintenance: { allowRoles: ['boss'] }
    }),
    'users.yaml': stringify({ users: { alice: { password: knownHash, roles: ['admin'] } } })
  })
  t.same(
    faultsOf(textFolder(t.after, files([{ kind: 'users-file' }]))).map(line =>
      line.replace(/:\d+ /, ' ')
    ),
    [
      'routes.yaml routes.r.access.roles: warning: no user has the role "amdin". Did you mean "admin"?',
      'routes.yaml maintenance.allowRoles: warning: no user has the role "boss".'
    ]
  )
  t.same(faultsOf(textFolder(t.after, files([{ kind: 'users-file' }, source]))), [])
})

function guards(): object {
  return { address: { by: 'address', max: 1, window: '1s' } }
}

for (const [title, files, ...expected] of rules) {
  t.test(title, async t => {
    t.same(said(t.after, files), expected)
  })
}

t.test('a clash of two routes is one fault, also where an alias stands for them', async t => {
  const clash = { r: route(), again: route() }
  t.same(said(t.after, { routes: { upstreams, aliases: { '/api/z': '/api/r' }, routes: clash } }), [
    'routes.yaml routes.again.path: GET /api/r is taken by routes.r (line 8)'
  ])
})

t.test('what hangs on a value that does not fit is not said twice', async t => {
  t.same(
    said(t.after, {
      routes: { upstreams: { b: { url: 5 } }, routes: { r: route({ upstream: 7, path: 8 }) } }
    }),
    [
      'routes.yaml upstreams.b.url: expected an http:// or https:// address without user, query or fragment, found 5',
      'routes.yaml routes.r.path: expected a path that begins with /, with :name as a whole segment, and /* at its end at most, found 8',
      'routes.yaml routes.r.upstream: expected a name in lower case with dashes, found 7'
    ]
  )
})

const namedBy: Readonly<Record<string, (name: string) => Files>> = {
  'the upstream of a route': name => withRoute({ upstream: name }),
  'the upstream of a part': name =>
    withRoute({ upstream: undefined, parts: { p: { ...part, upstream: name } } }),
  'the upstream of the profile': name => ({
    routes: { upstreams, endpoints: { profile: { from: 'upstream', upstream: name } } }
  }),
  'the upstream of a source': name => ({
    gateway: { login: { sources: [{ ...source, upstream: name, captcha: { path: '/c' } }] } },
    routes: { upstreams }
  }),
  'the upstream of an expectation': name => ({
    routes: { upstreams, expect: { e: { request: 'GET /a', upstream: name } } }
  }),
  'the shape of a route': name => withRoute({ shape: name, maxShaped: '16MiB' }),
  'the shape of a part': name => withRoute({ parts: { p: { ...part, shape: name } } }),
  'the shape of a body': name => withRoute({ methods: ['POST'], body: { shape: name } }),
  'the shape of a body within another': name => ({
    routes: {
      upstreams,
      routes: { r: route({ methods: ['POST'], body: { shape: 's' } }) },
      shapes: { s: [{ use: name }] }
    }
  }),
  'the shape of the profile': name => ({
    routes: {
      upstreams,
      endpoints: { profile: { from: 'upstream', upstream: 'b', shape: name } }
    }
  }),
  'use in a shape': name => withShapes({ s: [{ use: name }], t: [{ each: [{ use: name }] }] }),
  'the routes of a limit': name => ({
    limits: {
      limits: { l: { by: 'user', max: 1, window: '1m', routes: [name], methods: ['GET'] } }
    }
  }),
  'the routes of a limit by role': name => ({
    limits: { limits: { l: { by: 'user', max: 1, window: '1m', routes: [name], roles: ['a'] } } }
  }),
  'a route in flight': name => ({ limits: { inFlightPerRoute: { [name]: 1 } } }),
  'a route in maintenance': name => ({ routes: { maintenance: { routes: [name] } } }),
  'a route in the ledger': name => ({
    gateway: { audit: { key: '${LONG}', fields: { [name]: { a: 'plain' } } } }
  }),
  'the source of a credential': name => ({
    routes: { upstreams: { b: { ...upstreams.b, credential: { from: name, as: 'bearer' } } } }
  }),
  'the source of operators': name => ({ gateway: { ops: { role: 'admin', sources: [name] } } })
}

for (const [key, files] of Object.entries(namedBy)) {
  t.test(`${key}: constructor is unknown like any other name`, async t => {
    const faults = said(t.after, files('nowhere'))
    t.ok(
      faults.some(fault => fault.includes('nowhere')),
      faults.join('\n')
    )
    t.same(
      said(t.after, files('constructor')),
      faults.map(fault => fault.replaceAll('nowhere', 'constructor'))
    )
  })
}
