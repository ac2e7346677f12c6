import { readFileSync } from 'node:fs'
import t from 'tap'
import advice from '../../src/errors/advice.json' with { type: 'json' }
import { type ErrorCode, errorKinds, toGatewayError } from '../../src/errors/errors.ts'
import en from '../../src/errors/texts.en.json' with { type: 'json' }
import zh from '../../src/errors/texts.zh.json' with { type: 'json' }
import { upstreamError } from '../../src/proxy/response.ts'
import { run } from '../support/command.ts'

const kinds = Object.entries(errorKinds)

t.test('every code has a message in English and in Chinese, and advice', t => {
  for (const [code, { en, zh }] of kinds) {
    t.match(code, /^[a-z]+(\.[a-z-]+){0,2}$/)
    t.match(en, /^[A-Z].{8,}\.$/, code)
    t.match(zh, /[\u4e00-\u9fff].*。$/u, code)
    // No package, no address, nothing of the inside.
    t.notMatch(`${en} ${zh}`, /fastify|undici|redis|node|upstream|https?:|\d{2,}/i, code)
  }
  for (const texts of [en, zh, advice]) t.strictSame(Object.keys(texts), Object.keys(errorKinds))
  t.end()
})

t.test('only a session that is over sends the console to its sign-in page', async t => {
  for (const [code, { status, showType }] of kinds) {
    t.equal(showType === 9, code.startsWith('session.') && status === 401, code)
  }
})

t.test('what Fastify and its plugins throw at a client’s mistake has a code of ours', async t => {
  const thrown: ReadonlyArray<readonly [object, ErrorCode]> = [
    [{ code: 'FST_ERR_CTP_INVALID_MEDIA_TYPE', statusCode: 415 }, 'request.type'],
    [{ code: 'FST_ERR_CTP_BODY_TOO_LARGE', statusCode: 413 }, 'request.too-large'],
    [{ code: 'FST_ERR_CTP_EMPTY_JSON_BODY', statusCode: 400 }, 'request.malformed'],
    [{ code: 'FST_ERR_MAX_PARAM_LENGTH', statusCode: 414 }, 'request.uri-too-long'],
    [{ code: 'FST_ERR_SOMETHING_NEW', statusCode: 413 }, 'request.too-large'],
    [{ code: 'ECONNRESET' }, 'request.malformed'],
    [{ statusCode: 415 }, 'request.type'],
    [{ statusCode: 418 }, 'request.malformed'],
    [{ statusCode: 500 }, 'gateway.fault'],
    [{ statusCode: 302 }, 'gateway.fault'],
    [{ statusCode: '400' }, 'gateway.fault'],
    [{ code: 'ENOENT' }, 'gateway.fault'],
    [{ code: 'toString', statusCode: NaN }, 'gateway.fault']
  ]
  const inside = 'connect ECONNREFUSED 10.1.2.3:6379 at /srv/app/src'
  for (const [members, code] of thrown) {
    const error = Object.assign(new Error(inside), members)
    const ours = toGatewayError(error)
    t.equal(ours.code, code, JSON.stringify(members))
    t.equal(ours.message, errorKinds[code].en)
    t.equal(ours.cause, error, 'its own message goes no further')
  }
  for (const thrown of [undefined, null, 0, '', Symbol('x'), 5n, () => {}, Object.create(null)]) {
    t.equal(toGatewayError(thrown).code, 'gateway.fault', typeof thrown)
    t.equal(upstreamError(thrown).code, 'upstream.invalid', typeof thrown)
  }
})

t.test('a failure on the way to a back-end has a code, and does not tell its address', async t => {
  const names: Readonly<Record<string, string>> = {
    'upstream.refused': 'ECONNREFUSED ENOTFOUND EHOSTUNREACH EPROTO CERT_HAS_EXPIRED',
    'upstream.reset': 'ECONNRESET UND_ERR_SOCKET',
    'upstream.timeout.connect': 'ETIMEDOUT UND_ERR_CONNECT_TIMEOUT',
    'upstream.invalid': 'HPE_INVALID_CONSTANT UND_ERR_HEADERS_OVERFLOW SOMETHING_NEW toString',
    'overloaded': 'EMFILE EADDRNOTAVAIL',
    'gateway.stopping': 'UND_ERR_CLOSED',
    'request.malformed': 'UND_ERR_INVALID_ARG'
  }
  for (const [code, each] of Object.entries(names)) {
    for (const name of each.split(' ')) {
      const failure = Object.assign(new Error('connect to 10.1.2.3:8080'), { code: name })
      // A dial of several addresses fails by all of them.
      for (const thrown of [failure, new AggregateError([failure])]) {
        const error = upstreamError(thrown)
        t.equal(error.code, code, name)
        t.notMatch(error.message, '10.1.2.3')
      }
    }
  }
})

const quotedIn = (text: string) => [...text.matchAll(/`([^`]+)`/g)].map(([, quoted = '']) => quoted)

t.test('each key that advice names stands in the reference', t => {
  const reference = readFileSync('docs/configuration.md', 'utf8')
  for (const [code, text] of Object.entries(advice)) {
    for (const quoted of quotedIn(text)) {
      if (/^(console-gateway|Authorization:)/.test(quoted) || quoted === 'from') continue
      const [key = ''] = quoted.split(': ')
      t.ok(reference.includes(`| \`${key}\` |`), `${code}: ${key}`)
    }
  }
  t.end()
})

t.test('each command that advice names exists', async t => {
  const commands = new Set(
    Object.values(advice).flatMap(text =>
      [...text.matchAll(/`console-gateway ([a-z]+(?: [a-z]+)?)/g)].map(([, words = '']) => words)
    )
  )
  t.ok(commands.size > 5)
  for (const command of commands) {
    const [name = '', second = ''] = command.split(' ')
    const { code, out } = await run([name, '--help'])
    t.equal(code, 0, name)
    t.ok(second === '' || new RegExp(`^  ${second} `, 'm').test(out), command)
  }
})
