import { isDeepStrictEqual } from 'node:util'
import {
  deflateRawSync,
  deflateSync,
  brotliCompressSync,
  constants,
  gzipSync,
  zstdCompressSync
} from 'node:zlib'
import fc from 'fast-check'
import t from 'tap'
import { GatewayError } from '../../src/errors/errors.ts'
import { readJson, writeJson } from '../../src/json/body.ts'
import { seed } from '../support/seed.ts'

const json = { 'content-type': 'application/json' }
const typed = (charset: string) => ({ 'content-type': `application/json; charset=${charset}` })
const coding = (name: string) => ({ ...json, 'content-encoding': name })
type Body = readonly [
  body: string | Buffer,
  headers?: Readonly<Record<string, string>>,
  maxBytes?: number
]
const read = (...[body, headers = json, maxBytes = 2 ** 20]: Body) =>
  readJson(Buffer.from(body as string), headers, maxBytes)
/** The code that the client is told, and the reason in the log. */
const faultOf = (...body: Body): string => {
  try {
    writeJson(read(...body))
    return 'none'
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    const { code, cause } = error
    return cause instanceof Error ? `${code}: ${cause.message.replace(/^.* JSON: /, '')}` : code
  }
}

const value = {
  list: Array.from({ length: 500 }, (_, id) => ({ id, title: `Büro ${id}`, done: id % 2 === 0 }))
}
const text = Buffer.from(JSON.stringify(value))
const encoders: Record<string, (bytes: Buffer) => Buffer> = {
  'gzip': gzipSync,
  'x-gzip': gzipSync,
  'GZip': gzipSync,
  'deflate': deflateSync,
  'br': brotliCompressSync,
  'zstd': zstdCompressSync,
  'identity': bytes => bytes,
  '': bytes => bytes
}

t.test('a content coding is undone, up to the bound', async t => {
  for (const [name, encode] of Object.entries(encoders)) {
    const bytes = encode(text)
    t.same(read(bytes, coding(name), text.length), value, name)
    t.equal(faultOf(bytes, coding(name), text.length - 1), 'shape.too-large', name)
  }
  const members = [text.subarray(0, 700), text.subarray(700)].map(part => gzipSync(part))
  t.same(read(Buffer.concat(members), coding('gzip')), value, 'two members')
  t.same(read(deflateRawSync(text), coding('deflate')), value, 'as some servers send it')
})

t.test('a coding that is cut, broken, unknown or not the only one is told as such', async t => {
  const told = /^shape.not-json: its content coding [a-z-]+ (breaks off|is not that of its bytes)/
  for (const [name, encode] of Object.entries(encoders).slice(0, 6)) {
    const bytes = encode(text)
    for (const length of [0, 1, 5, (bytes.length / 2) | 0, bytes.length - 1]) {
      t.match(faultOf(bytes.subarray(0, length), coding(name)), told, `${name} ${length}`)
    }
    t.match(faultOf(Buffer.from(bytes).fill(0xa5, 2, 60), coding(name)), /^shape.not-json/, name)
  }
  // It asks for more memory than HTTP allows (RFC 9659).
  const greedy = zstdCompressSync(Buffer.alloc(2 ** 26, ' '), {
    params: { [constants.ZSTD_c_windowLog]: 27, [constants.ZSTD_c_contentSizeFlag]: 0 }
  })
  for (const [bytes, name, reason] of [
    ['no JSON', 'compress', '"compress" is not known'],
    [brotliCompressSync(gzipSync(text)), 'gzip, br', '"gzip, br" is not known'],
    [greedy, 'zstd', 'zstd is not that of its bytes']
  ] as const) {
    t.equal(faultOf(bytes, coding(name)), `shape.not-json: its content coding ${reason}`)
  }
})

const a = { a: 'ü€😀' }
const utf8 = Buffer.from(JSON.stringify(a))
const utf16 = Buffer.from('\ufeff{"a":"ü€😀"}', 'utf16le')
const utf16be = Buffer.from(utf16).swap16()
const latin1 = Buffer.from('{"a":"ü"}', 'latin1')
const gbk = Buffer.from('{"a":"\xd6\xd0"}', 'latin1')

t.test('text is read as what its mark, its charset or nothing says', async t => {
  for (const [bytes, type, expected] of [
    [utf8, '', a],
    [`\ufeff${JSON.stringify(a)}`, 'application/json', a],
    [utf16, '', a],
    [utf16, 'application/json; charset=utf-8', a],
    [utf16be, 'application/json', a],
    [utf16.subarray(2), 'application/json;charset=UTF-16LE', a],
    [latin1, 'text/json; charset="ISO-8859-1"', { a: 'ü' }],
    [gbk, 'application/json; charset=GBK', { a: '中' }]
  ] as const) {
    t.same(read(bytes, { 'content-type': type }), expected, type)
  }
  for (const [bytes, charset, reason] of [
    [latin1, 'utf-8', 'its text is not utf-8'],
    [utf16.subarray(0, 5), 'utf-8', 'its text is not utf-16le'],
    ['{', 'klingon', 'at position 1']
  ] as const) {
    t.match(faultOf(bytes, typed(charset)), reason)
  }
})

t.test('case 2: a label that is wrong is ignored, and told', async t => {
  const codings = ['UTF-8', 'none', 'text', 'json', 'gzip', 'deflate', 'br', 'zstd']
  const labels: ReadonlyArray<readonly [Record<string, string>, ...told: RegExp[]]> = [
    [typed('utf8mb4'), /charset "utf8mb4"/],
    [typed('UTF_8'), /charset "utf_8"/],
    [typed('iso-8859-1'), /charset "iso-8859-1"/],
    [typed('utf-16'), /charset "utf-16"/],
    [{ ...typed('GBK'), 'content-encoding': 'gzip' }, /content coding gzip/, /charset "gbk"/],
    ...codings.map(name => [coding(name), /content coding/] as const),
    [typed('utf-8')]
  ]
  const ignoredOf = (bytes: Buffer, headers: Record<string, string>, expected: unknown) => {
    const ignored: string[] = []
    const found = readJson(bytes, headers, 1000, label => ignored.push(label))
    t.same(found, expected, JSON.stringify(headers))
    return ignored
  }
  for (const [headers, ...told] of labels) {
    const ignored = ignoredOf(utf8, headers, a)
    t.equal(ignored.length, told.length)
    t.match(ignored, told)
  }
  t.same(ignoredOf(Buffer.from('{"a":1}'), typed('iso-2022-jp'), { a: 1 }), [])
  t.same(ignoredOf(gbk, typed('GBK'), { a: '中' }), [])
  t.equal(read('null', coding('gzip')), null, 'a single value')
})

/** The last four are doubles, too, but would be written with other digits. */
const long =
  '9007199254740993 -1234567890123456789 12345678901234567890123 0.12345678901234567890 1e400 ' +
  '12345678901.2345678901 -2.5E+999 1e-400 0.10000000000000000000000001 1541815603606036480 ' +
  '-1152921504606846976 100000000000000000000000 1541815603606036480.0'
const held =
  '9007199254740991 9007199254740992 0.1 0.30000000000000004 0.10000000000000001 5e-324 1e21 ' +
  '1.7976931348623157E308 1.0e+25 1.50 -0 12345678901234500'

t.test('no number loses a digit, and one that JavaScript holds is a number', async t => {
  const places = ['N', '[N]', '{"id": N}', '[1,N,2]', '{"a":"x","id":\nN\n}', '{"__proto__":N}']
  for (const number of long.split(' ')) {
    for (const place of places) {
      const body = place.replace('N', number)
      t.equal(writeJson(read(body)), body.replace(/\s/g, ''), body)
    }
  }
  for (const number of held.split(' ')) t.equal(read(number), Number(number), number)
  const inTexts = '["1234567890123456789","a 1234567890123456789",":1234567890123456789","e1e400"]'
  t.equal(writeJson(read(inTexts)), inTexts)
})

t.test('any JSON is read as JSON.parse reads it, and any number comes back', async () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 4 }), body => isDeepStrictEqual(read(body), JSON.parse(body))),
    { numRuns: 1000, seed }
  )
  fc.assert(
    fc.property(fc.bigInt({ min: -(2n ** 80n), max: 2n ** 80n }), whole => {
      const round = (whole / 4096n) * 4096n
      return writeJson(read(`[${whole},${round}]`)) === `[${whole},${round}]`
    }),
    { numRuns: 5000, seed }
  )
  const digits = fc.stringMatching(/^-?(0|[1-9]\d{0,30})(\.\d{1,25})?([eE][+-]?\d{1,4})?$/)
  fc.assert(
    fc.property(digits, number => {
      const written = JSON.stringify((read(`[${number}]`) as unknown[])[0])
      return written === number || Number(written) === Number(number)
    }),
    { numRuns: 5000, seed }
  )
})

t.test('what JSON may hold comes back: names twice, __proto__, 10 MB', async t => {
  for (const [body, written = body] of [
    ['{"a":1,"a":{"b":2},"constructor":3}', '{"a":{"b":2},"constructor":3}'],
    ['{"__proto__":{"x":1}}'],
    ['{"a\\ud800":"\\udc00 \\ud83d\\ude00"}', '{"a\\ud800":"\\udc00 😀"}'],
    [`[${'{"id":1,"title":"some text"},'.repeat(400_000)}0]`]
  ] as const) {
    t.equal(writeJson(read(body, json, 2 ** 24)), written)
  }
})

t.test('what is nested too deeply is told as such, with long numbers and without', async t => {
  const deep = (inner: string, depth: number) => '['.repeat(depth) + inner + ']'.repeat(depth)
  t.equal(writeJson(read(deep('1', 500))), deep('1', 500))
  for (const inner of ['1', '12345678901234567890']) {
    t.equal(faultOf(deep(inner, 200_000)), 'shape.not-json: it is nested too deeply')
  }
  t.equal(faultOf('[{"a":'.repeat(150_000)), 'shape.not-json: it breaks off')
})

t.test('the log is told how a text stops being JSON, but nothing of it', async t => {
  const at = (place: number) => ` at position ${place} (line 1 column ${place + 1})`
  for (const [body, fault] of [
    ['', 'it is empty'],
    [' \n', 'it is empty'],
    ['<html>secret</html>', 'it begins as HTML or XML does, and its type is text/html'],
    ['{"secret":1', `expected ',' or '}' after property value in JSON${at(11)}`],
    ['{"a":"secr', `unterminated string in JSON${at(10)}`],
    ['{\n "a": secret }', "unexpected token 's'"],
    ['[1,2,]', "unexpected token ']'"],
    ['{"a":1}{"b":2}', `unexpected non-whitespace character after JSON${at(7)}`],
    ['["\\x"]', `bad escaped character in JSON${at(3)}`],
    ['nul', 'it breaks off']
  ] as const) {
    const type = body.startsWith('<') ? 'text/html; charset=utf-8' : 'application/json'
    t.equal(faultOf(body, { 'content-type': type }), `shape.not-json: ${fault}`)
  }
  const marks = fc.constantFrom('"', '\\', '{', '}', '[', ']', ',', ':', 'x', '1', '-', '\n', '')
  const secrets = fc.array(fc.constantFrom('secretsecret', 'other-secret'))
  fc.assert(
    fc.property(secrets, fc.nat(), marks, (texts, at, mark) => {
      const body = JSON.stringify({ texts, more: texts })
      const place = at % (body.length + 1)
      const damaged = body.slice(0, place) + mark + body.slice(place + 1)
      return !faultOf(damaged).includes('secret')
    }),
    { numRuns: 2000, seed }
  )
})
