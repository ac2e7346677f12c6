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
const read = (body: string | Buffer, headers: Record<string, string> = json, maxBytes = 2 ** 20) =>
  readJson(Buffer.from(body as string), headers, maxBytes)
const coded = (body: Buffer, coding: string, maxBytes?: number) =>
  read(body, { ...json, 'content-encoding': coding }, maxBytes)
/** What the client is told, and what the log is. */
const faultOf = (act: () => unknown): { code: string; reason: string } => {
  try {
    return { code: 'none', reason: String(act()) }
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    return { code: error.code, reason: error.cause instanceof Error ? error.cause.message : '' }
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

t.test('a content coding is undone', async t => {
  for (const [coding, encode] of Object.entries(encoders)) {
    t.same(coded(encode(text), coding), value, coding)
  }
  t.same(
    coded(deflateRawSync(text), 'deflate'),
    value,
    'deflate without its frame, as some servers send it'
  )
  const [first, second] = [text.subarray(0, 700), text.subarray(700)]
  t.same(coded(Buffer.concat([gzipSync(first), gzipSync(second)]), 'gzip'), value, 'two members')
})

t.test('a coding that is cut, broken, unknown or not the only one is told as such', async t => {
  for (const [coding, encode] of Object.entries(encoders).slice(0, 6)) {
    const bytes = encode(text)
    for (const length of [0, 1, 5, (bytes.length / 2) | 0, bytes.length - 1]) {
      t.match(
        faultOf(() => coded(bytes.subarray(0, length), coding)),
        {
          code: 'shape.not-json',
          reason: /its content coding [a-z-]+ (breaks off|is not that of its bytes)/
        },
        `${coding} ${length}`
      )
    }
    const broken = Buffer.from(bytes)
    broken.fill(0xa5, 2, 60)
    t.match(
      faultOf(() => coded(broken, coding)),
      { code: 'shape.not-json' },
      `${coding} broken`
    )
  }
  t.match(
    faultOf(() => coded(Buffer.from('no JSON'), 'compress')),
    { code: 'shape.not-json', reason: /"compress" is not known/ }
  )
  t.match(
    faultOf(() => coded(brotliCompressSync(gzipSync(text)), 'gzip, br')),
    { code: 'shape.not-json', reason: /its content coding "gzip, br" is not known/ }
  )
})

t.test('what unpacks beyond the bound is too large; exactly the bound is not', async t => {
  for (const [coding, encode] of Object.entries(encoders)) {
    t.same(coded(encode(text), coding, text.length), value, coding)
    t.match(
      faultOf(() => coded(encode(text), coding, text.length - 1)),
      { code: 'shape.too-large' },
      coding
    )
  }
})

t.test('a frame that asks for more memory than HTTP allows is refused', async t => {
  const greedy = zstdCompressSync(Buffer.alloc(2 ** 26, ' '), {
    params: { [constants.ZSTD_c_windowLog]: 27, [constants.ZSTD_c_contentSizeFlag]: 0 }
  })
  t.match(
    faultOf(() => coded(greedy, 'zstd')),
    { code: 'shape.not-json', reason: /zstd is not that of its bytes/ }
  )
})

t.test(
  'text is read as what its mark, its charset or nothing says; what does not fit is no JSON',
  async t => {
    const swapped = (bytes: Buffer) => Buffer.from(bytes).swap16()
    const utf16 = Buffer.from('\ufeff{"a":"ü€😀"}', 'utf16le')
    const found = { a: 'ü€😀' }
    t.same(read('{"a":"ü€😀"}', {}), found)
    t.same(read('\ufeff{"a":"ü€😀"}'), found, 'a mark before UTF-8')
    for (const headers of [{}, json, { 'content-type': 'application/json; charset=utf-8' }]) {
      for (const bytes of [utf16, swapped(utf16)]) {
        t.same(read(bytes, headers as Record<string, string>), found)
      }
    }
    t.same(read(utf16.subarray(2), { 'content-type': 'application/json;charset=UTF-16LE' }), found)
    t.same(
      read(Buffer.from([0x7b, 0x22, 0x61, 0x22, 0x3a, 0x22, 0xfc, 0x22, 0x7d]), {
        'content-type': 'text/json; charset="ISO-8859-1"'
      }),
      { a: 'ü' }
    )
    t.same(
      read(Buffer.from([0x7b, 0x22, 0x61, 0x22, 0x3a, 0x22, 0xd6, 0xd0, 0x22, 0x7d]), {
        'content-type': 'application/json; charset=GBK'
      }),
      { a: '中' }
    )
    t.match(
      faultOf(() => read(Buffer.from([0x7b, 0x22, 0xfc, 0x22, 0x7d]))),
      { code: 'shape.not-json', reason: /its text is not utf-8/ }
    )
    t.match(
      faultOf(() => read(utf16.subarray(0, 5))),
      { code: 'shape.not-json', reason: /its text is not utf-16le/ }
    )
    t.match(
      faultOf(() => read('{', { 'content-type': 'application/json; charset=klingon' })),
      { code: 'shape.not-json', reason: /at position 1/ }
    )
  }
)

t.test('case 2: a label that is wrong is ignored, and told', async t => {
  const plain = Buffer.from('{"a":"ü€😀"}')
  const found = { a: 'ü€😀' }
  const typed = (charset: string) => ({ 'content-type': `application/json; charset=${charset}` })
  const labels: ReadonlyArray<readonly [Record<string, string>, RegExp]> = [
    [typed('utf8mb4'), /charset "utf8mb4"/],
    [typed('UTF_8'), /charset "utf_8"/],
    [typed('iso-8859-1'), /charset "iso-8859-1"/],
    [typed('GBK'), /charset "gbk"/],
    ...['UTF-8', 'none', 'text', 'json', 'gzip', 'deflate', 'br', 'zstd'].map(
      coding => [{ 'content-encoding': coding }, /content coding/] as const
    )
  ]
  for (const [headers, told] of labels) {
    const ignored: string[] = []
    t.same(
      readJson(plain, headers, 1000, label => ignored.push(label)),
      found,
      JSON.stringify(headers)
    )
    t.match(ignored, [told])
  }
  for (const coding of ['gzip', 'text']) {
    t.equal(coded(Buffer.from('null'), coding), null, 'a single value')
  }
  const both: string[] = []
  const wrong = { ...typed('GBK'), 'content-encoding': 'gzip' }
  readJson(plain, wrong, 1000, label => both.push(label))
  t.match(both, [/content coding gzip/, /charset "gbk"/])
  const right: string[] = []
  const note = (label: string) => right.push(label)
  readJson(Buffer.from('{"a":1}'), typed('iso-2022-jp'), 1000, note)
  readJson(Buffer.from([0x22, 0xd6, 0xd0, 0x22]), typed('GBK'), 1000, note)
  readJson(plain, typed('utf-8'), 1000, note)
  t.same(right, [])
})

t.test('no number loses a digit', async t => {
  const long = [
    '9007199254740993',
    '-1234567890123456789',
    '12345678901234567890123',
    // Doubles, which are written with other digits.
    '1541815603606036480',
    '-1152921504606846976',
    '100000000000000000000000',
    '1541815603606036480.0',
    '0.12345678901234567890',
    '12345678901.2345678901',
    '1e400',
    '-2.5E+999',
    '1e-400',
    '0.10000000000000000000000001'
  ]
  for (const number of long) {
    for (const body of [
      number,
      `[${number}]`,
      `{"id": ${number}}`,
      `[1,${number},2]`,
      `{"a":"x","id":\n${number}\n}`,
      `{"__proto__":${number}}`
    ]) {
      t.equal(writeJson(read(body)), body.replace(/\s/g, ''), body)
    }
  }
})

t.test('a number that JavaScript holds is a number', async t => {
  for (const number of [
    '9007199254740991',
    '9007199254740992',
    '0.1',
    '0.30000000000000004',
    '0.10000000000000001',
    '1.7976931348623157E308',
    '5e-324',
    '1e21',
    '1.0e+25',
    '1.50',
    '-0',
    '12345678901234500'
  ]) {
    t.equal(read(`[${number}]`.slice(1, -1)), Number(number), number)
  }
  const inTexts =
    '["1234567890123456789","a 1234567890123456789",":1234567890123456789","e1234e400"]'
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
    fc.property(fc.array(digits, { maxLength: 8 }), numbers => {
      const again = (read(`[${numbers.join(' ,')}]`) as unknown[]).map(number =>
        JSON.stringify(number)
      )
      return again.every(
        (written, index) => written === numbers[index] || Number(written) === Number(numbers[index])
      )
    }),
    { numRuns: 1000, seed }
  )
})

t.test(
  'the last of two members of a name counts, and __proto__ is a member like others',
  async t => {
    t.equal(
      writeJson(read('{"a":1,"a":{"b":2},"__proto__":{"x":1},"constructor":3}')),
      '{"a":{"b":2},"__proto__":{"x":1},"constructor":3}'
    )
    t.equal(({} as Record<string, unknown>)['x'], undefined)
  }
)

t.test('half a surrogate pair stays one, and the result is well-formed', async t => {
  const body = '{"a\\ud800":"\\udc00 \\ud83d\\ude00"}'
  t.equal(writeJson(read(body)), '{"a\\ud800":"\\udc00 😀"}')
  t.ok(
    Buffer.from(writeJson(read(body)))
      .toString()
      .isWellFormed()
  )
})

t.test('what is nested too deeply is told as such, with long numbers and without', async t => {
  const deep = (inner: string, depth: number) => `${'['.repeat(depth)}${inner}${']'.repeat(depth)}`
  t.equal(writeJson(read(deep('1', 500))), deep('1', 500))
  t.match(
    faultOf(() => writeJson(read(deep('1', 200_000)))),
    { code: 'shape.not-json', reason: /nested too deeply/ }
  )
  t.match(
    faultOf(() => read(deep('12345678901234567890', 200_000))),
    { code: 'shape.not-json', reason: /nested too deeply/ }
  )
  t.match(
    faultOf(() => read('[{"a":'.repeat(150_000))),
    { code: 'shape.not-json', reason: /it breaks off/ }
  )
})

t.test('10 MB are read and written', async t => {
  const large = JSON.stringify(
    Array.from({ length: 100_000 }, (_, id) => ({ id, title: 'x'.repeat(80) }))
  )
  t.ok(large.length > 10e6)
  t.equal(writeJson(read(large, json, 2 ** 24)), large)
})

t.test('the log is told how a text stops being JSON, but nothing of it', async t => {
  const told = (body: string, headers?: Record<string, string>) =>
    faultOf(() => read(body, headers)).reason.replace('the response is not valid JSON: ', '')
  t.equal(told(''), 'it is empty')
  t.equal(told(' \n'), 'it is empty')
  t.equal(
    told('<html>secret</html>', { 'content-type': 'text/html; charset=utf-8' }),
    'it begins as HTML or XML does, and its type is text/html'
  )
  for (const [body, fault] of [
    [
      '{"secret":1',
      "expected ',' or '}' after property value in JSON at position 11 (line 1 column 12)"
    ],
    ['{"a":"secr', 'unterminated string in JSON at position 10 (line 1 column 11)'],
    ['{\n "a": secret }', "unexpected token 's'"],
    ['[1,2,]', "unexpected token ']'"],
    [
      '{"a":1}{"b":2}',
      'unexpected non-whitespace character after JSON at position 7 (line 1 column 8)'
    ],
    ['["\\x"]', 'bad escaped character in JSON at position 3 (line 1 column 4)'],
    ['nul', 'it breaks off']
  ] as const) {
    t.equal(told(body), fault)
  }
})

t.test('whatever is wrong with a text, nothing longer than a character of it is told', async () => {
  const marks = fc.constantFrom('"', '\\', '{', '}', '[', ']', ',', ':', 'x', '1', '-', '\n', '')
  const damaged = fc
    .tuple(fc.array(fc.constantFrom('secretsecret', 'other-secret')), fc.nat(), marks)
    .map(([texts, at, mark]) => {
      const body = JSON.stringify({ texts, more: texts })
      const place = at % (body.length + 1)
      return body.slice(0, place) + mark + body.slice(place + 1)
    })
  fc.assert(
    fc.property(damaged, body => {
      try {
        read(body)
        return true
      } catch (error) {
        return !/secret/.test(String((error as Error).cause))
      }
    }),
    { numRuns: 2000, seed }
  )
})
