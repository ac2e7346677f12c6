/** Commands that ask a gateway elsewhere: where the token goes, and where it never goes. */
import { readFileSync } from 'node:fs'
import type { RequestListener } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import t from 'tap'
import { testAuthority } from '../support/authority.ts'
import { run, runProcess } from '../support/command.ts'
import { configFolder, testGateway } from '../support/gateway.ts'
import { testSecret } from '../support/ops.ts'
import { listen } from '../support/ports.ts'
import { testUpstream } from '../support/upstream.ts'

const token = 'the-token-of-operators-with-more-than-32-characters'
const env = { CONSOLE_GATEWAY_TOKEN: token }
const status = async (url: string) => await run(['status', '--url', url], { env })

const away = await testUpstream(t.after)

t.test('a gateway at another address is asked with the token of the environment', async t => {
  const gateway = await testGateway(t.after)
  const words = ['status', '--url', `${gateway.opsUrl}/`, '--config', '/nowhere', '--json']
  const { code, out } = await run(words, { env: { CONSOLE_GATEWAY_TOKEN: testSecret } })
  t.equal(code, 0)
  t.match(JSON.parse(out), { ready: true, folder: gateway.folder })
  const wrong = await run(words, { env })
  t.match(wrong, { code: 1, err: /refused the token/ })
  t.notMatch(wrong.err, token)
})

t.test('plain http goes to this machine only, whatever the command', async t => {
  for (const line of [
    ...['status', 'reload', 'plan', 'sessions list', 'limits show 203.0.113.7'],
    ...['lockouts list', 'maintenance']
  ]) {
    const ran = await run([...line.split(' '), '--url', 'http://192.0.2.1:9090'], { env })
    const err = /plain http goes to this machine only\. Use https:.*ssh -L/s
    t.match(ran, { code: 2, err }, line)
  }
  for (const host of ['0.0.0.0', '10.0.0.1', '[::ffff:10.0.0.1]', '127.0.0.1.example.org']) {
    t.match(await status(`http://${host}:1`), { code: 2 }, host)
  }
  for (const host of ['127.0.0.1', '[::1]', 'localhost', '127.9.9.9']) {
    t.match(await status(`http://${host}:1`), { code: 1, err: /No gateway answers/ }, host)
  }
})

t.test('https is checked against the given certificates', async t => {
  const { key, certificate } = testAuthority(t.after)
  const tls = { key: readFileSync(key), cert: readFileSync(certificate) }
  const sent: unknown[] = []
  const answer: RequestListener = ({ url, headers }, response) => {
    sent.push([url, headers.authorization])
    response.end('{"operators":[]}')
  }
  const server = createSecureServer(tls, answer)
  t.teardown(() => server.close())
  const words = ['maintenance', '--url', `https://127.0.0.1:${await listen(server)}`]
  const unknown = await run(words, { env })
  t.match(unknown, { code: 1, err: /: DEPTH_ZERO_SELF_SIGNED_CERT\. Is it/ })
  t.same(sent, [], 'before a token was sent')
  for (const variable of ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE']) {
    const known = await runProcess(words, { env: { ...env, [variable]: certificate } })
    t.match(known, { code: 0, err: '' }, variable)
  }
  t.same(sent[0], ['/ops/api/maintenance', `Bearer ${token}`])
  const plain = await status(away.url.replace('http:', 'https:'))
  t.match(plain, { code: 1, err: /^No gateway answers on 127\.0\.0\.1:\d+: EPROTO\. Is it .*\n$/ })
})

const codes = '\u001b[31m\u009b31m\u202e'
const echo: RequestListener = ({ headers }, response) =>
  void response.writeHead(500).end(JSON.stringify({ error: headers.authorization }))
const broken: RequestListener = (_request, response) =>
  void response.writeHead(200, { 'content-length': 100 }).write('{', () => response.destroy())
const sends =
  (text: string, status = 200): RequestListener =>
  (_request, response) =>
    void response.writeHead(status, { location: away.url }).end(text)
const at = '2026-01-01T00:00:00.000Z'
const old = { requestId: 'x', at, method: 'GET', path: codes, ms: 1, status: 502 }
const found = (code: string) =>
  sends(JSON.stringify({ requests: [{ ...old, code }], kept: [], silent: [] }))
type Answered = readonly [line: string, answer: RequestListener, says: RegExp, code?: number]
const answers: readonly Answered[] = [
  ['status', sends('', 404), /the address of its operators’ listener \(ops\.listen\)\?/],
  ['why --last 1', sends('[]'), /no JSON object/],
  ['maintenance', sends('<html>'), /no JSON object/],
  ['reload', sends(JSON.stringify({ error: codes }), 500), /answered 500: \\u001b.*\\u202e/],
  ['why --last 1 --json', found('x'), /"\\u001b\[31m\\u009b31m\\u202e"/, 0],
  // A code of another version is shown as it is.
  ['why x', found('constructor'), /error +constructor\n(?![^]*to do)/, 0],
  ['status', echo, /Bearer \[token\]/],
  ['status', sends('', 307), /answered 307: without a reason/],
  ['status', broken, /^No gateway answers on \S+: ECONNRESET\. .*\n$/]
]

t.test('whatever a server answers, a line says it, and no terminal obeys it', async t => {
  for (const [line, answer, says, expected = 1] of answers) {
    const { url } = await testUpstream(t.after, answer)
    const { code, out, err } = await run([...line.split(' '), '--url', url], { env })
    t.equal(code, expected, `${line}: ${says}`)
    t.match(out + err, says, `${line}: ${says}`)
    t.notMatch(out + err, /[\u001b\u009b\u202e]|\n +at /, `${line}: ${says}`)
    t.notMatch(out + err, token, `${line}: ${says}`)
  }
  t.equal(away.begun(), 0, 'no redirect is followed')
})

t.test('the command line takes no token, and without a good one nothing is asked', async t => {
  const { begun, url } = await testUpstream(t.after)
  const forged = { CONSOLE_GATEWAY_TOKEN: `${token}\r\nx-forged: 1` }
  for (const [title, words, environment, err] of [
    ['in the URL', ['--url', `https://operator:${token}@gateway.example`], {}, /without user/],
    ['in no URL', ['--url', `https://operator:${token}@`], env, /./],
    ['as an option', ['--token', token], {}, /unknown option/],
    ['none', ['--url', url], {}, /CONSOLE_GATEWAY_TOKEN/],
    ['two lines', ['--url', url], forged, /./],
    ['another scheme', ['--url', 'ftp://127.0.0.1'], env, /./]
  ] as const) {
    const ran = await run(['status', ...words], { env: environment })
    t.match(ran, { code: 2, err }, title)
    t.notMatch(ran.err, token, title)
  }
  t.equal(begun(), 0)
})

t.test('with ops.tls commands on this machine need no certificate', async t => {
  const { key, certificate } = testAuthority(t.after, 'DNS:ops.example.com')
  const tls = { certificate, key: `file:${key}` }
  const folder = await configFolder({ gateway: { ops: { tls } } })
  t.match((await testGateway(t.after, folder)).opsUrl, /^https:/)
  for (const line of ['status --json', 'reload', 'maintenance', 'sessions list']) {
    const ran = await run([...line.split(' '), '--config', folder])
    t.match(ran, { code: 0, err: '' }, line)
  }
})

t.end()
