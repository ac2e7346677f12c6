/** Commands that ask a gateway elsewhere: where the token goes, and where it never goes. */
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { testAuthority } from '../support/authority.ts'
import { run, runProcess } from '../support/command.ts'
import { configFolder, testGateway } from '../support/gateway.ts'
import { testSecret } from '../support/ops.ts'

const token = 'the-token-of-operators-with-more-than-32-characters'
const env = { CONSOLE_GATEWAY_TOKEN: token }
const asking = [
  ['status'],
  ['reload'],
  ['plan'],
  ['sessions', 'list'],
  ['limits', 'show', '203.0.113.7'],
  ['lockouts', 'list'],
  ['maintenance']
]

/** Keeps the headers of each request. */
async function trap(
  t: Test,
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  tls?: { readonly key: Buffer; readonly cert: Buffer }
) {
  const seen: IncomingMessage[] = []
  const take = (request: IncomingMessage, response: ServerResponse) => {
    seen.push(request)
    answer(request, response)
  }
  const server = tls === undefined ? createServer(take) : createSecureServer(tls, take)
  server.listen(0, '127.0.0.1')
  await new Promise(resolve => {
    server.once('listening', resolve)
  })
  t.after(() => server.close())
  const { port } = server.address() as AddressInfo
  return { seen, port, url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}` }
}

t.test('a gateway at another address is asked with the token of the environment', async t => {
  const gateway = await testGateway(t.after)
  const secret = testSecret
  const words = ['--url', `${gateway.opsUrl}/`, '--config', '/nowhere', '--json']
  const { code, out } = await run(['status', ...words], { env: { CONSOLE_GATEWAY_TOKEN: secret } })
  t.equal(code, 0)
  t.match(JSON.parse(out), { ready: true, folder: gateway.folder })

  const wrong = await run(['status', ...words], { env })
  t.equal(wrong.code, 1)
  t.match(wrong.err, /refused the token/)
  t.notMatch(wrong.err, token)
})

t.test('an address that is none of operators is said to be so', async t => {
  const { url } = await trap(t, (_request, response) => response.writeHead(404).end())
  const other = await run(['status', '--url', url], { env })
  t.equal(other.code, 1)
  t.match(other.err, 'Is that the address of its operators’ listener (ops.listen)?')
  const secure = await run(['status', '--url', url.replace('http:', 'https:')], { env })
  t.equal(secure.code, 1)
  t.match(secure.err, /^No gateway answers on 127\.0\.0\.1:\d+: EPROTO\. Is it .*\n$/)
})

t.test('plain http goes to this machine only, whatever the command', async t => {
  for (const words of asking) {
    const { code, err } = await run([...words, '--url', 'http://192.0.2.1:9090'], { env })
    t.equal(code, 2, words.join(' '))
    t.match(err, /plain http goes to this machine only\. Use https:.*ssh -L/s)
  }
  for (const host of ['0.0.0.0', '10.0.0.1', '[::ffff:10.0.0.1]', '127.0.0.1.example.org']) {
    const { code, err } = await run(['status', '--url', `http://${host}:1`], { env })
    t.equal(code, 2, host)
    t.notMatch(err, token)
  }
  for (const host of ['127.0.0.1', '[::1]', 'localhost', '127.9.9.9']) {
    const { code, err } = await run(['status', '--url', `http://${host}:1`], { env })
    t.equal(code, 1, host)
    t.match(err, /No gateway answers/)
  }
})

t.test('https is checked against the given certificates', async t => {
  const { key, certificate } = testAuthority(t.after)
  const tls = { key: readFileSync(key), cert: readFileSync(certificate) }
  const { seen, url } = await trap(
    t,
    (_request, response) => response.end('{"shared":true,"file":null,"operators":[]}'),
    tls
  )
  const unknown = await run(['maintenance', '--url', url], { env })
  t.equal(unknown.code, 1)
  t.match(unknown.err, /: DEPTH_ZERO_SELF_SIGNED_CERT\. Is it/)
  t.equal(seen.length, 0, 'before a token was sent')
  for (const variable of ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE']) {
    const ofFile = { ...env, [variable]: certificate }
    const known = await runProcess(['maintenance', '--url', url], { env: ofFile })
    t.match(known, { code: 0, err: '' }, variable)
  }
  t.equal(seen[0]?.headers.authorization, `Bearer ${token}`)
  t.equal(seen[0]?.url, '/ops/api/maintenance')
})

t.test('a redirect is not followed', async t => {
  const other = await trap(t, (_request, response) => response.end('{}'))
  const { url } = await trap(t, (_request, response) =>
    response.writeHead(307, { location: `${other.url}/status` }).end()
  )
  for (const words of [['status'], ['reload']]) {
    const { code, err } = await run([...words, '--url', url], { env })
    t.equal(code, 1)
    t.match(err, /answered 307: without a reason/)
    t.notMatch(err, other.port)
  }
  t.equal(other.seen.length, 0)
})

t.test('a token that a server sends back is not shown', async t => {
  const { url } = await trap(t, ({ headers: { authorization } }, response) =>
    response.writeHead(500).end(JSON.stringify({ error: `bad: ${authorization}` }))
  )
  const { code, out, err } = await run(['status', '--url', url], { env })
  t.equal(code, 1)
  t.match(err, /bad: Bearer \[token\]/)
  t.notMatch(out + err, token)
})

t.test(
  'whatever a hostile server answers, the command ends, and the terminal obeys nothing',
  async t => {
    const codes = '\u001b[31m\u009b31m\u202e'
    const answers: Array<readonly [text: string, words: readonly string[], said: RegExp]> = [
      ['null', ['status'], /no JSON object/],
      ['[]', ['why', '--last', '1'], /no JSON object/],
      ['<html>', ['maintenance'], /no JSON object/],
      [JSON.stringify({ error: `a${codes}b` }), ['reload'], /answered 500: a\\u001b.*\\u202eb/],
      [
        JSON.stringify({ requests: [{ path: codes }], kept: [], silent: [] }),
        ['why', '--last', '1', '--json'],
        /"\\u001b\[31m\\u009b31m\\u202e"/
      ]
    ]
    for (const [text, words, said] of answers) {
      const status = text.includes('error') ? 500 : 200
      const { url } = await trap(t, (_request, response) => response.writeHead(status).end(text))
      const { out, err } = await run([...words, '--url', url], { env })
      t.match(out + err, said, text)
      t.notMatch(out + err, /[\u001b\u009b\u202e]|\n +at /, text)
    }
  }
)

t.test('a response that breaks off is said in one line', async t => {
  const cut = await trap(t, (_request, response) => {
    response.writeHead(200, { 'content-length': 100 }).write('{', () => response.destroy())
  })
  t.match(await run(['status', '--url', cut.url], { env }), {
    code: 1,
    err: /^No gateway answers on \S+: ECONNRESET\. .*\n$/
  })
})

t.test('the command line takes no token', async t => {
  const inUrl = await run(['status', '--url', `https://operator:${token}@gateway.example`])
  t.equal(inUrl.code, 2)
  t.match(inUrl.err, /holds no credentials/)
  t.notMatch(inUrl.err, token)
  t.equal((await run(['status', '--token', token])).code, 2)
  const invalid = await run(['status', '--url', `https://operator:${token}@`], { env })
  t.equal(invalid.code, 2)
  t.notMatch(invalid.err, token)
})

t.test('without a token, or with one that is none, nothing is asked', async t => {
  const { seen, url } = await trap(t, (_request, response) => response.end('{}'))
  t.match(await run(['status', '--url', url]), { code: 2, err: /CONSOLE_GATEWAY_TOKEN/ })
  const split = { CONSOLE_GATEWAY_TOKEN: `${token}\r\nx-forged: 1` }
  const { code, err } = await run(['status', '--url', url], { env: split })
  t.equal(code, 2)
  t.notMatch(err, token)
  t.match(await run(['status', '--url', 'ftp://127.0.0.1'], { env }), { code: 2 })
  t.equal(seen.length, 0)
})

t.test('with ops.tls commands on this machine need no certificate', async t => {
  const { key, certificate } = testAuthority(t.after, 'DNS:ops.example.com')
  const gateway = await testGateway(
    t.after,
    await configFolder({ gateway: { ops: { tls: { certificate, key: `file:${key}` } } } })
  )
  t.match(gateway.opsUrl, /^https:/)
  for (const words of [['status', '--json'], ['reload'], ['maintenance'], ['sessions', 'list']]) {
    t.match(
      await run([...words, '--config', gateway.folder]),
      { code: 0, err: '' },
      words.join(' ')
    )
  }
})
