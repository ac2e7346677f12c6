import { randomBytes } from 'node:crypto'
import { brotliCompressSync, deflateRawSync, gzipSync, zstdCompressSync } from 'node:zlib'
import t from 'tap'
import { createRandom, type Random, seedOf } from '../support/random.ts'
import { seed } from '../support/seed.ts'
import { testGateway, type TestGateway } from '../support/gateway.ts'
import { until } from '../support/until.ts'
import { testUpstream } from '../support/upstream.ts'

/** Long by the first estimate of a route, whatever machine this is. */
const longBytes = 300_000
const counter = 'console_gateway_shaping_thread_answers_total'

const metricsOf = async (gateway: TestGateway, name: string) =>
  (await (await gateway.ops('/metrics')).text())
    .split('\n')
    .filter(line => line.startsWith(`${name}{`))
    .toSorted()

interface Case {
  readonly body: string
  readonly shape: string
  readonly route?: object
  readonly headers?: Record<string, string>
  readonly encode?: (bytes: Buffer) => Buffer
}

const shapes = {
  page: [
    { status: { path: 'code', ok: [0], statuses: { 403: 403 } } },
    { unwrap: 'data' },
    { paging: { list: 'rows', total: 'count', each: [{ use: 'row' }] } }
  ],
  row: [
    { rename: { id: 'key', at: 'time' } },
    { convert: { key: 'string', time: 'date-seconds' } },
    { map: { state: { 0: 'off', 1: 'on', '*': 'other' } } },
    { default: { kind: 'none' } },
    { drop: ['secret'] }
  ],
  flat: [{ unwrap: 'data' }, { move: { count: 'meta.count' } }, { wrap: 'flat' }],
  bare: [{ unwrap: 'data.rows' }, { each: [{ pick: ['id', '__proto__', 'name', 'toString'] }] }],
  lost: [{ unwrap: 'data.nothing.here' }, { wrap: 'list' }]
}

const schema = {
  type: 'array',
  items: {
    type: 'object',
    required: ['key'],
    properties: { key: { type: 'string' }, name: { type: 'string' } }
  }
}

const oddValues = [
  '9007199254740993',
  '1e400',
  '-0',
  '0.1000000000000000055511151231257827',
  '"\\ud800"',
  '"ünï 漢字 \\u0000"',
  'null',
  'true',
  '[]',
  '{}',
  '[[1,[2]],{"a":{}}]',
  '{"__proto__":{"polluted":1},"constructor":{"prototype":{}}}',
  '""',
  '"1795239000"',
  '1795239000',
  '1e3'
]
const oddNames = ['id', 'at', 'state', 'kind', 'secret', 'name', '__proto__', 'constructor', 'é']

function randomRow(random: Random): string {
  const members = Array.from({ length: random.integer(0, 7) }, () => {
    const value = random.chance(0.5) ? String(random.integer(-5, 2_000)) : random.pick(oddValues)
    return `${JSON.stringify(random.pick(oddNames))}:${value}`
  })
  return random.chance(0.03) ? random.pick(oddValues) : `{${members.join(',')}}`
}

/** A body that is long by its rows, at times with another value in the place of a member. */
function randomBody(random: Random): string {
  const rows: string[] = []
  for (let length = 0; length < longBytes; length += (rows.at(-1)?.length ?? 0) + 1) {
    rows.push(randomRow(random))
  }
  const list = random.chance(0.9) ? `[${rows.join(',')}]` : `{"one":[${rows.join(',')}]}`
  const code = random.chance(0.85)
    ? '0'
    : random.pick(['403', '"E7"', '500', 'null', '9'.repeat(20)])
  const data = `{"rows":${list},"count":${random.chance(0.8) ? rows.length : random.pick(oddValues)}}`
  return `{"code":${code},"msg":"said so","data":${random.chance(0.95) ? data : list}}`
}

const faults: ReadonlyArray<(body: string, random: Random) => Partial<Case>> = [
  body => ({ body: body.slice(0, -1) }),
  (body, random) => ({ body: body.slice(0, random.integer(longBytes * 0.9, body.length)) }),
  body => ({ body: `${body},` }),
  body => ({ body: body.replace('"rows":', '"rows",') }),
  body => ({ body, headers: { 'content-type': 'text/html' } }),
  body => ({ body: `<html>${body}`, headers: { 'content-type': 'text/html' } }),
  body => ({ body, headers: { 'content-type': 'application/json; charset=latin1' } }),
  body => ({ body, headers: { 'content-type': 'application/json; charset=none' } }),
  body => ({ body, encode: bytes => Buffer.from(bytes.toString(), 'utf16le') }),
  body => ({
    body: `\ufeff${body}`,
    encode: bytes => Buffer.from(bytes.toString(), 'utf16le')
  }),
  body => ({ body, encode: bytes => Buffer.concat([bytes.subarray(0, -3), Buffer.of(0xff)]) }),
  () => ({ body: `${'['.repeat(longBytes)}${']'.repeat(longBytes)}` }),
  body => ({ body, headers: { 'content-encoding': 'gzip' } }),
  body => ({ body, headers: { 'content-encoding': 'rot13' } }),
  body => packed(body, {}),
  body => packed(body.slice(0, -2), {}),
  body => packed(body, { maxShaped: '400KiB' }),
  body => packed(body, { maxShaped: '400KiB', tooLarge: 'pass' })
]

/** Gzip of more than `longBytes`. */
const packed = (body: string, route: object): Partial<Case> => ({
  body: body.replace('"msg"', `"pad":"${randomBytes(longBytes).toString('base64')}","msg"`),
  headers: { 'content-encoding': 'gzip' },
  encode: bytes => gzipSync(bytes),
  route
})

function randomCase(part: number): Case {
  const random = createRandom(seedOf(seed, part))
  // Every fourth has a contract and no fault.
  const hasContract = part % 4 === 3
  const shape = hasContract ? 'page' : random.pick(['page', 'flat', 'bare', 'lost'])
  const body = randomBody(random)
  const contract = { schema, mode: random.pick(['strict', 'observe']), sample: 1 }
  const route = {
    ...(hasContract && { contract }),
    ...(random.chance(0.2) && { dialect: 'base-response' }),
    ...(random.chance(0.1) && { errorStatus: 'ok' })
  }
  // Each fault once, then a third of the cases.
  const faultIndex = part - Math.floor((part + 1) / 4)
  const fault = faults[faultIndex] ?? (random.chance(0.3) ? random.pick(faults) : undefined)
  const wrong = hasContract ? undefined : fault?.(body, random)
  return { body, shape, ...wrong, route: { ...route, ...wrong?.route } }
}

const bytesOf = ({ body, encode }: Case) => encode?.(Buffer.from(body)) ?? Buffer.from(body)

t.test('a thread answers as the event loop does, errors, log and contracts included', async t => {
  const count = 40
  const cases = Array.from({ length: count }, (_, part) => randomCase(part))
  const backend = await testUpstream(t.after, (request, response) => {
    const { headers, ...one } = cases[Number(request.url?.slice(1))] as Case
    response
      .writeHead(200, {
        'content-type': 'application/json',
        'cache-control': 'public, max-age=60',
        ...headers
      })
      .end(bytesOf(one))
  })
  const routes = Object.fromEntries(
    cases.map(({ shape, route }, part) => [
      `r${part}`,
      {
        path: `/api/${part}`,
        rewrite: `/${part}`,
        access: 'public',
        upstream: 'b',
        shape,
        ...route
      }
    ])
  )
  const start = (shapingThreads: number) =>
    testGateway(t.after, {
      gateway: { server: { shapingThreads } },
      routes: { upstreams: { b: { url: backend.url } }, shapes, routes }
    })
  const [inLoop, apart] = [await start(0), await start(2)]
  const answerOf = async (gateway: TestGateway, part: number) => {
    const { status, headers, text } = await gateway.call(`/api/${part}`)
    const { 'date': _, 'x-request-id': id = '', ...kept } = Object.fromEntries(headers)
    return { status, headers: kept, text: text.replaceAll(id, 'ID') }
  }
  const logOf = ({ log }: TestGateway) =>
    log
      .filter(({ code, event }) => code !== undefined || event === 'shape.missing')
      .map(({ event, msg, code, route, reason, level }) => ({
        event,
        msg,
        code,
        route,
        reason,
        level
      }))
  const statuses = new Map<number, number>()
  for (let part = 0; part < count; part++) {
    const [expected, actual] = [await answerOf(inLoop, part), await answerOf(apart, part)]
    statuses.set(expected.status, (statuses.get(expected.status) ?? 0) + 1)
    if (actual.text !== expected.text) t.fail(`case ${part}: ${actual.text.slice(0, 200)}`)
    t.same({ ...actual, text: '' }, { ...expected, text: '' }, `case ${part}`)
  }
  t.ok((statuses.get(200) ?? 0) > 10, 'many are shaped')
  t.ok((statuses.get(502) ?? 0) > 10, 'and many refused')
  t.same(logOf(apart), logOf(inLoop), 'the log')
  const shaped = (await metricsOf(apart, counter)).filter(line => line.includes('"shaped"'))
  t.equal(shaped.length, count, 'each in a thread')
  for (const name of ['contract_answers_total', 'contract_deviations_total']) {
    const full = `console_gateway_${name}`
    const expected = async () => await metricsOf(inLoop, full)
    await until('contracts are counted', async () => {
      const [one, other] = [await expected(), await metricsOf(apart, full)]
      return one.length > 0 && one.join() === other.join()
    })
  }
})

const rows = Array.from({ length: 8_000 }, (_, id) => ({ id, name: 'A name of usual length' }))

/** A gateway with one route, and a back-end whose only response is long. */
async function longGateway(
  cleanUp: (undo: () => unknown) => void,
  route: object,
  headers: Record<string, string> = {}
): Promise<TestGateway & { readonly asked: () => boolean }> {
  const backend = await testUpstream(cleanUp, (_request, response) => {
    response
      .writeHead(200, { 'content-type': 'application/json', ...headers })
      .end(JSON.stringify({ rows }))
  })
  const all = { path: '/api/rows', access: 'public', upstream: 'b', shape: 'rows', ...route }
  const gateway = await testGateway(cleanUp, {
    routes: {
      upstreams: { b: { url: backend.url } },
      shapes: { rows: [{ unwrap: 'rows' }, { wrap: 'list' }] },
      routes: { all }
    }
  })
  return { ...gateway, asked: () => backend.seen.length > 0 }
}

t.test('what a compressed answer unpacks to makes it long, however small it came', async t => {
  const same = rows.map(() => rows[0])
  const [long, short] = [same, rows.slice(0, 9)].map(list => JSON.stringify({ rows: list }))
  const twice = (bytes: Buffer) => gzipSync(gzipSync(bytes))
  const cases: ReadonlyArray<[coding: string, encode: (bytes: Buffer) => Buffer]> = [
    ['gzip', gzipSync],
    ['deflate', deflateRawSync],
    ['br', brotliCompressSync],
    ['zstd', zstdCompressSync],
    ['gzip, gzip', twice],
    ['identity', bytes => bytes]
  ]
  const backend = await testUpstream(t.after, (request, response) => {
    const [, size, at] = request.url?.split('/') ?? []
    const [coding, encode] = cases[Number(at)] as (typeof cases)[number]
    response
      .writeHead(200, { 'content-type': 'application/json', 'content-encoding': coding })
      .end(encode(Buffer.from((size === 'long' ? long : short) ?? '')))
  })
  const routeOf = (size: string) => ({
    path: `/api/${size}/*`,
    rewrite: `/${size}/*`,
    access: 'public',
    upstream: 'b',
    shape: 'rows'
  })
  const gateway = await testGateway(t.after, {
    routes: {
      upstreams: { b: { url: backend.url } },
      shapes: { rows: [{ unwrap: 'rows' }, { wrap: 'list' }] },
      routes: { long: routeOf('long'), short: routeOf('short') }
    }
  })
  for (const [at, [coding, encode]] of cases.entries()) {
    if (coding !== 'identity') t.ok(encode(Buffer.from(long ?? '')).length < 16_000, coding)
    const all = await Promise.all(
      ['long', 'short'].map(async size => (await gateway.call(`/api/${size}/${at}`)).json.total)
    )
    t.same(all, [rows.length, 9], coding)
    t.same(
      await metricsOf(gateway, counter),
      [`${counter}{route="long",outcome="shaped"} ${at + 1}`],
      `${coding}: the long one alone is shaped in a thread`
    )
  }
})

t.test('requests that share one call each get the whole answer', async t => {
  const gateway = await longGateway(t.after, { access: 'session', coalesce: true })
  const cookie = await gateway.signIn()
  const calls = Array.from({ length: 4 }, () => gateway.call('/api/rows', { cookie }))
  const all = await Promise.all(calls)
  for (const { json } of all) t.same(json.data, rows)
  t.match(await metricsOf(gateway, counter), [`${counter}{route="all",outcome="shaped"} 4`])
})

t.test('a long answer that may be cached has a tag, and is not sent again', async t => {
  const gateway = await longGateway(t.after, {}, { 'cache-control': 'public, max-age=60' })
  const { headers } = await gateway.call('/api/rows')
  const tag = headers.get('etag') ?? ''
  t.match(tag, /^"[\w-]{27}"$/)
  const again = await gateway.call('/api/rows', { headers: { 'if-none-match': tag } })
  t.match([again.status, again.text], [304, ''])
})

t.test('a gateway that stops finishes its long answers', async t => {
  const gateway = await longGateway(t.after, {})
  const call = gateway.call('/api/rows')
  await until('the back-end was asked', gateway.asked)
  const [{ status, json }] = await Promise.all([call, gateway.stop({ noticeMs: 0 })])
  t.equal(status, 200)
  t.equal(json.total, rows.length)
})
