import { connect, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { hashOf } from '../../support/users.ts'
import { stopClock } from '../../support/clock.ts'
import {
  type Called,
  configFolder,
  noLockout,
  cookieOf,
  password,
  type TestGateway,
  testGateway
} from '../../support/gateway.ts'
import { until } from '../../support/until.ts'
import { signInAt } from '../../support/sign-in.ts'
import { json, testUpstream } from '../../support/upstream.ts'

const login = '/api/auth/admin/login'
const minute = 60_000
const lockout = {}

const guarded = (t: Test, given: object = lockout, gateway: object = {}) =>
  testGateway(t.after, {
    gateway: { server: { trustedProxies: ['127.0.0.1'] }, ...gateway },
    limits: { lockout: given, limits: {} }
  })

interface From {
  readonly address?: string
  readonly cookie?: string
  readonly typed?: string
}

const attempt = (
  gateway: TestGateway,
  username: string,
  { address = '198.51.100.1', cookie, typed = 'wrong' }: From = {}
) =>
  gateway.call(login, {
    json: { username, password: typed },
    headers: { 'x-forwarded-for': address },
    ...(cookie !== undefined && { cookie })
  })

const knownOf = (answer: Called) =>
  answer.headers
    .getSetCookie()
    .find(cookie => cookie.startsWith('console_known='))
    ?.split(';', 1)[0] ?? ''
const statuses = async (
  gateway: TestGateway,
  times: number,
  username: string,
  from: (index: number) => From = () => ({})
) => {
  const found: number[] = []
  for (let index = 0; index < times; index++) {
    found.push((await attempt(gateway, username, from(index))).status)
  }
  return found
}

t.test(
  'guesses at an account are held up for a time that ends by itself; the right password then opens it',
  async t => {
    const pass = stopClock(t.after)
    const gateway = await guarded(t)
    t.same(await statuses(gateway, 6, 'alice'), [401, 401, 401, 401, 401, 429])
    const told = await attempt(gateway, ' ALICE', { typed: password })
    t.match(
      told,
      { status: 429, json: { errorCode: 'login.locked', success: false, message: /\w/ } },
      'not even the right one, in whatever spelling'
    )
    t.equal(told.headers.get('retry-after'), '300')
    t.equal(
      (await attempt(gateway, 'bob', { typed: password })).status,
      200,
      'nobody else is locked'
    )
    pass(5 * minute)
    t.equal((await attempt(gateway, 'alice')).status, 401)
    t.equal((await attempt(gateway, 'alice')).headers.get('retry-after'), '300')
    pass(5 * minute)
    t.equal((await attempt(gateway, 'alice', { typed: password })).status, 200)
  }
)

t.test('nobody can make a lock longer by trying while it lasts', async t => {
  const pass = stopClock(t.after)
  const gateway = await guarded(t)
  await statuses(gateway, 5, 'alice')
  for (let seconds = 0; seconds < 300; seconds += 25) {
    t.equal((await attempt(gateway, 'alice')).headers.get('retry-after'), String(300 - seconds))
    pass(25_000)
  }
  t.equal((await attempt(gateway, 'alice', { typed: password })).status, 200)
})

t.test(
  'a guess that is spread over many addresses is slowed too, while the owner signs in from a browser that signed in before',
  async t => {
    const pass = stopClock(t.after)
    const gateway = await guarded(t)
    const known = knownOf(
      await attempt(gateway, 'alice', { typed: password, address: '203.0.113.7' })
    )
    t.ok(known)
    const spread = (index: number) => ({ address: `198.51.100.${index}` })
    t.same(await statuses(gateway, 60, 'alice', spread), [
      ...Array(50).fill(401),
      ...Array(10).fill(429)
    ])
    const owner = await attempt(gateway, 'alice', {
      typed: password,
      cookie: known,
      address: '203.0.113.7'
    })
    t.equal(owner.status, 200)
    t.ok(cookieOf(owner))
    t.equal(
      (await attempt(gateway, 'alice', { typed: password, address: '203.0.113.7' })).status,
      429,
      'from there, but from another browser'
    )
    t.same(await statuses(gateway, 1, 'alice', spread), [429], 'which does not free the guessers')
    pass(15 * minute)
    t.same(await statuses(gateway, 2, 'alice', spread), [401, 429])
  }
)

t.test(
  'a known browser has a count of its own, so that whoever stole its cookie is held up too',
  async t => {
    const pass = stopClock(t.after)
    const gateway = await guarded(t, { accountAndAddress: { failures: 3 } })
    const known = knownOf(await attempt(gateway, 'alice', { typed: password }))
    t.same(
      await statuses(gateway, 5, 'alice', index => ({
        cookie: known,
        address: `198.51.100.${index}`
      })),
      [401, 401, 401, 429, 429]
    )
    t.equal(
      (await attempt(gateway, 'alice', { typed: password })).status,
      200,
      'the account is not locked by it'
    )
    pass(5 * minute)
    t.equal((await attempt(gateway, 'alice', { typed: password, cookie: known })).status, 200)
  }
)

t.test('the cookie is bound to the account, signed, ends, and opens nothing', async t => {
  const pass = stopClock(t.after)
  const gateway = await guarded(t, { accountAndAddress: { failures: 1 } })
  const answer = await attempt(gateway, 'alice', { typed: password })
  const set =
    answer.headers.getSetCookie().find(cookie => cookie.startsWith('console_known=')) ?? ''
  t.match(set, /; Max-Age=7776000; Path=\/; HttpOnly; SameSite=Strict$/)
  const known = knownOf(answer)
  t.notMatch(decodeURIComponent(known), /alice/i)
  t.equal((await gateway.call('/api/account/profile', { cookie: known })).status, 401)
  const isStranger = async (cookie: string, username = 'alice') => {
    await attempt(gateway, username)
    const { status } = await attempt(gateway, username, { typed: password, cookie })
    pass(48 * 60 * minute)
    return status === 429
  }
  t.equal(await isStranger(known), false)
  t.equal(await isStranger(known, 'bob'), true)
  const [name, value = ''] = known.split('=')
  for (const forged of [
    value.slice(0, -1),
    `x${value}`,
    value.split('.').slice(0, -1).join('.'),
    value.replace(/^[^.]+/, 'AAAAAAAAAAAAAAAAAAAAAA'),
    '',
    '.',
    'a.b.c',
    cookieOf(answer).split('=')[1] ?? ''
  ]) {
    t.equal(await isStranger(`${name}=${forged}`), true, forged)
  }
  pass(90 * 24 * 60 * minute)
  t.equal(await isStranger(known), true)
})

t.test('people share browsers: it is known to each of the last five accounts', async t => {
  stopClock(t.after)
  const gateway = await guarded(t, { accountAndAddress: { failures: 1 } })
  const first = knownOf(await attempt(gateway, 'alice', { typed: password }))
  const both = knownOf(await attempt(gateway, 'bob', { typed: password, cookie: first }))
  await attempt(gateway, 'alice')
  await attempt(gateway, 'bob')
  t.same(
    [
      (await attempt(gateway, 'alice', { typed: password, cookie: both })).status,
      (await attempt(gateway, 'bob', { typed: password, cookie: both })).status,
      (await attempt(gateway, 'bob', { typed: password, cookie: first })).status
    ],
    [200, 200, 429]
  )
})

t.test(
  'an address that guesses at many accounts has to wait; browsers that are known do not, behind the same address',
  async t => {
    const pass = stopClock(t.after)
    const gateway = await guarded(t)
    const known = knownOf(await attempt(gateway, 'bob', { typed: password }))
    const answers = []
    for (let index = 0; index < 22; index++) answers.push(await attempt(gateway, `user-${index}`))
    t.same(
      answers.map(({ status }) => status),
      [...Array(20).fill(401), 429, 429]
    )
    t.match(answers.at(-1)?.json, { errorCode: 'limit.exceeded' })
    t.equal((await attempt(gateway, 'bob', { typed: password })).status, 429)
    t.equal((await attempt(gateway, 'bob', { typed: password, cookie: known })).status, 200)
    t.equal(
      (await attempt(gateway, 'bob', { typed: password, address: '203.0.113.1' })).status,
      200
    )
    pass(minute)
    t.same(await statuses(gateway, 2, 'user-x'), [401, 429], 'one more each minute')
  }
)

t.test('what could not be decided is no failure', async t => {
  stopClock(t.after)
  const backend = await testUpstream(t.after, (_request, response) => {
    response.writeHead(500).end()
  })
  const gateway = await testGateway(t.after, {
    ...signInAt(backend.url, { outcomes: [{ is: 'success', path: 'code', in: [200] }] }),
    limits: {
      lockout: {
        accountAndAddress: { failures: 2 },
        address: { failures: 2 },
        account: { failures: 2 }
      }
    }
  })
  const seen = new Set<number>()
  for (let round = 0; round < 5; round++) seen.add((await attempt(gateway, 'alice')).status)
  t.notOk(seen.has(429), [...seen].join())
  t.notOk(seen.has(401), [...seen].join())
})

/** A gateway whose first source refuses all passwords, while the second one fails. */
async function withFailingSource(t: Test, bounds: object, first?: object) {
  const backends = {
    a: await testUpstream(t.after, json(401, {})),
    b: await testUpstream(t.after, json(500, {}))
  }
  const sourceAt = (upstream: string) => ({
    kind: 'upstream-login',
    upstream,
    path: '/login',
    user: { id: 'id' }
  })
  return await testGateway(t.after, {
    gateway: {
      identity: { prefix: true },
      login: { sources: { a: first ?? sourceAt('a'), b: sourceAt('b') } }
    },
    routes: { upstreams: { a: { url: backends.a.url }, b: { url: backends.b.url } } },
    limits: { lockout: { ...noLockout, ...bounds }, limits: {} }
  })
}

t.test('a guess that one source refused counts for its address while another fails', async t => {
  stopClock(t.after)
  const gateway = await withFailingSource(t, { address: { failures: 2 } })
  t.same(await statuses(gateway, 3, 'alice'), [502, 502, 429])
})

t.test('for the account it counts from the 51st on within an hour', async t => {
  stopClock(t.after)
  const gateway = await withFailingSource(t, { account: { failures: 2 } })
  t.same(new Set(await statuses(gateway, 52, 'alice')), new Set([502]))
  t.same(await statuses(gateway, 1, 'alice'), [429])
})

t.test('where nothing is counted nobody is held up, nor is a known browser', async t => {
  stopClock(t.after)
  const gateway = await guarded(t, noLockout)
  const known = knownOf(await attempt(gateway, 'alice', { typed: password }))
  for (const cookie of ['', known]) {
    t.same(new Set(await statuses(gateway, 60, 'alice', () => ({ cookie }))), new Set([401]))
  }
})

t.test('a known browser is counted where only one of the others is', async t => {
  stopClock(t.after)
  for (const kind of ['accountAndAddress', 'address', 'account']) {
    const gateway = await guarded(t, { ...noLockout, [kind]: { failures: 2 } })
    const known = knownOf(await attempt(gateway, 'alice', { typed: password }))
    t.same(await statuses(gateway, 3, 'alice', () => ({ cookie: known })), [401, 401, 429], kind)
  }
})

t.test(
  'while it is locked no password is looked at, and guesses at the same time are no way round',
  async t => {
    stopClock(t.after)
    let asked = 0
    const backend = await testUpstream(t.after, (_request, response) => {
      asked++
      response.writeHead(401, { 'content-type': 'application/json' }).end('{}')
    })
    const gateway = await testGateway(t.after, {
      ...signInAt(backend.url, { outcomes: [{ is: 'success', path: 'code', in: [0] }] }),
      limits: { lockout, limits: {} }
    })
    const answers = await Promise.all(Array.from({ length: 40 }, () => attempt(gateway, 'alice')))
    t.same(
      [
        answers.filter(({ status }) => status === 401).length,
        answers.filter(({ status }) => status === 429).length,
        asked
      ],
      [5, 35, 5]
    )
  }
)

t.test(
  'a name that nobody has is locked as one that somebody has, with the same answers, and none of them gives a cookie',
  async t => {
    stopClock(t.after)
    const gateway = await guarded(t)
    const seen = async (username: string) => {
      const found = []
      for (let index = 0; index < 7; index++) {
        const { status, headers, json } = await attempt(gateway, username, {
          address: '203.0.113.1'
        })
        const fields = [...headers.keys()].filter(name => name !== 'date').toSorted()
        found.push({
          status,
          fields,
          retryAfter: headers.get('retry-after'),
          json: { ...json, traceId: '', requestId: '' }
        })
        t.same(headers.getSetCookie(), [])
      }
      return found
    }
    t.same(await seen('nobody'), await seen('alice'))
  }
)

t.test('secrets are rotated without making strangers; another secret does', async t => {
  stopClock(t.after)
  const [old, young] = ['o'.repeat(40), 'y'.repeat(40)]
  const having = async (...secrets: string[]) =>
    testGateway(
      t.after,
      await configFolder({
        gateway: { session: { secrets: secrets.map((_, index) => `\${SECRET_${index}}`) } },
        limits: { lockout: { accountAndAddress: { failures: 1 } }, limits: {} }
      }),
      Object.fromEntries(secrets.map((secret, index) => [`SECRET_${index}`, secret]))
    )
  const known = knownOf(await attempt(await having(old), 'alice', { typed: password }))
  const statusAt = async (gateway: TestGateway) => {
    await attempt(gateway, 'alice')
    return (await attempt(gateway, 'alice', { typed: password, cookie: known })).status
  }
  t.equal(await statusAt(await having(young, old)), 200)
  t.equal(await statusAt(await having(young)), 429)
})

t.test('who has an account of almost the same name is no known browser of the other', async t => {
  stopClock(t.after)
  const hash = hashOf(password)
  const gateway = await testGateway(t.after, {
    users: { users: { jose: { password: hash, id: '1' }, José: { password: hash, id: '2' } } },
    limits: { lockout: { accountAndAddress: { failures: 1 } }, limits: {} }
  })
  const known = knownOf(await attempt(gateway, 'jose', { typed: password }))
  await attempt(gateway, 'José')
  t.same(
    [
      (await attempt(gateway, 'José', { typed: password, cookie: known })).status,
      (await attempt(gateway, 'jose', { typed: password, cookie: known })).status
    ],
    [429, 200]
  )
})

t.test('a lock is told once in the log and counted; neither password nor cookie is', async t => {
  stopClock(t.after)
  const gateway = await guarded(t)
  const known = knownOf(await attempt(gateway, 'bob', { typed: password }))
  await statuses(gateway, 8, 'al\nice\u001b[31m', () => ({ typed: 'never-logged', cookie: known }))
  const locks = gateway.log.filter(({ event }) => event === 'login.lock')
  const from = { address: '198.51.100.1', seconds: 300 }
  t.match(locks, [{ kind: 'accountAndAddress', user: 'alice[31m', ...from }])
  t.equal(locks.length, 1)
  const metrics = await (await gateway.ops('/metrics')).text()
  t.match(metrics, 'console_gateway_lockouts_total{of="accountAndAddress"} 1\n')
  t.match(metrics, 'console_gateway_limit_refused_total{limit="lockout.accountAndAddress"} 3\n')
  t.notMatch(JSON.stringify(gateway.log), /never-logged|console_known/)
})

t.test('where cookies are Secure, this one is too, and says so in its name', async t => {
  stopClock(t.after)
  const gateway = await guarded(t, lockout, { session: { cookie: { secure: true } } })
  const set = (await attempt(gateway, 'alice', { typed: password })).headers
    .getSetCookie()
    .find(cookie => cookie.includes('console_known'))
  t.match(set, /^__Host-console_known=.*; Path=\/; .*Secure/)
})

/** A back-end whose sign-in says yes to the right password, when it is let; it counts how many it was asked at a time. */
async function slowBackEnd(t: Test) {
  const waiting: Array<() => void> = []
  let isHeld = true
  let running = 0
  let most = 0
  let asked = 0
  const backend = await testUpstream(t.after, (_request, response, { body }) => {
    const { username, password: typed } = JSON.parse(body.toString()) as {
      username: string
      password: string
    }
    asked++
    most = Math.max(most, ++running)
    const answer = () => {
      running--
      const right = typed === password
      response
        .writeHead(right ? 200 : 401, { 'content-type': 'application/json' })
        .end(JSON.stringify({ code: right ? 0 : 1, id: username }))
    }
    if (isHeld) waiting.push(answer)
    else setImmediate(answer)
  })
  const files = {
    gateway: {
      server: { trustedProxies: ['127.0.0.1'] },
      login: {
        sources: {
          b: {
            kind: 'upstream-login',
            upstream: 'b',
            path: '/login',
            outcomes: [{ is: 'success', path: 'code', in: [0] }],
            user: { id: 'id' }
          }
        }
      }
    },
    routes: { upstreams: { b: { url: backend.url } } },
    limits: { lockout }
  }
  const release = () => {
    isHeld = false
    for (const answer of waiting.splice(0)) answer()
  }
  const hold = () => {
    isHeld = true
  }
  return { files, hold, release, running: () => running, most: () => most, asked: () => asked }
}

const count = (answers: readonly Called[], status: number) =>
  answers.filter(answer => answer.status === status).length
const signIns = (gateway: TestGateway, times: number, typed: string) =>
  Promise.all(
    Array.from({ length: times }, (_, index) => attempt(gateway, `user-${index}`, { typed }))
  )

t.test(
  '100 right sign-ins at once from one address all succeed, no more than 20 of them are evaluated at a time',
  async t => {
    const backend = await slowBackEnd(t)
    const gateway = await testGateway(t.after, backend.files)
    const answers = signIns(gateway, 100, password)
    await until('as many are evaluated as may be wrong', () => backend.running() === 20)
    backend.release()
    t.equal(count(await answers, 200), 100)
    t.same([backend.most(), backend.asked()], [20, 100])
  }
)

t.test(
  'of 200 guesses at 200 accounts at once from one address exactly 20 are evaluated, and the others need not wait for their time',
  async t => {
    const backend = await slowBackEnd(t)
    const gateway = await testGateway(t.after, backend.files)
    const answers = signIns(gateway, 200, 'wrong')
    await until('as many are evaluated as may be wrong', () => backend.running() === 20)
    const elsewhere = attempt(gateway, 'elsewhere', { typed: password, address: '203.0.113.9' })
    await until('another address does not wait for them', () => backend.running() === 21)
    backend.release()
    const all = await answers
    t.same([count(all, 401), count(all, 429), backend.asked()], [20, 180, 21])
    t.equal((await elsewhere).status, 200)
    t.ok(
      Number(all.find(({ status }) => status === 429)?.headers.get('retry-after')) > 50,
      'until the lock ends'
    )
  }
)

t.test('each failure of an address leaves one place less, a right password none', async t => {
  const backend = await slowBackEnd(t)
  const gateway = await testGateway(t.after, {
    ...backend.files,
    limits: { lockout: { address: { failures: 3 } } }
  })
  const both = [attempt(gateway, 'user-0'), attempt(gateway, 'user-1', { typed: password })]
  await until('both are evaluated', () => backend.running() === 2)
  backend.release()
  t.same(
    (await Promise.all(both)).map(({ status }) => status),
    [401, 200]
  )
  backend.hold()
  const three = [attempt(gateway, 'user-2'), attempt(gateway, 'user-3'), attempt(gateway, 'user-4')]
  await until('two are evaluated', () => backend.running() === 2)
  backend.release()
  t.same((await Promise.all(three)).map(({ status }) => status).toSorted(), [401, 401, 429])
  t.equal(backend.asked(), 4)
})

t.test(
  'a sign-in that waited five seconds for others of its address is 429, and they are not harmed',
  async t => {
    const backend = await slowBackEnd(t)
    const gateway = await testGateway(t.after, {
      ...backend.files,
      limits: { lockout: { address: { failures: 2 } } }
    })
    const first = signIns(gateway, 2, password)
    await until('both are evaluated', () => backend.running() === 2)
    const late = await attempt(gateway, 'late', { typed: password })
    t.match(late, { status: 429, json: { errorCode: 'limit.exceeded' } })
    t.equal(late.headers.get('retry-after'), '1')
    backend.release()
    t.equal(count(await first, 200), 2)
    t.equal((await attempt(gateway, 'late', { typed: password })).status, 200)
  }
)

t.test(
  'who stands in a line that moves is not turned away, however slow its passwords are',
  async t => {
    const backend = await slowBackEnd(t)
    const gateway = await testGateway(t.after, {
      ...backend.files,
      limits: { lockout: { address: { failures: 1 } } }
    })
    const answers = signIns(gateway, 4, password)
    const begun = performance.now()
    for (let asked = 1; asked <= 4; asked++) {
      await until('the next one is evaluated', () => backend.asked() === asked)
      // Longer in all than one may wait where nothing moves.
      await new Promise(resolve => setTimeout(resolve, 2500))
      backend.release()
      backend.hold()
    }
    t.ok(performance.now() - begun > 5000)
    t.equal(count(await answers, 200), 4)
  }
)

/** Sends a whole sign-in and does not wait for its response. */
function sendSignIn({ url }: TestGateway, username: string): Socket {
  const { hostname, port } = new URL(url)
  const body = JSON.stringify({ username, password })
  const headers = [
    `host: ${hostname}:${port}`,
    'x-forwarded-for: 198.51.100.1',
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`
  ]
  const socket = connect(Number(port), hostname)
  socket.write([`POST ${login} HTTP/1.1`, ...headers, '', body].join('\r\n'))
  return socket
}

t.test('a sign-in whose client has left is not evaluated, and holds up nobody', async t => {
  const backend = await slowBackEnd(t)
  const gateway = await testGateway(t.after, {
    ...backend.files,
    limits: { lockout: { address: { failures: 2 } } }
  })
  const first = signIns(gateway, 2, password)
  await until('both are evaluated', () => backend.running() === 2)
  const leaving = Array.from({ length: 5 }, (_, index) => sendSignIn(gateway, `left-${index}`))
  await until('the others wait', async () =>
    (await (await gateway.ops('/metrics')).text()).includes(
      'console_gateway_requests_in_flight 7\n'
    )
  )
  for (const socket of leaving) socket.destroy()
  const left = () => gateway.log.filter(line => line['msg'] === 'request' && line['status'] === 499)
  await until('they have left', () => left().length === 5)
  const last = attempt(gateway, 'last', { typed: password })
  backend.release()
  t.equal(count(await first, 200), 2)
  t.equal((await last).status, 200)
  t.equal(backend.asked(), 3)
})
