import t, { type Test } from 'tap'
import type { UpstreamLoginConfig } from '../../src/config/schema/upstream-login.ts'
import { createUpstreamLogin } from '../../src/login/upstream-login.ts'
import { createUpstream } from '../../src/proxy/upstream.ts'
import { attempt, credentialSourceContract, rightPassword } from './credential-source.ts'
import { freePort } from '../support/ports.ts'
import { upstreamConfig } from '../support/upstream-config.ts'
import { json, rawUpstream, type Seen, testUpstream } from '../support/upstream.ts'
import { credential, sessionWith, signInConfig } from '../support/upstream-login.ts'

type Over = Partial<UpstreamLoginConfig>

const base = signInConfig(undo => t.teardown(undo), {
  path: '/auth/login',
  user: {
    id: 'user.id',
    username: 'user.login',
    name: 'user.name',
    roles: 'user.roles',
    roleMap: { ADMINISTRATOR: 'admin' },
    profile: 'user.more'
  }
})

interface Form {
  readonly credentialStyle?: string
  /** No call waits longer. */
  readonly maxMs?: number
  /** Gets how long each call would wait. */
  readonly waits?: number[]
}

/** The source in front of a back-end's address, over the gateway's own way there. */
function sourceOf(t: Test, url: string, over: Over = {}, form: Form = {}) {
  const { credentialStyle = 'bearer', maxMs = Infinity, waits = [] } = form
  const upstream = createUpstream(
    upstreamConfig(t.after, {
      url,
      connectTimeout: '30s',
      responseTimeout: '30s',
      connections: 10,
      queue: 10,
      credential: credentialStyle
    })
  )
  t.after(() => upstream.close())
  return createUpstreamLogin({
    name: 'backend',
    config: { ...base, ...over },
    send: call => {
      waits.push(call.timeoutMs)
      return upstream.fetchWhole({ ...call, timeoutMs: Math.min(call.timeoutMs, maxMs) })
    },
    credentialStyle
  })
}

const aliceAnswer = {
  token: 't-1',
  user: {
    id: 1,
    login: 'alice',
    name: 'Alice',
    roles: ['ADMINISTRATOR', 'user'],
    more: { email: 'alice@example.com' }
  }
}

/** A back-end that answers every sign-in so. */
async function answering(
  t: Test,
  answer: unknown,
  over: Over = {},
  { status = 200, credentialStyle = 'bearer' } = {}
) {
  const backend = await testUpstream(t.after, json(status, answer))
  return { backend, source: sourceOf(t, backend.url, over, { credentialStyle }) }
}

const isInvalid = { code: 'upstream.invalid', status: 502 }

/** That a sign-in with such an answer is the back-end's fault. */
async function rejects(t: Test, answer: unknown, over: Over = {}, status = 200): Promise<void> {
  const { source } = await answering(t, answer, over, { status })
  await t.rejects(source.verify(attempt()), isInvalid, `${status} ${JSON.stringify(answer)}`)
}

interface BackEnd {
  readonly over?: Over
  /** Status and body for a right sign-in, and for a wrong one. */
  readonly right?: readonly [number, object]
  readonly wrong?: readonly [number, object]
  /** What is answered to a call that is no sign-in. */
  readonly other?: (seen: Seen) => readonly [number, object]
}

const from = {
  path: '/me',
  method: 'GET' as const,
  query: {},
  success: { status: [200] }
}

const backEnds: Record<string, BackEnd> = {
  'a back-end that speaks JSON': {},
  'a back-end that takes forms': { over: { format: 'form' }, wrong: [403, {}] },
  'a back-end that says 200 to everything and the truth in a code': {
    over: {
      outcomes: [
        { is: 'refused', path: 'code', in: [1001, 1002] },
        { is: 'success', path: 'code', in: [0] }
      ]
    },
    right: [200, { code: 0, ...aliceAnswer }],
    wrong: [200, { code: 1001, msg: 'bad credentials' }]
  },
  'a back-end that tells the user in a second call': {
    over: { token: 'token', user: { ...base.user, from } },
    right: [200, { token: 't-1' }],
    other: ({ headers }) =>
      headers.authorization === 'Bearer t-1' ? [200, aliceAnswer] : [401, {}]
  }
}

for (const [name, { over = {}, right, wrong, other }] of Object.entries(backEnds)) {
  t.test(name, async t => {
    const isForm = over.format === 'form'
    const type = isForm ? 'application/x-www-form-urlencoded' : 'application/json'
    const answerOf = (seen: Seen) => {
      if (seen.url !== base.path) return other?.(seen) ?? [404, {}]
      const text = seen.body.toString()
      const sent = (
        isForm ? Object.fromEntries(new URLSearchParams(text)) : JSON.parse(text)
      ) as Record<string, unknown>
      const isRight = sent['username'] === 'alice' && sent['password'] === rightPassword
      return isRight && seen.headers['content-type'] === type
        ? (right ?? [200, aliceAnswer])
        : (wrong ?? [401, { error: 'no' }])
    }
    const backend = await testUpstream(t.after, (request, response, seen) =>
      json(...answerOf(seen))(request, response, seen)
    )
    credentialSourceContract(t, sourceOf(t, backend.url, over))
  })
}

t.test(
  'the back-end is asked by POST, with the caller’s address and request id, and config’s own fields',
  async t => {
    const { backend, source } = await answering(t, aliceAnswer, {
      headers: { 'X-App': 'console', 'Accept': 'application/vnd.x+json' }
    })
    await source.verify(attempt())
    t.match(backend.seen[0], {
      method: 'POST',
      url: '/auth/login',
      headers: {
        'content-type': 'application/json',
        'x-forwarded-for': '192.0.2.7',
        'x-request-id': 'req-1',
        'x-app': 'console',
        'accept': 'application/vnd.x+json'
      }
    })
    t.equal(backend.seen[0]?.headers.accept, 'application/vnd.x+json', 'and no other')
    t.notOk(backend.seen[0]?.headers.cookie)
  }
)

t.test('a base path of the upstream stands before the sign-in’s', async t => {
  const backend = await testUpstream(t.after, json(200, aliceAnswer))
  await sourceOf(t, `${backend.url}/base`).verify(attempt())
  t.equal(backend.seen[0]?.url, '/base/auth/login')
})

t.test(
  'a template says how the body is: nested, with constants, each placeholder wherever it stands',
  async t => {
    const { backend, source } = await answering(t, aliceAnswer, {
      body: {
        login: {
          name: 'corp\\{username}',
          secret: '{password}',
          both: '{username}:{password}',
          list: ['{username}', 1, null]
        },
        app: 7,
        strict: true,
        other: '{tenant}'
      }
    })
    await source.verify(attempt({ username: 'bob', password: 'pw' }))
    t.same(JSON.parse(String(backend.seen[0]?.body)), {
      login: { name: 'corp\\bob', secret: 'pw', both: 'bob:pw', list: ['bob', 1, null] },
      app: 7,
      strict: true,
      other: '{tenant}'
    })
  }
)

t.test(
  'what is typed is data: no pattern, no placeholder, no markup, in either format',
  async t => {
    const typed = ['$&', "$1$`$'", '{username}', '{password}', '"}, "admin": true, {"']
    typed.push('&admin=true&', '%26', 'a+b c', '\\', '\u0000\r\n', '</x>', '__proto__')
    for (const format of ['json', 'form'] as const) {
      const { backend, source } = await answering(t, aliceAnswer, { format })
      for (const written of typed) {
        await source.verify(attempt({ username: written, password: `${written}!` }))
        const body = String(backend.seen.at(-1)?.body)
        t.same(
          format === 'json' ? JSON.parse(body) : Object.fromEntries(new URLSearchParams(body)),
          { username: written, password: `${written}!` },
          `${format} ${JSON.stringify(written)}`
        )
      }
    }
  }
)

t.test(
  'further members of the sign-in body go along, unless config says no; they replace nothing',
  async t => {
    const extra = JSON.parse(
      '{"captcha": "x1", "autoLogin": true, "nested": {"a": [1]}, "username": "mallory", "password": "guess", "__proto__": {"admin": true}}'
    ) as Record<string, unknown>
    for (const format of ['json', 'form'] as const) {
      const { backend, source } = await answering(t, aliceAnswer, { format })
      await source.verify(attempt({ extra }))
      const body = String(backend.seen[0]?.body)
      const isJson = format === 'json'
      const sent = isJson ? JSON.parse(body) : Object.fromEntries(new URLSearchParams(body))
      t.match(sent, {
        captcha: 'x1',
        autoLogin: isJson ? true : 'true',
        nested: isJson ? { a: [1] } : '{"a":[1]}',
        username: 'alice',
        password: rightPassword
      })
      t.equal(body.split('username').length, 2, 'once')
    }
    const { backend, source } = await answering(t, aliceAnswer, { passExtra: false })
    await source.verify(attempt({ extra }))
    t.same(JSON.parse(String(backend.seen[0]?.body)), {
      username: 'alice',
      password: rightPassword
    })
  }
)

t.test('the back-end’s token and the cookies that config names are kept, and no other', async t => {
  const others = ['SID=upper', 'sidx=1', 'sid', '=sid']
  const backend = await testUpstream(t.after, (_request, response) => {
    response
      .writeHead(200, {
        'content-type': 'application/json',
        'set-cookie': ['sid=abc; Path=/; HttpOnly', 'csrf=d=e', 'tracker=1', ...others]
      })
      .end(JSON.stringify(aliceAnswer))
  })
  t.match(
    await sourceOf(t, backend.url, { token: 'token', cookies: ['sid', 'csrf'] }).verify(attempt()),
    { vouched: true, credential: { token: 't-1', cookies: 'sid=abc; csrf=d=e' } }
  )
  t.same(
    ((await sourceOf(t, backend.url).verify(attempt())) as { credential?: unknown }).credential,
    {}
  )
})

t.test(
  'a token that no header field can hold, or that is missing, is the back-end’s fault and opens nothing',
  async t => {
    const injected = ['a\r\nx-user-roles: admin', 'a\nb', 'ü', '\u0000']
    for (const token of [...injected, null, '', {}, ['t'], true]) {
      await rejects(t, { ...aliceAnswer, token }, { token: 'token' })
    }
    const { source } = await answering(t, { ...aliceAnswer, token: 12 }, { token: 'token' })
    t.match(await source.verify(attempt()), { credential: { token: '12' } })
  }
)

t.test(
  'roles are told in the console’s words: mapped, one or many, and only texts and numbers',
  async t => {
    const rolesOf = async (roles: unknown, over: Partial<UpstreamLoginConfig['user']> = {}) => {
      const { source } = await answering(
        t,
        { user: { id: 1, roles } },
        {
          user: {
            id: 'user.id',
            roles: 'user.roles',
            roleMap: { ADMINISTRATOR: 'admin', 7: 'user' },
            ...over
          }
        }
      )
      const verdict = await source.verify(attempt())
      return verdict.vouched ? verdict.identity.roles : undefined
    }
    t.same(await rolesOf(['ADMINISTRATOR', 'clerk']), ['admin', 'clerk'])
    t.same(await rolesOf('ADMINISTRATOR'), ['admin'])
    t.same(await rolesOf([7, 8]), ['user', '8'])
    for (const none of [null, undefined, [], {}, [null, {}, '', true]]) {
      t.same(await rolesOf(none), [], JSON.stringify(none))
    }
    t.same(await rolesOf(['constructor', '__proto__', 'toString']), [
      'constructor',
      '__proto__',
      'toString'
    ])
    t.same(await rolesOf(['constructor'], { roleMap: {} }), ['constructor'])
  }
)

t.test('what the answer does not say of the user is taken from what was typed', async t => {
  const { source } = await answering(t, { user: { id: 'u1', more: ['no object'] } })
  t.match(await source.verify(attempt({ username: 'typed' })), {
    identity: { id: 'u1', username: 'typed', name: 'typed', roles: [], profile: {} }
  })
})

t.test(
  'an answer without the user’s id is the back-end’s fault: whose session would it be?',
  async t => {
    const users = [null, { id: null }, { id: '' }, { id: { $oid: 'x' } }].map(user => ({ user }))
    for (const answer of [{}, ...users, [], null, 'text', { 'user.id': 1 }]) {
      await rejects(t, answer)
    }
  }
)

t.test(
  'a status that is neither success nor refusal is the back-end’s fault, never a refusal',
  async t => {
    for (const status of [202, 204, 302, 429, 500, 502, 503]) {
      await rejects(t, status === 204 ? '' : aliceAnswer, {}, status)
    }
  }
)

t.test('a code that is neither success nor refusal is the back-end’s fault too', async t => {
  for (const answer of [{ code: 9999 }, { code: '0' }, { code: null }, {}, [], null]) {
    await rejects(t, answer, {
      outcomes: [
        { is: 'success', path: 'code', in: [0] },
        { is: 'refused', path: 'code', in: [1001] }
      ]
    })
  }
})

t.test('of outcomes the first counts, of which all conditions fit', async t => {
  const both: Over = {
    outcomes: [
      { is: 'refused', status: [200], path: 'error' },
      { is: 'success', status: [200], path: 'user.id' }
    ]
  }
  const vouchedFor = async (error?: unknown) => {
    const { source } = await answering(t, { ...aliceAnswer, error }, both)
    return (await source.verify(attempt())).vouched
  }
  t.equal(await vouchedFor('locked'), false)
  t.equal(await vouchedFor(), true)
  t.equal(await vouchedFor(false), true, 'false and null do not count as there')
  await rejects(t, { error: 'x' }, both, 500)
})

t.test('an answer that is no JSON is no success', async t => {
  const backend = await testUpstream(t.after, (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>maintenance</h1>')
  })
  await t.rejects(sourceOf(t, backend.url).verify(attempt()), isInvalid)
})

t.test('an answer larger than a sign-in’s can be is the back-end’s fault', async t => {
  await rejects(t, { ...aliceAnswer, filler: 'x'.repeat(300 * 1024) })
})

t.test('a back-end that is down, breaks off or is silent has not refused anybody', async t => {
  const raw = async (act: Parameters<typeof rawUpstream>[1]) =>
    (await rawUpstream(t.after, act)).url
  const dead = `http://127.0.0.1:${await freePort()}`
  const faults = [
    [dead, 'refused', 502],
    [await raw(socket => socket.resetAndDestroy()), 'reset', 502],
    [await raw(() => {}), 'timeout', 504],
    [await raw(socket => socket.end('SSH-2.0-OpenSSH\r\n')), 'invalid', 502]
  ] as const
  for (const [url, code, status] of faults) {
    const source = sourceOf(t, url, {}, { maxMs: code === 'timeout' ? 150 : Infinity })
    await t.rejects(source.verify(attempt()), { code: `upstream.${code}`, status })
  }
})

t.test('a profile that no session could hold is an error of the back-end', async t => {
  const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`
  const backend = await testUpstream(t.after, (_request, response) => {
    response.setHeader('content-type', 'application/json')
    response.end(`{"user":{"id":"u1","more":{"deep":${deep}}}}`)
  })
  await t.rejects(sourceOf(t, backend.url).verify(attempt()), isInvalid)
})

t.test('a back-end that answers byte by byte holds no call for longer than its time', async t => {
  const trickling = await rawUpstream(t.after, socket => {
    socket.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n')
    const timer = setInterval(() => socket.write(' '), 20)
    socket.on('close', () => clearInterval(timer))
  })
  const late = { code: 'upstream.timeout.total', status: 504 }
  const over = { logout: { path: '/logout', method: 'POST' } } as const
  const waits: number[] = []
  const source = sourceOf(t, trickling.url, over, { maxMs: 150, waits })
  await t.rejects(source.verify(attempt()), late)
  await t.rejects(async () => await source.signOut?.(sessionWith(credential)), late)
  t.same(waits, [10_000, 5000])
})

t.test('a sign-in is sent once, also when the connection breaks', async t => {
  const broken = await rawUpstream(t.after, socket => {
    socket.resetAndDestroy()
  })
  await t.rejects(sourceOf(t, broken.url).verify(attempt()))
  t.equal(broken.requests(), 1)
})

t.test('nothing that was typed and no address of the back-end stands in an error', async t => {
  const { source } = await answering(t, { error: 'x' }, {}, { status: 500 })
  const dead = sourceOf(t, `http://127.0.0.1:${await freePort()}`)
  for (const one of [source, dead]) {
    const error = await one.verify(attempt({ password: 'hunter2' })).then(
      () => undefined,
      (thrown: Error) => thrown
    )
    t.ok(error)
    t.notMatch(
      `${error?.message} ${String((error?.cause as Error | undefined)?.message)}`,
      'hunter2'
    )
    t.notMatch(error?.message ?? '', '127.0.0.1')
  }
})

t.test('sign-out calls the back-end’s own with the session’s credential', async t => {
  const credential = { token: 't-1', cookies: 'sid=abc' }
  const styles: ReadonlyArray<
    readonly [style: string, expected: Record<string, string>, absent: string]
  > = [
    ['bearer', { authorization: 'Bearer t-1', cookie: 'sid=abc' }, 'x-token'],
    ['none', { authorization: 'Bearer t-1' }, 'x-token'],
    ['header:x-token', { 'x-token': 't-1', 'cookie': 'sid=abc' }, 'authorization'],
    ['cookies', { cookie: 'sid=abc' }, 'authorization']
  ]
  for (const [credentialStyle, expected, absent] of styles) {
    for (const method of ['POST', 'GET', 'DELETE'] as const) {
      const { backend, source } = await answering(
        t,
        {},
        { logout: { path: '/auth/logout', method } },
        { credentialStyle }
      )
      await source.signOut?.(sessionWith(credential))
      t.match(backend.seen, [{ method, url: '/auth/logout', headers: expected }], credentialStyle)
      t.notOk(absent in (backend.seen[0]?.headers ?? {}))
      t.equal(backend.seen[0]?.body.length, 0)
    }
  }
})

t.test(
  'sign-out asks nobody where config names no way, or the session has no credential',
  async t => {
    const without = await answering(t, {})
    await without.source.signOut?.(sessionWith({ token: 't-1' }))
    const nothing = await answering(t, {}, { logout: { path: '/out', method: 'POST' } })
    await nothing.source.signOut?.(sessionWith())
    t.same([without.backend.seen, nothing.backend.seen], [[], []])
  }
)

t.test(
  'a sign-out that the back-end did not take is an error, so that somebody can see it',
  async t => {
    const over = { logout: { path: '/out', method: 'POST' } } as const
    const refused = async (source: ReturnType<typeof sourceOf>, code: string) =>
      await t.rejects(async () => await source.signOut?.(sessionWith({ token: 't' })), { code })
    for (const status of [401, 404, 500]) {
      await refused((await answering(t, {}, over, { status })).source, 'upstream.error')
    }
    const dead = `http://127.0.0.1:${await freePort()}`
    await refused(sourceOf(t, dead, over), 'upstream.refused')
  }
)
