import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import t from 'tap'
import { stringify } from 'yaml'
import { simulate } from '../../../src/cli/limits/simulate.ts'
import { logLines } from '../../../src/cli/limits/log-lines.ts'
import { run, runProcess } from '../../support/command.ts'
import { textFolder } from '../../support/config-files.ts'
import { configFolder, password, testGateway } from '../../support/gateway.ts'
import { testUpstream } from '../../support/upstream.ts'

function scratch(cleanUp: (undo: () => unknown) => void) {
  const folder = mkdtempSync(join(tmpdir(), 'simulate-'))
  cleanUp(() => rmSync(folder, { recursive: true, force: true }))
  return (name: string, content: string | Uint8Array) => {
    const file = join(folder, name)
    writeFileSync(file, content)
    return file
  }
}

const consoleFolder = (cleanUp: (undo: () => unknown) => void, text: string) =>
  textFolder(cleanUp, {
    'gateway.yaml': 'server: { hosts: [h], trustedProxies: [10.0.0.0/8] }',
    'routes.yaml':
      'upstreams: { b: { url: https://b.internal } }\naliases: { /api/o: /api/orders }\nroutes: { orders: { path: /api/orders, upstream: b, access: session }, news: { path: /api/news/*, upstream: b, access: public } }',
    'limits.yaml': text
  })

const begin = Date.UTC(2026, 10, 21, 8)
const line = (seconds: number, given: object = {}) =>
  JSON.stringify({
    level: 'info',
    time: new Date(begin + seconds * 1000).toISOString(),
    requestId: `id-${seconds}`,
    route: 'orders',
    method: 'GET',
    path: '/api/orders',
    status: 200,
    ms: 0,
    address: '192.0.2.1',
    user: 'ann',
    session: 's1',
    ...given,
    msg: 'request'
  })

t.test(
  'what the gateway refused, a replay of its log refuses too: requests and sign-ins',
  async t => {
    const upstream = await testUpstream(t.after)
    const rules = {
      limits: {
        users: { by: 'user', max: 7, window: '1h' },
        nobody: { by: 'address', max: 30, window: '1h', routes: ['orders'] },
        guesses: { by: 'account', max: 3, window: '1h', routes: ['login'], refusedOnly: true }
      }
    }
    const folder = await configFolder({
      routes: {
        upstreams: { b: { url: upstream.url } },
        routes: { orders: { path: '/api/orders', upstream: 'b', access: 'session' } }
      },
      limits: rules
    })
    t.teardown(() => rmSync(folder, { recursive: true, force: true }))
    const gateway = await testGateway(t.after, folder)
    const cookie = await gateway.signIn()
    for (let index = 0; index < 12; index++) await gateway.call('/api/orders', { cookie })
    for (let index = 0; index < 6; index++) {
      await gateway.call('/api/auth/admin/login', { json: { username: 'bob', password: 'wrong' } })
    }
    await gateway.call('/api/auth/admin/login', { json: { username: 'bob', password } })
    await gateway.stop({ noticeMs: 0 })
    const requests = gateway.log.filter(each => each['msg'] === 'request')
    const refused = (route: string) =>
      requests.filter(each => each['status'] === 429 && each['route'] === route).length
    t.same([requests.length, refused('orders'), refused('login')], [20, 5, 4])
    const { code, out } = await run(['limits', 'simulate', '--log', '-', '-c', folder, '--json'], {
      input: gateway.log.map(each => `${JSON.stringify(each)}\n`).join('')
    })
    const report = JSON.parse(out)
    t.equal(code, 3)
    t.match(report, {
      requests: 20,
      refused: 9,
      limits: [
        { limit: 'users', refused: 5, lowest: 12 },
        { limit: 'nobody', refused: 0 },
        { limit: 'guesses', refused: 4 }
      ]
    })
    t.match(report.callers, [
      { whom: 'user alice', limit: 'users', refused: 5 },
      { whom: 'account bob', limit: 'guesses', refused: 4 }
    ])
  }
)

t.test(
  'tabs of a session that is over take nothing from their address, as in the gateway',
  async t => {
    const upstream = await testUpstream(t.after)
    const folder = await configFolder({
      routes: {
        upstreams: { b: { url: upstream.url } },
        routes: { orders: { path: '/api/orders', upstream: 'b', access: 'session' } }
      },
      limits: {
        endedSessions: { max: 6, window: '1h' },
        limits: { nobody: { by: 'address', max: 3, window: '1h', routes: ['orders'] } }
      }
    })
    t.teardown(() => rmSync(folder, { recursive: true, force: true }))
    const gateway = await testGateway(t.after, folder)
    const ended = async () => {
      const cookie = await gateway.signIn()
      await gateway.call('/api/account/logout', { method: 'POST', cookie })
      return cookie
    }
    const tabs = [await ended(), await ended()]
    const statuses = []
    for (const cookie of [...Array(8).fill(tabs[0]), ...Array(6).fill(tabs[1]), ...Array(4)]) {
      const options = cookie === undefined ? {} : { cookie }
      statuses.push((await gateway.call('/api/orders', options)).status)
    }
    await gateway.stop({ noticeMs: 0 })
    t.same(statuses, [...Array(6).fill(401), 429, 429, ...Array(6).fill(401), 401, 401, 401, 429])
    const replay = async (lines: readonly object[]) => {
      const input = lines.map(each => `${JSON.stringify(each)}\n`).join('')
      const { out } = await run(['limits', 'simulate', '--log', '-', '-c', folder, '--json'], {
        input
      })
      return JSON.parse(out) as {
        callers: unknown
        limits: unknown
        refused: number
        notes: string[]
      }
    }
    const { callers, limits: rows, refused, notes } = await replay(gateway.log)
    t.equal(refused, 3)
    t.match(rows, [
      { limit: 'nobody', requests: 4, refused: 1 },
      { limit: 'ended-sessions', mode: 'enforce', requests: 14, refused: 2, callers: 1, lowest: 8 }
    ])
    t.match(callers, [{ limit: 'ended-sessions', whom: /^session / }, { limit: 'nobody' }])
    t.notMatch(notes.join(), /is over/)
    const unnamed = gateway.log
      .filter(({ status }) => status !== 429)
      .map(fields => ({ ...fields, endedSession: undefined }))
    const older = await replay(unnamed)
    t.match(
      older.limits,
      [
        { limit: 'nobody', requests: 3, refused: 0 },
        { limit: 'ended-sessions', requests: 12, refused: 6 }
      ],
      'a log that does not name the session'
    )
    t.match(older.notes.join(), /12 requests had the cookie of an ended session.*count as one/)
  }
)

t.test(
  'another limits file, tables and a picture; packed logs; what cannot be simulated or read is told',
  async t => {
    const write = scratch(t.after)
    const folder = consoleFolder(t.after, 'limits: { users: { by: user, max: 100, window: 1m } }')
    const next = write(
      'next.yaml',
      stringify({
        limits: {
          users: { by: 'user', max: 2, window: '1m' },
          tried: { by: 'session', max: 3, window: '1m', mode: 'shadow' },
          managers: { by: 'user', max: 1, window: '1m', roles: ['manager'] },
          addresses: { by: 'address', max: 9, window: '1m' }
        }
      })
    )
    const log = [
      ...[0, 1, 2, 3].map(at => line(at)),
      line(400, { user: 'eve' }),
      line(5, { user: 'eve' }),
      line(6, { user: undefined, session: undefined, status: 503 }),
      line(7, { route: 'console', user: undefined, session: undefined }),
      line(8, { status: 429 }),
      'no line',
      '{"level":"info","msg":"listening"}',
      '{ "broken'
    ]
      .map(each => `${each}\n`)
      .join('')
    const replay = async (file: string, ...more: string[]) =>
      await run(['limits', 'simulate', '--log', file, '-c', folder, '--limits', next, ...more])
    const picture = write('picture.svg', '')
    const plain = await replay(write('a.log', log), '--svg', picture)
    t.equal(plain.code, 3, plain.err)
    t.equal(plain.err, '', 'no progress where nobody looks')
    t.match(
      plain.out,
      /^7 requests from 2026-11-21 08:00:00 to 2026-11-21 08:06:40 \(UTC\), 12 lines read\n3 would have been refused \(42\.86 %\)\n/
    )
    t.match(plain.out, /^users +enforce +7 +3 +1 +2026-11-21 08:00:02 +2026-11-21 08:00:08 +5$/m)
    t.match(plain.out, /^user ann +users +3 /m)
    for (const note of [
      /inFlightPerUser is not simulated/,
      /managers: not simulated for 2 users/,
      /1 request was left out: the caller was signed in/,
      /1 request got 429\. They/,
      /2 lines could not be read/
    ]) {
      t.match(plain.out, note)
    }
    const svg = readFileSync(picture, 'utf8')
    for (const part of [
      '<svg xmlns',
      '<title',
      '3 of 7 requests would have been refused',
      'prefers-color-scheme:dark',
      'users: 3',
      'let pass: 4',
      '08:02'
    ]) {
      t.ok(svg.includes(part), part)
    }
    const wrapped = log.replace(/^\{.*\}$/gm, (own, at) =>
      at % 2 === 0
        ? `2026-11-21T08:00:00.1Z stdout F ${own}`
        : JSON.stringify({ log: `${own}\n`, stream: 'stdout' })
    )
    t.equal(
      (await replay(write('c.bin', gzipSync(wrapped)))).out,
      plain.out,
      'as container runtimes keep lines, packed'
    )
  }
)

t.test('the picture is replaced as a whole or not at all', async t => {
  const write = scratch(t.after)
  const folder = consoleFolder(t.after, 'limits: { users: { by: user, max: 1, window: 10s } }')
  const picture = write('picture.svg', 'before')
  const words = ['limits', 'simulate', '--log', write('a.log', `${line(1, { user: 'ann' })}\n`)]
  const { code, err } = await runProcess([...words, '-c', folder, '--svg', picture], {
    maxFileBlocks: 1
  })
  t.same([code, err], [1, `${picture} cannot be written (EFBIG).\n`])
  t.equal(readFileSync(picture, 'utf8'), 'before')
})

t.test('roles come from sign-ins in the log; a request is placed where it began', async t => {
  const folder = consoleFolder(
    t.after,
    'limits: { managers: { by: user, max: 1, window: 10s, roles: [manager] } }'
  )
  const input = [
    JSON.stringify({
      time: new Date(begin).toISOString(),
      event: 'login',
      user: 'ann',
      roles: ['manager'],
      msg: 'signed in'
    }),
    line(100),
    line(120, { ms: 15_000 })
  ].join('\n')
  t.match(
    JSON.parse(
      (await run(['limits', 'simulate', '--log', '-', '-c', folder, '--json'], { input })).out
    ),
    { refused: 1, limits: [{ requests: 2, refused: 1, first: '2026-11-21T08:01:45.000Z' }] }
  )
})

t.test('a refused sign-in counts as refused, also where its status is 200', async t => {
  const folder = consoleFolder(
    t.after,
    'limits: { accounts: { by: account, max: 2, window: 1m, routes: [login], refusedOnly: true } }'
  )
  const signIn = (at: number, refused: boolean) => [
    ...(refused
      ? [
          JSON.stringify({
            time: new Date(begin + at * 1000).toISOString(),
            requestId: `id-${at}`,
            event: 'login.refused',
            user: 'ann',
            msg: 'sign-in refused'
          })
        ]
      : []),
    line(at, { route: 'login', method: 'POST', ...(refused && { session: undefined }) })
  ]
  const simulated = async (refused: boolean) =>
    JSON.parse(
      (
        await run(['limits', 'simulate', '--log', '-', '-c', folder, '--json'], {
          input: [0, 1, 2].flatMap(at => signIn(at, refused)).join('\n')
        })
      ).out
    )
  t.match(await simulated(true), { refused: 1, callers: [{ whom: 'account ann' }] })
  t.match(await simulated(false), { refused: 0, requests: 3 })
})

t.test(
  'Combined Log Format: routes by path, users where there are any, and what it does not tell',
  async t => {
    const folder = consoleFolder(
      t.after,
      'limits: { users: { by: user, max: 1, window: 1m, routes: [orders] }, guests: { by: address, max: 2, window: 1m }, accounts: { by: account, max: 1, window: 1m, routes: [login] } }'
    )
    const combined = (
      second: number,
      user: string,
      target: string,
      status = 200,
      method = 'GET',
      address = '2001:db8::1'
    ) =>
      `${address} - ${user} [21/Nov/2026:10:00:0${second} +0200] "${method} ${target} HTTP/1.1" ${status} 12 "-" "Mozilla/5.0 {x}"`
    const input = [
      combined(0, 'ann', '/api/orders?page=1'),
      combined(1, 'ann', '/api/o'),
      combined(2, '-', '/api/news/today'),
      combined(3, '-', '/api/news/x', 200, 'GET', '2001:db8::2'),
      combined(4, 'bo', '/api/news/x'),
      combined(5, '-', '/api/orders'),
      combined(6, '-', '/api/auth/admin/login', 401, 'POST', '192.0.2.9'),
      combined(7, '-', '/assets/app.js')
    ].join('\n')
    const { code, out } = await run(['limits', 'simulate', '--log', '-', '-c', folder, '--json'], {
      input
    })
    t.equal(code, 3)
    t.match(JSON.parse(out), {
      from: '2026-11-21T08:00:00.000Z',
      requests: 6,
      refused: 2,
      log: { combined: 8, unattributed: 1, unlimited: 1 },
      limits: [
        { limit: 'users', requests: 2, refused: 1 },
        { limit: 'guests', requests: 3, refused: 1 },
        { limit: 'accounts', requests: 0 }
      ],
      callers: [{ whom: 'user ann' }, { whom: 'address 2001:db8::' }],
      notes: [
        String,
        /accounts: not simulated for 8 lines in Combined Log Format/,
        /1 request was left out/
      ]
    })
  }
)

t.test('lines come whole, however the log is packed and cut', async t => {
  const write = scratch(t.after)
  const text = Array.from({ length: 60_000 }, (_, index) => `line ${index} é€`).join('\n')
  for (const [name, content] of [
    ['plain', text],
    ['gzip', gzipSync(text)],
    ['zstd', zstdCompressSync(text)]
  ] as const) {
    let bytes = 0
    const lines = []
    for await (const some of logLines(write(name, content), Readable.from([]), count => {
      bytes += count
    })) {
      lines.push(...some)
    }
    t.equal(lines.join('\n'), text, name)
    t.equal(bytes, Buffer.byteLength(content), name)
  }
})

t.test('in JSON, too, what a terminal would obey in a caller is escaped', async t => {
  const config = consoleFolder(t.after, 'limits: { users: { by: user, max: 1, window: 1m } }')
  const input = [line(0, { user: '\u009b2J' }), line(1, { user: '\u009b2J' })].join('\n')
  const { out } = await run(['limits', 'simulate', '-c', config, '--log', '-', '--json'], { input })
  t.match(JSON.parse(out), { callers: [{ whom: /\u009b2J/ }] })
  t.notMatch(out, /[\u0080-\u009f]/)
})

t.test(
  'nobody refused is 0; no log, no such file, nothing in it and a bad limits file are told',
  async t => {
    const write = scratch(t.after)
    const config = consoleFolder(t.after, 'limits: { users: { by: user, max: 100, window: 1m } }')
    t.match(await run(['limits', 'simulate', '-c', config, '--log', '-'], { input: line(0) }), {
      code: 0,
      out: /nobody would have been refused/
    })
    const simulated = (log: string, limits?: string) =>
      simulate({ config, log, limits, svg: undefined, json: false }, process)
    await t.rejects(simulated('/nowhere'), { message: /\/nowhere cannot be read/ })
    await t.rejects(simulated(write('none.log', 'x\n')), {
      message: /no requests to replay: 1 lines, 0 about something else, 1 that cannot be read/
    })
    await t.rejects(simulated(write('torn.log', gzipSync(line(0).repeat(99)).subarray(0, 60))), {
      message: /cannot be read/
    })
    await t.rejects(
      simulated(
        write('a.log', line(0)),
        write('bad.yaml', 'limits: { x: { by: user, max: 0, window: 1m, routes: [nowhere] } }')
      ),
      { message: /max/ }
    )
  }
)
