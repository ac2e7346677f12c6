/** What clients and back-ends send is read in linear time. */
import { readdirSync, readFileSync } from 'node:fs'
import t from 'tap'
import ts from 'typescript'
import { testGateway } from '../support/gateway.ts'
import { raw, request } from '../support/raw.ts'
import { testUpstream } from '../support/upstream.ts'

/** What only operators write or read: config, commands and their page. */
const ofOperators = /^(?:cli|config|process)\//
/** The path of a file of the console that is there: at most 4096 letters. */
const bounded = new Set(['app/endpoints/console.ts'])

t.test('no regular expression over outside text takes more than linear time', async t => {
  // The backend in JavaScript alone, which needs neither Java nor a binary.
  process.env['RECHECK_SYNC_BACKEND'] = 'pure'
  const { checkSync } = await import('recheck')
  // Limits of steps decide, not the clock of a busy machine.
  const untimed = { timeout: 60_000, attackTimeout: null, incubationTimeout: null }
  const isWeak = (literal: string) => {
    const end = literal.lastIndexOf('/')
    return checkSync(literal.slice(1, end), literal.slice(end + 1), untimed).status !== 'safe'
  }
  const files = readdirSync('src', { recursive: true, encoding: 'utf8' })
    .map(file => file.replaceAll('\\', '/'))
    .filter(file => /\.[jt]s$/.test(file) && !ofOperators.test(file) && !bounded.has(file))
  const literals = new Set(files.flatMap(literalsIn))
  t.ok(literals.size > 50, 'the patterns are found')
  t.ok(isWeak('/[ \\t]+$/'), 'a weak pattern is found')
  t.same([...literals].filter(isWeak), [])
})

function literalsIn(file: string): string[] {
  const source = ts.createSourceFile(
    file,
    readFileSync(`src/${file}`, 'utf8'),
    ts.ScriptTarget.Latest
  )
  const found: string[] = []
  const visit = (node: ts.Node): void => {
    if (ts.isRegularExpressionLiteral(node)) found.push(node.text)
    ts.forEachChild(node, visit)
  }
  visit(source)
  return found
}

/** Sixteen times the length costs a linear reader sixteen times the CPU, and a quadratic one 256 times. */
const maxRatio = 64
/** So much a request may cost whatever its length: nothing quadratic is that cheap at the longest. */
const cheapMs = 6
/** A neighbour or a collection of garbage makes a step look steep once; a quadratic reader is steep each time. */
const looks = 4

type Send = (length: number) => Promise<unknown>

const times = (letters: string, length: number) => letters.repeat(length / letters.length)

/** Header lines by what makes them costly; the whole head of a request may have 16 KiB. */
const heads: Record<string, (length: number) => string> = {
  'a path of slashes': n => request(`GET /api/none${times('/a', n)}`),
  'a path of escapes': n => request(`GET /api/open/${times('%25', n)}%2`),
  'a known path': n => request(`GET /api/open${times('/x', n)}`),
  'parameters': n => request(`GET /api/list?${times('page=1&', n)}`),
  'a query of escapes': n => request(`GET /api/list?a=${times('%', n)}`),
  'brackets in a query': n => request(`GET /api/list?a${times('[', n)}=1`),
  'cookies': n => request('GET /api/me', [`Cookie: ${times('console_sid=1;', n)}`]),
  'blanks in a cookie': n => request('GET /api/open/x', [`Cookie: a${times(' ', n)}b=1`]),
  'tabs in a cookie': n => request('GET /api/open/x', [`Cookie: b=1${times('\t', n)}x`]),
  'equal signs in a cookie': n => request('GET /api/me', [`Cookie: console_sid=${times('=', n)}`]),
  'forwarded addresses': n => request('GET /api/me', [`X-Forwarded-For: ${times('1,', n)}`]),
  'blanks in a forwarded address': n =>
    request('GET /api/me', [`X-Forwarded-For: 1${times(' ', n)},1`]),
  'languages': n => request('GET /api/me', [`Accept-Language: ${times('zh;q=0.5,', n)}`]),
  'blanks in a language': n => request('GET /api/me', [`Accept-Language: zh${times(' ', n)};q`]),
  'names of connection headers': n =>
    request('GET /api/open/x', [`Connection: ${times('ab,', n)}`]),
  'types': n => request('GET /api/none', [`Accept: ${times('text/html;q=1,', n)}`]),
  'a trace state': n =>
    request('GET /api/open/x', [
      `Traceparent: 00-${'1'.repeat(32)}-${'1'.repeat(16)}-01`,
      `Tracestate: a=b${times(' ', n)}c`
    ]),
  'WebSocket protocols': n =>
    request('GET /api/open/x', [
      'Connection: upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
      `Sec-WebSocket-Protocol: ${times('a ,', n)}`
    ]),
  'parameters of a type': n =>
    request(
      'POST /api/form',
      [`Content-Type: a/b${times('; charset', n)}`, 'Content-Length: 2'],
      '{}'
    )
}

/** Bodies, sent by a client, by a back-end, and by a back-end with an error. */
const bodies: Record<string, (length: number) => string> = {
  'digits in a text': n => `"${times('7', n)}"`,
  'dots in a text': n => `"${times('.', n)}"`,
  'words of digits': n => `"${times('12345678901234567 ', n)}"`,
  'exponents in a text': n => `"${times('1e999', n)}"`,
  'a number of zeros': n => `0.${times('0', n)}`,
  'zeros before a digit': n => `[1.${times('0', n)}1]`,
  'long numbers': n => `[${times('12345678901234567890,', n)}1]`,
  'open lists': n => times('[', n),
  'open objects': n => times('{"a":', n),
  'blanks': n => times(' ', n),
  'lines before a fault': n => `[${times('\n', n)}!`,
  'an open text of escapes': n => `"${times('\\n', n)}`,
  'half a name': n => `"${times('__proto_', n)}"`,
  'pointers of errors': n => `{"errors":[{"pointer":"${times('/~1', n)}","detail":"x"}]}`,
  'many errors': n => `{"errors":{${times('"a.b":["x"],', n)}"c":["x"]}}`
}

t.test('a text of a client or a back-end costs CPU in proportion to its length', async t => {
  let answer: readonly [status: number, body: string, fields?: object] = [200, '{}']
  const backend = await testUpstream(t.after, (_request, response) => {
    const [status, body, fields] = answer
    response.writeHead(status, { 'content-type': 'application/json', ...fields }).end(body)
  })
  const open = { access: 'public', methods: ['GET', 'POST'] }
  const gateway = await testGateway(t.after, {
    gateway: { server: { trustedProxies: ['127.0.0.1'] } },
    backend: backend.url,
    routes: {
      routes: {
        me: {},
        open: { ...open, path: '/api/open/*', rewrite: '/*', passCookies: ['b'] },
        list: { ...open, shape: 's', query: { rename: { page: 'p' } } },
        form: { ...open, body: { shape: 's' } }
      },
      shapes: { s: [{ rename: { orderId: 'order_id' } }] }
    }
  })
  const isLinear = async (name: string, longest: number, send: Send) => {
    const most = Math.max(cheapMs, maxRatio * (await costOf(() => send(longest / 16))))
    let cost = Infinity
    for (let look = 0; look < looks && cost > most; look++) {
      cost = Math.min(cost, await costOf(() => send(longest)))
    }
    t.ok(cost <= most, `${name}: ${longest} letters cost ${cost.toFixed(2)} ms, not ${most}`)
  }
  for (const [name, head] of Object.entries(heads)) {
    await isLinear(name, 12_800, n => raw(gateway.url, head(n)))
  }
  for (const letters of ['a,', ' ', 'max-age=', ',']) {
    await isLinear(`'${letters}' in headers of a back-end`, 12_800, n => {
      const text = `a${times(letters, n / 2)}b`
      answer = [200, '{}', { 'vary': text, 'cache-control': text }]
      return gateway.call('/api/open/x')
    })
  }
  for (const [name, body] of Object.entries(bodies)) {
    await isLinear(`${name}, of a client`, 960 * 1024, n =>
      gateway.call('/api/form', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: body(n)
      })
    )
    for (const status of [200, 422]) {
      await isLinear(`${name}, of a back-end with ${status}`, 960 * 1024, n => {
        answer = [status, body(n)]
        return gateway.call('/api/list')
      })
    }
  }
})

/** Milliseconds of CPU of one call, after one that compiles and warms up. */
async function costOf(call: () => Promise<unknown>): Promise<number> {
  const calls = 5
  await call()
  const start = process.cpuUsage()
  for (let index = 0; index < calls; index++) await call()
  const { user, system } = process.cpuUsage(start)
  return (user + system) / 1000 / calls
}
