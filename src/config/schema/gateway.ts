/** Install config, `gateway.yaml`: what needs a restart to change. */
import { Type, type Static, type TProperties } from 'typebox'
import {
  dotted,
  duration,
  flag,
  header,
  hostPort,
  lifetime,
  list,
  listen,
  name,
  oneOf,
  origin,
  pairs,
  path,
  secret,
  text,
  whole
} from './primitives.ts'

const section = <T extends TProperties>(properties: T, description: string) =>
  Type.Object(properties, { description, additionalProperties: false, default: {} })
const optional = <T extends TProperties>(properties: T, description: string) =>
  Type.Optional(Type.Object(properties, { description, additionalProperties: false }))

const server = section(
  {
    listen: listen({
      default: '127.0.0.1:8080',
      description: 'Where the console reaches the gateway.'
    }),
    hosts: list(text({ description: 'A host name, without port.' }), {
      default: [],
      description:
        'The `Host` names that are answered; empty answers any well-formed one. Set it in production: only a listed host is passed on as `X-Forwarded-Host`.',
      examples: [['console.example.com']]
    }),
    ports: list(whole({ minimum: 1, maximum: 65_535, description: 'A port.' }), {
      default: [],
      description:
        'Ports that `X-Forwarded-Host` may tell upstreams, beside that of `server.listen`: ' +
        'the one in the console’s address, where it is another. Clients’ other ports are dropped.',
      examples: [[8443]]
    }),
    origins: list(origin({ description: 'An origin.' }), {
      default: [],
      description:
        'Origins other than our own whose pages may call with credentials (CORS). A page on another *site* also needs `session.cookie.sameSite: none`.',
      examples: [['https://console.example.com']]
    }),
    corsHeaders: list(header({ description: 'A request header.' }), {
      default: [
        'accept',
        'authorization',
        'content-type',
        'x-csrf-token',
        'x-requested-with',
        'x-xsrf-token'
      ],
      description: 'Request headers that a page of `origins` may send.'
    }),
    trustedProxies: list(text({ description: 'An address or CIDR block.' }), {
      default: [],
      description:
        'Addresses of the load balancers in front, whose `X-Forwarded-For` and `-Proto` are believed. Empty believes nobody.',
      examples: [['10.0.0.0/8']]
    }),
    mount: Type.Optional(
      path({
        description: 'A prefix before every public path: `/x` serves `/x/api/…`.',
        examples: ['/admin']
      })
    ),
    headersTimeout: duration({
      default: '10s',
      description: 'How long a client may take to send its header fields.'
    }),
    requestTimeout: duration({
      default: '30s',
      description: 'How long a client may take to send a whole request.'
    }),
    idleTimeout: duration({
      default: '30s',
      format: 'x-duration',
      description:
        'How long a client may take nothing of an answer (a file of the console, or one ' +
        'that is whole) before its connection ends. For streamed ones the upstream’s `idleTimeout` counts.'
    }),
    workers: Type.Union(
      [
        whole({ minimum: 1, maximum: 128, description: 'So many.' }),
        Type.Literal('auto', { description: 'One for each core.' })
      ],
      {
        default: 1,
        expected: 'a whole number from 1 to 128, or auto',
        description:
          'How many processes serve, on one listener; `auto` is one for each core. They share sessions and limits through Redis, so without Redis there is one.',
        examples: ['auto']
      }
    ),
    keepAlive: duration({
      default: '72s',
      description:
        'How long an unused connection is kept; longer than the load balancer keeps its own.'
    })
  },
  'The public listener.'
)

const ops = section(
  {
    listen: listen({
      default: '127.0.0.1:9090',
      description: 'Where `/healthz` and `/readyz` are answered. Keep it private.'
    }),
    secret: Type.Optional(
      secret({
        description:
          'What a request has to carry as `Authorization: Bearer SECRET`, on every address, ' +
          'for everything but `/healthz` and `/readyz` without its details. At least 32 visible ASCII ' +
          'characters; make one with `console-gateway generate-secret`. Empty: made up at each start ' +
          'and left in a file that only the gateway’s user can read, where commands on the same ' +
          'machine find it.',
        examples: ['${OPS_SECRET}', 'file:/run/secrets/ops-secret']
      })
    ),
    hosts: list(text({ description: 'A host name, without port.' }), {
      default: [],
      description:
        'Names of this listener, beside IP addresses, `localhost` and names without a dot. ' +
        '`/metrics`, `/readyz` and `/openapi.json` refuse a browser (421) that calls them by another ' +
        'name, so that no page can read them by giving its own name this address. Whoever else calls ' +
        'by another name is answered, and once a day there is a warning.',
      examples: [['gateway.monitoring.svc']]
    }),
    openMetrics: flag({
      default: false,
      description: 'Whether `/metrics` is answered without `ops.secret`.'
    }),
    strictRedis: flag({
      default: false,
      description:
        'Whether `/readyz` fails whenever Redis is away. By default it fails only before the first contact, since replicas that all leave the load balancer help nobody.'
    }),
    useRecord: lifetime({
      default: '48h',
      description:
        'How long it is known how much of each limit its callers used, by hour, for `console-gateway limits suggest`; with Redis, of all replicas. `0s`: no record is kept.'
    })
  },
  'The listener for operators and orchestrators.'
)

const log = section(
  {
    level: oneOf(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'], {
      default: 'info',
      description: 'The least level that is written.'
    }),
    format: oneOf(['auto', 'json', 'pretty'], {
      default: 'auto',
      description: '`auto` is readable on a terminal and JSON elsewhere.'
    })
  },
  'Logs, on standard output.'
)

const drain = section(
  {
    notice: duration({
      default: '5s',
      description:
        'After SIGTERM: how long requests are still taken while `/readyz` says 503, so that load balancers notice.'
    }),
    grace: duration({
      default: '10s',
      description: 'After that: how long requests in flight may take to finish.'
    })
  },
  'How the process stops.'
)

const reload = section(
  {
    watch: flag({
      default: true,
      description:
        'Whether changes of the config files, and of the users, secret and certificate files that they name, are taken up by themselves. SIGHUP and `console-gateway reload` always are.'
    }),
    settle: duration({
      default: '500ms',
      description:
        'How long the files have to stand still before a change is taken up: nobody wants half a file.'
    }),
    poll: duration({
      default: '10s',
      description:
        'How often the files are looked at, beside the notices of the system, which network file systems do not send.'
    }),
    grace: duration({
      default: '10m',
      description:
        'How long requests that began before a reload (uploads, downloads, event streams) may go on as they began; then they are ended.'
    })
  },
  'How `routes.yaml`, `limits.yaml` and users files are replaced while the gateway runs.'
)

const redis = optional(
  {
    url: Type.String({
      default: '',
      pattern: '^$|^rediss?://[^\\s@/]+(:[0-9]+)?(/[0-9]+)?$',
      expected:
        'redis://HOST:PORT or rediss://HOST:PORT, optionally with /DB; user and password stand in their own keys',
      description:
        'One Redis server; `rediss://` is TLS. With `sentinels` or `cluster` it stays empty. All empty: the embedded store, for one process only.',
      examples: ['redis://redis:6379', '${REDIS_URL:-}']
    }),
    sentinels: list(hostPort({ description: 'HOST:PORT.' }), {
      default: [],
      description: 'Sentinels that know where the primary is; it is followed when it moves.',
      examples: [['sentinel-1:26379', 'sentinel-2:26379', 'sentinel-3:26379']]
    }),
    primary: text({ default: 'mymaster', description: 'What the Sentinels call the primary.' }),
    sentinelPassword: Type.Optional(secret({ description: 'The Sentinels’ own password.' })),
    cluster: list(hostPort({ description: 'HOST:PORT.' }), {
      default: [],
      description: 'Some nodes of a Redis Cluster; the others are found through them.',
      examples: [['redis-1:6379', 'redis-2:6379']]
    }),
    tls: flag({
      default: false,
      description: 'TLS with Sentinels or a Cluster; a single server says `rediss://`.'
    }),
    username: Type.Optional(text({ description: 'The ACL user.' })),
    password: Type.Optional(
      secret({ description: 'The password.', examples: ['file:/run/secrets/redis-password'] })
    ),
    ca: Type.Optional(
      text({
        description:
          'A PEM file with the authority of a `rediss://` server, where the system does not know it.'
      })
    ),
    prefix: Type.String({
      pattern: '^[A-Za-z0-9:_-]{0,32}$',
      default: 'cg:',
      expected: 'letters, digits, : _ and -',
      description: 'What every key begins with.'
    }),
    connectTimeout: duration({ default: '1s', description: 'How long a connection may take.' }),
    commandTimeout: duration({
      default: '400ms',
      description: 'How long a command may take; then what needs a session answers 503.'
    })
  },
  'Where sessions and counters live. Without it they live in this process, which suits one process and development.'
)

const session = section(
  {
    secrets: list(secret({ description: 'At least 32 characters.' }), {
      default: [],
      description:
        'Secrets that sign the cookie and seal the data in Redis: the first signs and seals, all verify and open. A new one has to be second at every replica before it comes first. Make one with `console-gateway generate-secret`. Empty (without Redis only): generated at start.',
      examples: [['${SESSION_SECRET}']]
    }),
    records: Type.Unsafe<1 | 2>(
      Type.Integer({
        enum: [1, 2],
        expected: '1 or 2',
        default: 1,
        description:
          'The format in which sessions are written to Redis. Both are read. ' +
          '`1` is read by every release; set `2` once every replica runs a version that knows ' +
          'this key. With `2` the list of a user’s sessions is no longer kept for the first ' +
          'releases either.'
      })
    ),
    idle: lifetime({
      default: '30m',
      description: 'A session ends when it was not used for so long.'
    }),
    absolute: lifetime({
      default: '8h',
      description: 'A session ends so long after sign-in, used or not.'
    }),
    remembered: section(
      {
        idle: Type.Optional(
          lifetime({
            description:
              'As `session.idle`, for sign-ins that asked to be remembered; the same without it.'
          })
        ),
        absolute: Type.Optional(
          lifetime({ description: 'As `session.absolute`, likewise; the cookie lives as long.' })
        )
      },
      'Life-times of sessions whose sign-in asked to be remembered (`autoLogin`): their cookie outlives the browser.'
    ),
    perUser: section(
      {
        max: whole({
          minimum: 1,
          maximum: 1000,
          default: 5,
          description: 'Sessions that a user may have at once.'
        }),
        over: oneOf(['evict-oldest', 'refuse'], {
          default: 'evict-oldest',
          description: 'What one more sign-in does: end the oldest session, or be refused.'
        })
      },
      'How many sessions a user may have.'
    ),
    revocation: oneOf(['replicated', 'primary'], {
      default: 'replicated',
      description:
        'When a sign-out, a revocation or a sign-in counts as done: `replicated` once the replicas of Redis that are up have it too, so that no failover undoes it; 503 otherwise. `primary` as soon as the primary has it. Without replicas the two are the same.'
    }),
    staleness: duration({
      default: '2s',
      description:
        'The longest that the end of a session can go unnoticed by another replica, when the channel that tells of it is dead without a sign. While it works, replicas know within milliseconds.'
    }),
    headers: flag({
      default: true,
      description:
        'Whether each signed-in answer tells the seconds left in `X-Session-Idle-In` and `X-Session-Absolute-In`.'
    }),
    cookie: section(
      {
        name: Type.String({
          pattern: '^[A-Za-z0-9_-]{1,40}$',
          default: 'console_sid',
          expected: 'letters, digits, _ and -',
          description: 'The cookie’s name; with `secure` it gets the prefix `__Host-`.'
        }),
        secure: flag({
          default: true,
          description: 'Whether the cookie needs https. `false` is for development on loopback.'
        }),
        sameSite: oneOf(['strict', 'lax', 'none'], {
          default: 'strict',
          description:
            '`none` is for a console on another site only, and makes the cookie `Partitioned`.'
        })
      },
      'The session cookie: always HttpOnly, Path=/ and without Domain.'
    )
  },
  'Sessions: an opaque cookie in the browser, the data in Redis.'
)

const sourceNameSchema = (otherwise: string) =>
  Type.Optional(
    name({
      description:
        'The name of this source in sessions, logs and limits; ' +
        `\`${otherwise}\` without it. ` +
        'No two sources share one. A user is an id of a source, so another name signs its users out.'
    })
  )

const usersFile = Type.Object(
  {
    kind: Type.Literal('users-file', { description: 'Users of a YAML file with argon2id hashes.' }),
    name: sourceNameSchema('users-file'),
    file: text({
      default: 'users.yaml',
      description:
        'The file, seen from the config folder. `console-gateway hash-password` makes a hash.'
    }),
    decides: flag({
      default: true,
      description:
        'Whether this file alone decides on a user name that stands in it. `false`: the ' +
        'next source is asked as well, with the password, of a user who is disabled here or whose ' +
        'password does not match.'
    })
  },
  { additionalProperties: false, title: 'users-file' }
)

const answerTest = (meta: { default: object; description: string }) =>
  Type.Object(
    {
      status: Type.Optional(
        list(whole({ minimum: 100, maximum: 599, description: 'A status.' }), {
          description: 'HTTP statuses that fit.',
          minItems: 1
        })
      ),
      path: Type.Optional(
        dotted({ description: 'A member of the JSON answer.', examples: ['code'] })
      ),
      in: Type.Optional(
        list(Type.Union([Type.String(), Type.Number(), Type.Boolean()]), {
          description:
            'Values of that member that fit. Without it, the member has to be there and be neither null nor false.',
          minItems: 1
        })
      )
    },
    { additionalProperties: false, minProperties: 1, ...meta }
  )

const expiry = Type.Object(
  {
    path: dotted({
      description: 'Where the answer says when the token ends.',
      examples: ['data.expiresIn']
    }),
    as: oneOf(['seconds', 'milliseconds', 'epoch-seconds', 'epoch-milliseconds', 'date'], {
      default: 'seconds',
      description: 'What it says: a time from now, a time since 1970, or a date in text.'
    })
  },
  { additionalProperties: false, description: 'When the token ends.' }
)

const upstreamLogin = Type.Object(
  {
    kind: Type.Literal('upstream-login', { description: 'A back-end’s own sign-in.' }),
    name: sourceNameSchema('upstream-login:UPSTREAM'),
    upstream: name({ description: 'An upstream of `routes.yaml`.' }),
    path: path({ description: 'Where it takes sign-ins (POST).', examples: ['/auth/login'] }),
    format: oneOf(['json', 'form'], { default: 'json', description: 'How the body is written.' }),
    body: pairs(Type.Unknown(), {
      default: { username: '{username}', password: '{password}' },
      description:
        'The body: `{username}` and `{password}` stand for what the administrator typed, everything else goes as it is.'
    }),
    passExtra: flag({
      default: true,
      description: 'Whether further members of the console’s sign-in body are added.'
    }),
    headers: pairs(Type.String(), { default: {}, description: 'Header fields for the request.' }),
    success: answerTest({
      default: { status: [200] },
      description: 'How a successful sign-in is recognised: all that is given has to fit.'
    }),
    refused: answerTest({
      default: { status: [400, 401, 403, 404, 422] },
      description:
        'How a refusal is recognised. An answer that is neither is a fault of the upstream (502), never a refusal.'
    }),
    user: Type.Object(
      {
        id: dotted({
          description: 'Where the user’s id is in the answer.',
          examples: ['data.user.id']
        }),
        username: Type.Optional(
          dotted({ description: 'The user name; what was typed, without it.' })
        ),
        name: Type.Optional(
          dotted({ description: 'The name for people; the user name, without it.' })
        ),
        roles: Type.Optional(dotted({ description: 'A role, or a list of roles.' })),
        roleMap: pairs(Type.String(), {
          default: {},
          description: 'The back-end’s roles in the console’s words; others stay as they are.',
          examples: [{ ADMINISTRATOR: 'admin' }]
        }),
        profile: Type.Optional(
          dotted({ description: 'An object with more about the user, kept for the profile.' })
        )
      },
      { additionalProperties: false, description: 'Where the answer says who signed in.' }
    ),
    token: Type.Optional(
      dotted({
        description:
          'Where the answer holds the back-end’s token. It stays in the session; the browser never sees it.',
        examples: ['data.token']
      })
    ),
    expires: Type.Optional(expiry),
    refresh: Type.Optional(
      Type.Object(
        {
          path: path({ description: 'Where the back-end renews tokens.' }),
          method: oneOf(['POST', 'PUT', 'GET'], {
            default: 'POST',
            description: 'With this method.'
          }),
          body: pairs(Type.Unknown(), {
            default: {},
            description:
              'The body: `{token}` and `{refreshToken}` stand for what the session holds. The token also goes along as the upstream’s `credential` says.'
          }),
          before: duration({
            default: '60s',
            description: 'How long before its end a token is renewed.'
          }),
          token: dotted({
            description: 'Where the answer holds the new token.',
            examples: ['data.token']
          }),
          expires: Type.Optional(expiry)
        },
        {
          additionalProperties: false,
          description:
            'How the back-end’s token is renewed before it ends. Needs `expires`. A refusal ends the session.'
        }
      )
    ),
    refreshToken: Type.Optional(
      dotted({ description: 'Where the answers to sign-in and renewal hold a refresh token.' })
    ),
    cookies: list(text({ description: 'A cookie name.' }), {
      default: [],
      description:
        'Cookies of the answer that stay in the session and go to upstreams with `credential: cookies`.'
    }),
    timeout: duration({ default: '10s', description: 'How long the back-end may take.' }),
    logout: Type.Optional(
      Type.Object(
        {
          path: path({ description: 'Where it takes sign-outs.' }),
          method: oneOf(['POST', 'GET', 'DELETE'], {
            default: 'POST',
            description: 'With this method.'
          })
        },
        {
          additionalProperties: false,
          description:
            'The back-end’s own sign-out, called with the session’s credential. Its failure does not keep our session alive.'
        }
      )
    )
  },
  { additionalProperties: false, title: 'upstream-login' }
)

const login = section(
  {
    fields: section(
      {
        username: text({ default: 'username', description: 'The user name.' }),
        password: text({ default: 'password', description: 'The password.' }),
        remember: text({
          default: 'autoLogin',
          description: 'A boolean: whether the cookie outlives the browser.'
        })
      },
      'The members of the console’s sign-in body.'
    ),
    refusedStatus: Type.Unsafe<200 | 401>(
      Type.Integer({
        enum: [200, 401],
        expected: '401 or 200',
        default: 401,
        description:
          'The HTTP status of a refused sign-in. 200 suits consoles that only look at `status: error` in the body.'
      })
    ),
    sources: Type.Array(Type.Union([usersFile, upstreamLogin]), {
      minItems: 1,
      default: [{ kind: 'users-file', file: 'users.yaml' }],
      description: 'What may vouch for an administrator, tried in this order.'
    })
  },
  'Sign-in.'
)

/** Dialects of the envelope. */
export const dialects = ['dual', 'ant-design-pro', 'base-response'] as const
export const errorStatuses = ['own', 'ok'] as const

const envelope = section(
  {
    dialect: oneOf([...dialects], {
      default: 'dual',
      description: 'The outer object of every answer. `dual` suits both kinds of console.'
    }),
    successCode: whole({
      default: 0,
      description: 'The `code` of a success.',
      examples: [0, 200, 20000]
    }),
    errorStatus: oneOf([...errorStatuses], {
      default: 'own',
      description:
        'The HTTP status of errors: their `own`, or `ok`, which is 200 for consoles that look only at the envelope. A route may say otherwise.'
    }),
    language: oneOf(['en', 'zh'], {
      default: 'en',
      description: 'The language of the gateway’s own messages.'
    }),
    messages: pairs(Type.String({ minLength: 1 }), {
      default: {},
      description: 'Messages of your own, by error code.',
      examples: [{ 'login.refused': 'Wrong user name or password.' }]
    }),
    tokenCookies: list(Type.String({ pattern: '^[A-Za-z0-9_.-]+$', expected: 'a cookie name' }), {
      default: ['TOKEN__'],
      description:
        'Cookies in which consoles keep a token of their own: expired at sign-in and sign-out, never sent upstream.'
    })
  },
  'How answers look.'
)

const identity = section(
  {
    id: header({
      default: 'x-user-id',
      description: 'The header that tells an upstream the user’s id.'
    }),
    username: header({ default: 'x-user-name', description: 'The user name.' }),
    roles: header({ default: 'x-user-roles', description: 'The roles, joined by commas.' }),
    source: Type.Optional(
      header({
        description:
          'The header that tells an upstream which credential source vouched, by its name.',
        examples: ['x-user-source']
      })
    ),
    prefix: flag({
      default: false,
      description: 'Whether the name of the credential source stands before the id: `users-file/1`.'
    })
  },
  'Header fields that tell upstreams who asks. What a client sends under these names, in any spelling, is dropped. Values are percent-encoded where they are not plain ASCII.'
)

const consoleFiles = optional(
  {
    root: text({
      description: 'The folder of the built console, seen from the config folder.',
      examples: ['../console/dist']
    }),
    contentSecurityPolicy: text({
      default: "base-uri 'self'; object-src 'none'; frame-ancestors 'none'",
      description:
        'The `Content-Security-Policy` of its pages. The default breaks no console; tighten it for yours.',
      examples: ["default-src 'self'; frame-ancestors 'none'"]
    })
  },
  'Serve the console’s own files, so that page and gateway share an origin: history fallback, hashed assets cached for good.'
)

export const gatewaySchema = Type.Object(
  {
    server,
    ops,
    log,
    drain,
    reload,
    redis,
    session,
    login,
    envelope,
    identity,
    console: consoleFiles
  },
  {
    additionalProperties: false,
    default: {},
    title: 'gateway.yaml',
    description: 'Install config: changes need a restart.'
  }
)

export type GatewayConfig = Static<typeof gatewaySchema>
export type SourceConfig = GatewayConfig['login']['sources'][number]
export type AnswerTest = UpstreamLoginConfig['success']
export type UpstreamLoginConfig = Static<typeof upstreamLogin>
export type RedisConfig = NonNullable<GatewayConfig['redis']>

/** The name under which sessions keep a credential source. */
export function sourceName(source: SourceConfig): string {
  if (source.name !== undefined) return source.name
  return source.kind === 'users-file' ? source.kind : `${source.kind}:${source.upstream}`
}

/** Whether sessions and counters live in Redis. */
export function usesRedis({ redis: settings }: GatewayConfig): boolean {
  return (
    settings !== undefined &&
    (settings.url !== '' || settings.sentinels.length > 0 || settings.cluster.length > 0)
  )
}
