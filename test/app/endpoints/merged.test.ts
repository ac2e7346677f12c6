import { randomBytes } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { createRandom, type Random, seedOf } from '../../support/random.ts'
import { seed } from '../../support/seed.ts'
import { testGateway, type TestGateway } from '../../support/gateway.ts'
import { until } from '../../support/until.ts'
import { testUpstream } from '../../support/upstream.ts'

const counter = 'console_gateway_shaping_thread_answers_total'
/** Long by the first estimate of a route, whatever machine this is. */
const longBytes = 300_000

const metricsOf = async (gateway: Pick<TestGateway, 'ops'>, ...names: string[]) =>
  (await (await gateway.ops('/metrics')).text())
    .split('\n')
    .filter(line => names.some(name => line.startsWith(`${name}{`)))
    .toSorted()

interface Response {
  readonly status?: number
  readonly headers?: Record<string, string>
  readonly body: Buffer | string
}

/** A part of a case, or its own response in the place of a part. */
interface Part extends Response {
  readonly config?: object
}

const status = { status: { path: 'code', ok: [0], statuses: { 403: 403 } } }
const rows = { at: { path: 'list', operations: [{ each: [{ use: 'row' }] }] } }
const shapes = {
  row: [{ rename: { id: 'key' } }, { convert: { key: 'string' } }, { drop: ['secret'] }],
  part: [status, { unwrap: 'data' }, rows],
  own: [status, { unwrap: 'data' }, { rename: { first: 'only' } }, rows, { wrap: 'envelope' }],
  aggregated: [{ unwrap: 'data' }, { rename: { p2: 'second' } }, { wrap: 'envelope' }]
}

const schema = {
  type: 'object',
  required: ['p0'],
  properties: { p0: { type: 'object', properties: { big: { type: 'string' } } } }
}

const oddValues = [
  '9007199254740993',
  '1e400',
  '0.1000000000000000055511151231257827',
  '"\\ud800"',
  '"ünï 漢字"',
  'null',
  '[[1,[2]],{"a":{}}]',
  '{"__proto__":{"polluted":1}}'
]
const oddNames = ['id', 'secret', 'name', '__proto__', 'constructor', 'é']

function listOf(random: Random, bytes: number): string {
  const items: string[] = []
  for (let length = 0; length < bytes; length += (items.at(-1)?.length ?? 0) + 1) {
    const members = Array.from({ length: random.integer(0, 7) }, () => {
      const value = random.chance(0.5) ? String(random.integer(-5, 2_000)) : random.pick(oddValues)
      return `${JSON.stringify(random.pick(oddNames))}:${value}`
    })
    items.push(`{${members.join(',')}}`)
  }
  return `[${items.join(',')}]`
}

const dataOf = (random: Random, bytes: number) =>
  `{"list":${listOf(random, bytes)},"big":9007199254740993,"first":1,"text":"words"}`
const bodyOf = (random: Random, bytes: number) =>
  `{"code":0,"msg":"said so","data":${dataOf(random, bytes)}}`

type Fault = (body: string) => Part

/** More than `maxShaped` of the routes once unpacked; where the body is long, long before, too. */
const packed = (body: string): Part => {
  const noise = body.length < longBytes ? '' : randomBytes(longBytes).toString('base64')
  const pad = noise + 'x'.repeat(3 * 1024 * 1024)
  return {
    headers: { 'content-encoding': 'gzip' },
    body: gzipSync(body.replace('"msg"', `"pad":"${pad}","msg"`))
  }
}

/** Nobody reads its body. */
const failed: Fault = body => ({ body, status: 500, headers: { 'content-type': 'text/plain' } })
const empty: Fault = () => ({ body: '', status: 204 })

const faults: readonly Fault[] = [
  body => ({ body: body.slice(0, -1) }),
  body => ({ body: body.replace('"code":0', '"code":403') }),
  body => ({ body: body.replace('"code":0', '"code":"E7"') }),
  packed,
  body => ({ body, headers: { 'content-type': 'text/html; charset=none' } }),
  body => ({ body: `<html>${body}`, headers: { 'content-type': 'text/html' } }),
  failed
]

/** What becomes of a part only when it is merged, or with an empty response. */
const places: readonly Fault[] = [
  body => ({ body, config: { into: 'data.text.inner' } }),
  body => ({ body, config: { into: undefined, unwrap: 'list' } }),
  empty,
  body => ({ body, config: { unwrap: 'nothing.here' } }),
  body => ({ body: body.replace('"data":', '"lost":') }),
  body => ({ body, config: { into: undefined } }),
  body => ({ body, config: { shape: undefined, unwrap: 'data.big' } })
]

interface Case {
  readonly own: Part | undefined
  readonly parts: readonly Part[]
  readonly route: object
  /** Whether a short response may end the request before the long ones are there. */
  readonly mayEndEarly: boolean
}

/** The i-th of all kinds is in the i-th case. */
const kinds = [
  ...faults.flatMap(fault => [
    { fault, place: 'own' },
    { fault, place: 'required' },
    { fault, place: 'optional' }
  ]),
  ...places.flatMap(fault => [
    { fault, place: 'required' },
    { fault, place: 'optional' }
  ])
] as const

function randomCase(index: number): Case {
  const random = createRandom(seedOf(seed, index))
  const kind = kinds[index]
  const isAggregated = kind?.place !== 'own' && random.chance(0.4)
  // One of the responses is long; the fault stands in it, or in a short one.
  const faultAt = kind?.place === 'own' ? 0 : 1 + random.integer(0, 2)
  const isUnread = kind?.fault === failed || kind?.fault === empty
  const isFaultLong = !isUnread && random.chance(0.6)
  const longAt = isFaultLong ? faultAt : isAggregated || faultAt === 0 ? 1 + (faultAt % 3) : 0
  const make = (place: number): Part => {
    const size = place === longAt ? longBytes : random.integer(100, 20_000)
    const body = bodyOf(random, size)
    return place === faultAt && kind !== undefined ? kind.fault(body) : { body }
  }
  const own = make(0)
  const parts = [1, 2, 3].map(place => {
    const { config, ...part } = make(place)
    const isRequired =
      place === faultAt ? kind?.place === 'required' : random.chance(0.7) || undefined
    const hasDefault = random.chance(0.5) && { default: { stands: 'in' } }
    const into = `data.p${place - 1}`
    return {
      ...part,
      config: {
        upstream: 'b',
        rewrite: `/${index}/${place}`,
        shape: 'part',
        into,
        ...(isRequired === false && { required: false }),
        ...hasDefault,
        ...config
      }
    }
  })
  const route = {
    shape: isAggregated ? 'aggregated' : 'own',
    ...(!isAggregated && { upstream: 'b', rewrite: `/${index}/0` }),
    ...(random.chance(0.3) && {
      contract: { schema, mode: random.pick(['strict', 'observe']), sample: 1 }
    }),
    ...(random.chance(0.2) && { dialect: 'base-response' }),
    ...(random.chance(0.1) && { errorStatus: 'ok' })
  }
  const mayEndEarly = kind !== undefined && kind.place !== 'optional' && !isFaultLong
  return { own: isAggregated ? undefined : own, parts, route, mayEndEarly }
}

t.test('a thread merges parts as the event loop does, errors and log included', async t => {
  const count = kinds.length + 10
  const cases = Array.from({ length: count }, (_, index) => randomCase(index))
  const backend = await testUpstream(t.after, (request, response) => {
    const [, index = '', place = ''] = request.url?.split('/') ?? []
    const { own, parts } = cases[Number(index)] as Case
    const part = (place === '0' ? own : parts[Number(place) - 1]) as Part
    response
      .writeHead(part.status ?? 200, { 'content-type': 'application/json', ...part.headers })
      .end(part.body)
  })
  const routes = Object.fromEntries(
    cases.map(({ parts, route }, index) => [
      `r${index}`,
      {
        path: `/api/${index}`,
        access: 'public',
        parts: Object.fromEntries(parts.map(({ config }, place) => [`n${place}`, config])),
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
  const answerOf = async (gateway: TestGateway, index: number) => {
    const from = gateway.log.length
    const { status: code, headers, text } = await gateway.call(`/api/${index}`)
    const { 'date': _, 'x-request-id': id = '', ...kept } = Object.fromEntries(headers)
    const log = gateway.log
      .slice(from)
      .filter(line => line['code'] !== undefined || line['event'] === 'shape.missing')
      .map(line => {
        const { event, msg, route, part, reason, level, path } = line
        return JSON.stringify({ event, msg, code: line['code'], route, part, reason, level, path })
      })
    return { status: code, headers: kept, text: text.replaceAll(id, 'ID'), log: log.toSorted() }
  }
  const statuses = new Map<number, number>()
  for (let index = 0; index < count; index++) {
    const [expected, actual] = [await answerOf(inLoop, index), await answerOf(apart, index)]
    statuses.set(expected.status, (statuses.get(expected.status) ?? 0) + 1)
    if (actual.text !== expected.text) {
      t.fail(`case ${index}: ${actual.text.slice(0, 200)}, not ${expected.text.slice(0, 200)}`)
    }
    t.same({ ...actual, text: '' }, { ...expected, text: '' }, `case ${index}`)
  }
  t.ok((statuses.get(200) ?? 0) > 10, 'many are shaped')
  t.ok((statuses.get(502) ?? 0) > 5, 'and many refused')
  const inThreads = new Set(await metricsOf(apart, counter))
  for (const [index, { mayEndEarly }] of cases.entries()) {
    const isShaped = inThreads.has(`${counter}{route="r${index}",outcome="shaped"} 1`)
    t.ok(mayEndEarly || isShaped, `case ${index} is shaped in a thread`)
  }
  const names = ['parts_missing', 'contract_answers', 'contract_deviations'].map(
    name => `console_gateway_${name}_total`
  )
  await until('the same is counted', async () => {
    const [one, other] = [await metricsOf(inLoop, ...names), await metricsOf(apart, ...names)]
    return one.length > 0 && one.join() === other.join()
  })
})

t.test('a compressed part that unpacks to much is read in a thread', async t => {
  const part = JSON.stringify({ text: 'x'.repeat(longBytes) })
  const backend = await testUpstream(t.after, ({ url = '' }, response) => {
    const coding = url.startsWith('/part') ? 'gzip' : 'identity'
    response
      .writeHead(200, { 'content-type': 'application/json', 'content-encoding': coding })
      .end(coding === 'gzip' ? gzipSync(url === '/part' ? part : '{"text":"x"}') : '{"own":1}')
  })
  const routeOf = (name: string, rewrite: string) => ({
    path: `/api/${name}`,
    access: 'public',
    upstream: 'b',
    rewrite: '/own',
    parts: { a: { upstream: 'b', rewrite, into: 'a' } }
  })
  const gateway = await testGateway(t.after, {
    routes: {
      upstreams: { b: { url: backend.url } },
      routes: { long: routeOf('long', '/part'), short: routeOf('short', '/part-short') }
    }
  })
  t.same((await gateway.call('/api/short')).json, { own: 1, a: { text: 'x' } })
  const { json } = await gateway.call('/api/long')
  t.match([json['own'], json['a'].text.length], [1, longBytes])
  t.same(await metricsOf(gateway, counter), [`${counter}{route="long",outcome="shaped"} 1`])
})

t.test('a client that leaves while a required part hangs is no error', async t => {
  const backend = await testUpstream(t.after, () => {})
  const gateway = await testGateway(t.after, {
    routes: {
      upstreams: { b: { url: backend.url } },
      routes: {
        parts: {
          path: '/api/parts',
          access: 'public',
          parts: { a: { upstream: 'b', rewrite: '/a', required: true } }
        }
      }
    }
  })
  const leaving = new AbortController()
  const left = fetch(`${gateway.url}/api/parts`, { signal: leaving.signal })
  await until('the part is asked', () => backend.begun() === 1)
  leaving.abort()
  await t.rejects(left)
  await gateway.logged(({ status }) => status === 499)
  const errors = await metricsOf(gateway, 'console_gateway_errors_total')
  t.same(
    errors.filter(line => !line.endsWith(' 0')),
    []
  )
})
