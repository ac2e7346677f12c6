/** Requests from a grammar, as bytes: what clients, broken ones and attackers send. */
import type { Random } from '../../support/random.ts'
import { password } from '../../support/sign-in.ts'
import { proxiedPrefixes, users, webSocketPrefixes } from './config.ts'
import { clientFrames } from './websockets.ts'

interface Draft {
  readonly method: string
  readonly target: string
  readonly fields: string[]
  readonly body: Buffer
  /** What follows the request, such as frames of a WebSocket. */
  readonly behind?: Buffer[]
}

type Rule = (random: Random, cookies: readonly string[]) => Draft

const methods = ['GET', 'GET', 'POST', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS']
const oddMethods = 'TRACE,CONNECT,PROPFIND,M-SEARCH,get,G\x00T,QUERY,PURGE,'.split(',')
const jsonType = 'Content-Type: application/json'

/** Sizes around the bounds at which bodies are collected, streamed and refused. */
const sizes = [0, 1, 2, 17, 300, 4095, 4097, 20_000, 65_535, 65_536, 65_537, 90_000, 200_000]
const rareSizes = [1_048_576, 1_048_577, 1_500_000]

/** A request, or what only looks like one, in the pieces in which it may be sent: head, body, what follows. */
export function makeRequest(random: Random, cookies: readonly string[]): Buffer[] {
  const rule = random.pick(rules)
  const draft = rule(random, cookies)
  const fields = [hostField(random), ...draft.fields, ...extraFields(random)]
  const { lines, pieces } = frame(random, draft.body)
  const version = random.chance(0.03)
    ? random.pick(['HTTP/1.0', 'HTTP/2.0', 'HTTP/1.1 ', ''])
    : 'HTTP/1.1'
  const end = random.chance(0.01) ? '\n' : '\r\n'
  const all = [`${draft.method} ${draft.target} ${version}`, ...fields, ...lines]
  return [Buffer.from(all.join(end) + end + end, 'latin1'), ...pieces, ...(draft.behind ?? [])]
}

const tokens = [
  ...['\r\n', '\n', '\r\n\r\n', '0\r\n\r\n', 'ffffffffffffffff\r\n', ' ', '\t', '\x00', ','],
  ...': ; %00 %2e%2e /../ // \\ ? # -1 é \xff\xfe 0'.split(' '),
  'Transfer-Encoding: chunked\r\n',
  'Content-Length: 5\r\n',
  'Host: other\r\n',
  'Connection: close\r\n',
  '9'.repeat(40)
]

/** Changes bytes anywhere. */
export function mutate(random: Random, pieces: readonly Buffer[]): Buffer[] {
  const at = random.integer(0, pieces.length - 1)
  return pieces.map((piece, index) =>
    index === at ? random.pick(mutations)(random, piece) : piece
  )
}

/** Bytes in the place of some of those from `at` on. */
const spliced = (bytes: Buffer, at: number, count: number, ...others: readonly Buffer[]) =>
  Buffer.concat([bytes.subarray(0, at), ...others, bytes.subarray(at + count)])

const mutations: ReadonlyArray<(random: Random, bytes: Buffer) => Buffer> = [
  function flip(random, bytes) {
    const copy = Buffer.from(bytes)
    for (let times = random.integer(1, 3); times > 0 && copy.length > 0; times--) {
      copy[random.integer(0, copy.length - 1)] = random.integer(0, 255)
    }
    return copy
  },
  function insert(random, bytes) {
    const token = Buffer.from(random.pick(tokens), 'latin1')
    return spliced(bytes, random.integer(0, bytes.length), 0, token)
  },
  function remove(random, bytes) {
    return spliced(bytes, random.integer(0, bytes.length), random.integer(1, 8))
  },
  function repeat(random, bytes) {
    const at = random.integer(0, bytes.length)
    const slice = bytes.subarray(at, at + random.integer(1, 60))
    return spliced(bytes, at, 0, ...Array.from({ length: random.integer(2, 200) }, () => slice))
  },
  function cutShort(random, bytes) {
    return bytes.subarray(0, random.integer(0, bytes.length))
  }
]

const rules: readonly Rule[] = [
  ...Array.from({ length: 8 }, () => proxied),
  ...[webSocket, other].flatMap(rule => [rule, rule]),
  other,
  other,
  signIn
]

const nothing = Buffer.alloc(0)

function proxied(random: Random, cookies: readonly string[]): Draft {
  const prefix = random.pick(proxiedPrefixes)
  const query = random.chance(0.2) ? `?${word(random)}=${word(random)}` : ''
  const method = methodOf(random)
  const hasBody = method === 'GET' || method === 'HEAD' ? random.chance(0.05) : random.chance(0.85)
  return {
    method,
    target: mangledTarget(random, `${prefix}/${random.integer(0, 1_000_000)}${query}`),
    fields: [
      ...cookieFields(random, cookies),
      ...(hasBody
        ? [random.pick([jsonType, 'Content-Type: text/plain', 'Content-Type: a/b; c=d'])]
        : [])
    ],
    body: hasBody ? someBody(random) : nothing
  }
}

/** A handshake, at times without what it needs. */
function webSocket(random: Random, cookies: readonly string[]): Draft {
  const fields = [
    'Connection: Upgrade',
    'Upgrade: websocket',
    `Sec-WebSocket-Key: ${random.bytes(16).toString('base64')}`,
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits',
    'Sec-WebSocket-Protocol: a, b'
  ]
  const kept = random.integer(4, fields.length)
  if (random.chance(0.15)) fields.splice(random.integer(0, 3), 1)
  return {
    method: random.chance(0.95) ? 'GET' : methodOf(random),
    target: `${random.pick(webSocketPrefixes)}/${random.integer(0, 1_000_000)}`,
    fields: [...cookieFields(random, cookies), ...fields.slice(0, kept)],
    body: nothing,
    behind: clientFrames(random)
  }
}

function signIn(random: Random, cookies: readonly string[]): Draft {
  const others = ['nobody', `of-the-back-end-${random.integer(0, 99)}`]
  const username = random.pick([...users, ...users, ...others])
  const secret = random.chance(0.6) ? password : word(random)
  const right = JSON.stringify({ username, password: secret })
  const bodies = [
    ...[right, right, right],
    `{"username":${JSON.stringify(username)},"username":1,"password":"${secret}"}`,
    `{"__proto__":{"username":"alice"},"password":"${secret}"}`,
    JSON.stringify({ username: [username], password: { $ne: '' } }),
    right.slice(0, random.integer(0, right.length)),
    '['.repeat(random.integer(1, 2000)),
    `username=${username}&password=${secret}`,
    '9'.repeat(random.integer(1, 4200)),
    '\uFEFF{}',
    'null',
    '""',
    ''
  ]
  return {
    method: random.chance(0.95) ? 'POST' : methodOf(random),
    target: mangledTarget(random, '/api/auth/admin/login'),
    fields: [
      random.chance(0.9) ? jsonType : random.pick(['Content-Type: text/plain', 'X-Nothing: 1']),
      ...(random.chance(0.3) ? cookieFields(random, cookies) : [])
    ],
    body: Buffer.from(random.pick(bodies))
  }
}

/** What is not proxied: own endpoints, files of the console, and what is nowhere. */
const elsewhere = [
  ...['GET /api/account/profile', 'GET /api/account/profile', 'POST /api/account/logout'],
  ...['GET /api/session', 'GET /api/session/list'],
  ...['POST /api/session/extend', 'POST /api/session/close', 'POST /api/session/close'],
  ...['GET /', 'GET /index.html', 'GET /large.bin', 'GET /large.bin', 'GET /a/page'],
  ...['GET /missing.js', 'GET /api', 'GET /api/', 'GET *', 'GET ', 'GET //other.example/'],
  ...['GET /%', 'GET /%zz', 'GET /api/%2e%2e/x', 'GET /api/account/profile;x=1'],
  ...['GET /API/account/profile', 'GET http://other.example/api/account/profile']
]

function other(random: Random, cookies: readonly string[]): Draft {
  const long = random.pick(['/nope/'.padEnd(6000, 'a/'), `/${'x'.repeat(9000)}`])
  const [method = '', target = ''] = random.chance(0.9)
    ? random.pick(elsewhere).split(' ')
    : ['GET', long.slice(0, random.integer(1, long.length))]
  const id = random.chance(0.5) ? word(random) : random.bytes(150).toString('base64')
  const hasBody = random.chance(method === 'POST' ? 0.7 : 0.1)
  const body = random.chance(0.5) ? Buffer.from(JSON.stringify({ id })) : someBody(random)
  return {
    method: random.chance(0.8) ? method : random.pick([...methods, ...oddMethods]),
    target: mangledTarget(random, target),
    fields: [...cookieFields(random, cookies), ...(hasBody ? [jsonType] : [])],
    body: hasBody ? body : nothing
  }
}

const methodOf = (random: Random) => random.pick(random.chance(0.04) ? oddMethods : methods)

const word = (random: Random) => random.bytes(random.integer(1, 12)).toString('hex')

function mangledTarget(random: Random, target: string): string {
  if (random.chance(0.92)) return target
  const at = random.integer(0, target.length)
  return target.slice(0, at) + random.pick(tokens) + target.slice(at)
}

const hostField = (random: Random) =>
  random.chance(0.96)
    ? 'Host: console.test'
    : random.pick([
        'Host: ',
        'Host: a b',
        'X-Host: none',
        'Host: a\r\nHost: b',
        `Host: ${'h'.repeat(300)}`
      ])

function cookieFields(random: Random, cookies: readonly string[]): string[] {
  if (random.chance(0.15) || cookies.length === 0) return []
  const cookie = random.pick(cookies)
  if (random.chance(0.8)) return [`Cookie: ${cookie}`]
  const at = random.integer(0, cookie.length)
  return random.pick([
    [`Cookie: ${cookie.slice(0, at)}`],
    [`Cookie: ${cookie.slice(0, at)}${random.pick(tokens)}${cookie.slice(at)}`],
    [`Cookie: ${cookie}; ${cookie}`],
    [`Cookie: a${' '.repeat(random.integer(1, 4000))}b=1; ${cookie}`],
    [`Cookie: ${'a=b; '.repeat(random.integer(1, 800))}${cookie}`],
    [`Cookie: ${cookie}`, `Cookie: ${cookie}`],
    [`Cookie: kept=${word(random)}; ${cookie}`],
    ['Cookie: console_sid=; console_sid="";;=;']
  ])
}

const extraLines = [
  'Connection: close|Connection: keep-alive, x-user-id|Connection: upgrade\r\nUpgrade: websocket',
  'Expect: 100-continue|Expect: magic|Referer: http://console.test/x|Sec-Fetch-Site: cross-site',
  'Origin: http://console.test|Origin: null|Origin: https://evil.example|X-User-Id: 1',
  'X-Forwarded-For: 1.2.3.4, unknown|X-Forwarded-Proto: https|X-Request-Id: a-given-id-0001',
  'Authorization: Bearer x|Accept-Encoding: gzip|Content-Encoding: gzip|Keep-Alive: timeout=1',
  'Access-Control-Request-Method: POST|TE: trailers|Max-Forwards: 0|Trailer: x-end',
  'Range: bytes=0-10|Range: bytes=-5|Range: bytes=5-1|Range: bytes=0-0,2-3|If-None-Match: "',
  'Range: bytes=99999999999-|Range: x|If-None-Match: *|If-None-Match: W/"1"|Accept: text/html',
  ' X-Folded: 1|X-Empty:|: nameless|X Space: 1|Proxy-Connection: close|HTTP2-Settings: x'
].flatMap(lines => lines.split('|'))

/** What any request may carry besides. */
function extraFields(random: Random): string[] {
  if (random.chance(0.6)) return []
  const all = [...extraLines, `X-Long: ${'l'.repeat(random.integer(1, 17_000))}`]
  return Array.from({ length: random.integer(1, 4) }, () => random.pick(all))
}

function someBody(random: Random): Buffer {
  const size = random.pick(random.chance(0.03) ? rareSizes : sizes)
  if (random.chance(0.5)) {
    return Buffer.alloc(size, `{"a":[1,2,${random.integer(0, 1e9)}],"b":"text"}`)
  }
  return Buffer.alloc(size, random.pick(['[', '9', '{"a":', '"', ' ', '\x00', 'é', '0.0', ',']))
}

interface Framed {
  readonly lines: string[]
  readonly pieces: Buffer[]
}

const chunked = 'Transfer-Encoding: chunked'

/** How long a body is, told rightly or not. */
function frame(random: Random, body: Buffer): Framed {
  if (body.length === 0 && random.chance(0.8)) return { lines: [], pieces: [] }
  if (random.chance(0.12)) return wronglyFramed(random, body)
  return random.chance(0.5)
    ? { lines: [`Content-Length: ${body.length}`], pieces: split(random, body) }
    : { lines: [chunked], pieces: chunks(random, body) }
}

function wronglyFramed(random: Random, body: Buffer): Framed {
  const { length } = body
  const lengths = [
    length + random.integer(1, 1000),
    Math.max(0, length - random.integer(1, 1000)),
    -1,
    `+${length}`,
    `0x${length.toString(16)}`,
    `${length}, ${length}`,
    `${length}a`,
    `${length}\r\nContent-Length: ${length + 1}`,
    ...['9'.repeat(20), '', ' ']
  ]
  const codings =
    'gzip, chunked|chunked, chunked|chunked, gzip|identity|xchunked|Chunked|"chunked"|' +
    'chunked\r\nTransfer-Encoding: identity|\tchunked|'
  const lengthLine = `Content-Length: ${random.pick(lengths)}`
  const codingLine = `Transfer-Encoding: ${random.pick(codings.split('|'))}`
  const both = [`Content-Length: ${length}`, chunked]
  return random.pick([
    { lines: [lengthLine], pieces: split(random, body) },
    { lines: [codingLine], pieces: chunks(random, body) },
    { lines: random.chance(0.5) ? both : both.toReversed(), pieces: chunks(random, body) },
    { lines: [chunked], pieces: badChunks(random, body) },
    { lines: [chunked], pieces: badChunks(random, body) }
  ])
}

function split(random: Random, body: Buffer): Buffer[] {
  const pieces: Buffer[] = []
  for (let at = 0; at < body.length;) {
    const end = pieces.length === 5 ? body.length : at + random.integer(1, body.length)
    pieces.push(body.subarray(at, end))
    at = end
  }
  return pieces
}

function chunks(random: Random, body: Buffer): Buffer[] {
  const extension = random.chance(0.1) ? random.pick([';x=1', ';', `;${'e'.repeat(300)}`]) : ''
  const trailers = random.chance(0.1) ? 'X-End: 1\r\n' : ''
  return [
    ...split(random, body).map(piece => chunk(piece, extension)),
    Buffer.from(`0\r\n${trailers}\r\n`)
  ]
}

const chunk = (bytes: Buffer, extension = '') =>
  Buffer.concat([
    Buffer.from(`${bytes.length.toString(16)}${extension}\r\n`),
    bytes,
    Buffer.from('\r\n')
  ])

/** What is no chunk, of a client or a back-end. */
export const noChunks = [
  ...['zz', '-1\r\nx', '5\r\nabc', 'fffffffffffffffff', '', '0'],
  ...['0x3\r\nabc', ' 3\r\nabc', '3 \r\nabc', '3\r\nabcd', '3\nabc']
].map(text => `${text}\r\n`)

function badChunks(random: Random, body: Buffer): Buffer[] {
  const pieces = chunks(random, body)
  const bad = random.pick(noChunks)
  pieces.splice(random.integer(0, pieces.length - 1), random.integer(0, 1), Buffer.from(bad))
  return pieces
}
