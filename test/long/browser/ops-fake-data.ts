/** What the invented operators' API answers. */
import type { ErrorCode } from '../../../src/errors/errors.ts'
import type { FakeOptions } from './ops-fake.ts'

const names = ['orders', 'order', 'users', 'invoices', 'notices', 'reports', 'export', 'search']

function nameOf(index: number, text: string | undefined): string {
  return `${text ?? names[index % names.length]}${index < names.length ? '' : `-${index}`}`
}

/** A wave, so that charts move and tests know what comes. */
function waveOf(number: number, index: number): number {
  return 1 + 0.5 * Math.sin(number / 7 + index) + 0.2 * Math.sin(number / 2 + index * 3)
}

export function frameOf({ routes = 8, upstreams = 3, text }: FakeOptions, number: number): object {
  const ofRoutes = Array.from({ length: routes }, (_, index) => {
    const wave = waveOf(number, index)
    return {
      route: nameOf(index, text),
      requestsPerSecond: (wave * 90) / (index + 1),
      errorShare: index === 3 ? 0.08 * wave : 0.002,
      p50Ms: 6 + index + wave * 2,
      p99Ms: 40 + index * 3 + wave * 20
    }
  })
  const total = ofRoutes.reduce((sum, { requestsPerSecond }) => sum + requestsPerSecond, 0)
  return {
    at: new Date().toISOString(),
    replica: 'r1',
    requestsPerSecond: total,
    errorShare: 0.013 * waveOf(number, 1),
    inFlight: Math.round(12 * waveOf(number, 2)),
    queued: number % 20 > 15 ? 3 : 0,
    p50Ms: 8 * waveOf(number, 3),
    p99Ms: 70 * waveOf(number, 4),
    routes: ofRoutes,
    upstreams: Array.from({ length: upstreams }, (_, index) => ({
      upstream: text ?? ['backend', 'billing', 'search'][index % 3],
      address: `10.0.${index}.7:8080`,
      state: index === 1 ? 'down' : 'up',
      inFlight: index === 1 ? 0 : 4 + index,
      queued: 0,
      requestsPerSecond: 30,
      errorShare: index === 1 ? 1 : 0.004
    })),
    redis: { state: 'up', latencyMs: 0.4, since: new Date(Date.now() - 7_200_000).toISOString() },
    process: {
      pid: 4201,
      eventLoopDelayMs: 1.2 * waveOf(number, 1),
      rssBytes: 149_000_000,
      cpu: 0.3 * waveOf(number, 1)
    },
    replicas: ['r1', 'r2'].map(id => ({
      id,
      host: text ?? `gateway-${id.slice(1)}`,
      version: '0.2.0',
      configHash: '8c1f0e7ab2',
      ready: true,
      seenAt: new Date().toISOString()
    })),
    config: { generation: 3, hash: '8c1f0e7ab2', state: 'running' }
  }
}

type Answer = (query: Readonly<Record<string, string>>) => object

const agents = [
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36',
  'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Safari/605.1.15',
  'curl/8.9.1'
]
const people = [
  'alice',
  'bob',
  'carol',
  'dave',
  'erin',
  'frank',
  'grace',
  'heidi',
  'wang.wei',
  'li.na'
]
const ago = (seconds: number) => new Date(Date.now() - seconds * 1000).toISOString()

/** By path below `/ops/api/`. */
export function answersOf(options: FakeOptions): Readonly<Record<string, Answer>> {
  const { text } = options
  return {
    'sessions': query => sessionsOf(options, query),
    'lockouts': () => ({
      lockouts: [
        { kind: 'account', account: text ?? 'mallory', until: ago(-540) },
        {
          kind: 'account from one address',
          account: 'trudy',
          address: '203.0.113.8',
          until: ago(-300)
        },
        { kind: 'address', address: '203.0.113.9', until: ago(-120) },
        { kind: 'address at the operators’ page', address: '2001:db8::', until: ago(-60) }
      ],
      total: 4
    }),
    'requests': query => requestsOf(options, query),
    'requests/:id': () => ({ requests: [] }),
    'config': () => configOf(options),
    'config/files': () => ({
      state: 'different',
      reload: [text ?? 'routes.orders.timeout: 5s → 8s'],
      restart: ['gateway.session.idle: 30m → 20m'],
      risks: ['orders may now take 8 s; the load balancer in front gives up after 60 s'],
      faults: [],
      files: []
    }),
    'config/expectations': () => ({
      expectations: [
        { text: text ?? 'admin may GET /api/orders', isMet: true },
        { text: 'user gets 403 from POST /api/orders', isMet: false, message: text ?? 'got 200' }
      ]
    }),
    'config/contracts': () => ({
      contracts: [
        { route: 'orders', checked: 1204, drift: [] },
        {
          route: text ?? 'users',
          checked: 80,
          drift: [text ?? 'data[].age: text instead of number']
        }
      ]
    }),
    'maintenance': () => ({
      shared: true,
      file: null,
      operators: [
        {
          routes: [],
          methods: [],
          allowRoles: [],
          until: ago(-1500),
          message: text ?? 'Stock-taking until 14:00.',
          author: text ?? 'olivia',
          since: ago(300)
        }
      ]
    }),
    'limits': () => ({ limits: limitsOf(options) }),
    'audit': () => ({ lines: auditOf(options), isWhole: true })
  }
}

function sessionsOf(options: FakeOptions, query: Readonly<Record<string, string>>): object {
  const { sessions = 24 } = options
  const { search = '', size = '1000', after = '0' } = query
  const all = Array.from({ length: sessions }, (_, index) => sessionOf(options, index))
  const fitting = all.filter(({ user, userId }) =>
    [user, userId].some(each => each.includes(search))
  )
  const end = Number(after) + Number(size)
  return {
    sessions: fitting.slice(Number(after), end),
    isWhole: after === '0' && end >= fitting.length,
    users: fitting.length,
    ...(end < fitting.length && { next: String(end) })
  }
}

function sessionOf({ text }: FakeOptions, index: number) {
  return {
    id: `session-${index}`,
    user: text ?? `${people[index % people.length]}${index < people.length ? '' : index}`,
    userId: String(index + 1),
    source: index % 3 === 0 ? 'backend' : 'users-file',
    startedAt: ago(index * 97 + 40),
    lastUsedAt: ago(index * 13),
    idleIn: 1800 - (index % 1700),
    absoluteIn: 30_000,
    address: `192.0.2.${index % 250}`,
    agent: text ?? agents[index % agents.length]
  }
}

function requestsOf({ text }: FakeOptions, query: Readonly<Record<string, string>>): object {
  const codes: Readonly<Record<number, ErrorCode>> = {
    401: 'session.idle',
    429: 'limit.exceeded',
    502: 'upstream.error'
  }
  const all = Array.from({ length: 300 }, (_, index) => {
    const status = [200, 200, 200, 401, 200, 429, 200, 502][index % 8] ?? 200
    return {
      requestId: `req-${1000 - index}`,
      at: ago(index * 2),
      ms: 12.4 + (index % 9) * 7,
      method: index % 5 === 0 ? 'POST' : 'GET',
      path: text ?? `/api/${names[index % names.length]}`,
      address: '192.0.2.7',
      route: nameOf(index % names.length, text),
      upstream: 'backend',
      status,
      code: codes[status],
      message: status === 429 ? (text ?? 'Too many requests.') : undefined,
      advice: status === 502 ? (text ?? 'See whether the back-end runs.') : undefined,
      isCut: false,
      limit: status === 429 ? 'signed-in' : undefined,
      limitMax: status === 429 ? 600 : undefined,
      user: status === 401 ? undefined : (text ?? people[index % people.length]),
      userId: '17',
      session: 'T7cQ',
      sessionFrom: status === 401 ? 'none' : 'cache',
      sessionMs: 0.3,
      sessionAgeMs: 5_400_000,
      limits: [
        { name: 'signed-in', count: 212, max: 600, isEnforced: true, isExceeded: status === 429 }
      ],
      limitsMs: 0.4,
      queueMs: index % 4 === 0 ? 2.1 : undefined,
      attempts: [
        ...(status === 502
          ? [
              {
                upstream: 'backend',
                address: '10.0.0.7:8080',
                atMs: 1,
                ms: 4,
                failure: 'refused',
                reason: text ?? 'ECONNREFUSED'
              }
            ]
          : []),
        { upstream: 'backend', address: '10.0.0.8:8080', atMs: 5.2, ms: 6.1, status }
      ],
      shapeMs: 0.6,
      sent: 2140,
      traceId: '4bf92f3577b34da6a3ce929d0e0e4736'
    }
  })
  const { status = '', user } = query
  const requests = all.filter(
    request =>
      (status === '' ||
        (status === 'failed' ? request.status >= 400 : String(request.status)[0] === status[0])) &&
      (user === undefined || request.user === user)
  )
  return { requests, hasMore: false }
}

function configOf({ text }: FakeOptions): object {
  return {
    folder: '/etc/console-gateway',
    generation: 3,
    hash: '8c1f0e7ab2d94410',
    takenAt: ago(400),
    by: 'files changed',
    changes: [text ?? 'routes.orders.timeout: 3s → 5s'],
    files: {
      state: 'refused',
      since: ago(60),
      faults: [text ?? 'routes.yaml:14: routes.orders.upstram: unknown key; did you mean upstream?']
    },
    restartNeeded: ['gateway.session.idle']
  }
}

function limitsOf({ text }: FakeOptions): object[] {
  const [anna, bob, carl] = [
    { used: 540, caller: text ?? 'anna' },
    { used: 10, caller: 'bob' },
    { used: 8, caller: 'carl' }
  ]
  return [
    {
      limit: text ?? 'signed-in',
      mode: 'enforce',
      by: ['user'],
      max: 600,
      windowMs: 60_000,
      hour: anna,
      day: anna,
      over: [],
      nearest: [anna]
    },
    {
      limit: 'export',
      mode: 'shadow',
      by: ['user', 'session'],
      max: 10,
      windowMs: 129_600_000,
      hour: bob,
      day: bob,
      over: ['bob'],
      nearest: [bob, carl]
    },
    {
      limit: 'sign-in',
      mode: 'enforce',
      by: ['address'],
      max: 30,
      windowMs: 90_000,
      over: [],
      nearest: []
    }
  ]
}

function auditOf({ text }: FakeOptions): object[] {
  return Array.from({ length: 60 }, (_, index) => ({
    chain: '00aa11bb22cc',
    signed: index !== 20,
    line: [
      {
        seq: index,
        at: ago((60 - index) * 30),
        kind: 'act',
        operator: text ?? 'olivia',
        via: 'session',
        address: '192.0.2.1',
        act: 'sessions.close',
        outcome: 'done',
        detail: { closed: 3 }
      },
      {
        seq: index,
        at: ago((60 - index) * 30),
        kind: 'request',
        user: text ?? 'alice',
        address: '192.0.2.7',
        method: 'POST',
        path: text ?? '/api/orders',
        status: 201
      },
      {
        seq: index,
        at: ago((60 - index) * 30),
        kind: 'sign-in.refused',
        user: text ?? 'mallory',
        address: '203.0.113.9',
        code: 'login.refused' satisfies ErrorCode
      },
      {
        seq: index,
        at: ago((60 - index) * 30),
        kind: 'config.reload',
        operator: 'files changed',
        outcome: 'done',
        detail: { generation: 3 }
      }
    ][index % 4]
  }))
}
