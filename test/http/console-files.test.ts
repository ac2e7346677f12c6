/** The console's own files. */
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { connect } from 'node:net'
import { join } from 'node:path'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import t from 'tap'
import { testGateway } from '../support/gateway.ts'
import { request } from '../support/raw.ts'

const root = mkdtempSync(join(tmpdir(), 'console-files-'))
t.teardown(() => rmSync(root, { recursive: true }))
const script = 'console.log(1);'.repeat(1000)
const files: Readonly<Record<string, string | Buffer>> = {
  'index.html': '<!doctype html><title>x</title>',
  'app.js': script,
  'app.js.gz': gzipSync(script),
  'app.js.br': brotliCompressSync(script),
  'only-gzip.js': script,
  'only-gzip.js.gz': gzipSync(script),
  'plain.js': script
}
for (const [name, content] of Object.entries(files)) writeFileSync(join(root, name), content)
const gateway = await testGateway(t.after, {
  gateway: { console: { root } },
  routes: { routes: {} }
})

t.test('case 18: files that are compressed beside the plain ones are used', async t => {
  const codingOf = async (path: string, accepted: string) => {
    const answer = await gateway.call(path, { headers: { 'accept-encoding': accepted } })
    t.equal(answer.status, 200)
    t.equal(answer.text, script, `${path} for ${accepted}`)
    t.match(answer.headers.get('content-type'), /javascript/)
    t.match(answer.headers.get('vary'), /accept-encoding/i)
    t.match(answer.headers.get('cache-control'), 'no-cache')
    return answer.headers.get('content-encoding')
  }
  t.equal(await codingOf('/app.js', 'gzip, br'), 'br')
  t.equal(await codingOf('/app.js', 'gzip'), 'gzip')
  t.equal(await codingOf('/app.js', 'identity'), null)
  t.equal(await codingOf('/only-gzip.js', 'br, gzip'), 'gzip')
  t.equal(await codingOf('/plain.js', 'gzip, br'), null)
})

t.test('a client that leaves before its page begins is no fault of the gateway', async t => {
  const { port } = new URL(gateway.url)
  const page = { accept: 'text/html' }
  for (let visitor = 0; visitor < 5; visitor++) {
    const socket = connect(Number(port), '127.0.0.1')
    await once(socket, 'connect')
    socket.end(request('GET /a/page', ['Accept: text/html']), () => socket.resetAndDestroy())
    await once(socket, 'close')
  }
  await gateway.logged(({ msg, status }) => msg === 'request' && status === 499)
  t.equal((await gateway.call('/a/page', { headers: page })).status, 200)
  t.notOk(gateway.log.some(({ level }) => level === 'error'))
  const metrics = await (await gateway.ops('/metrics')).text()
  t.match(metrics, 'console_gateway_requests_total')
  t.notMatch(metrics, /console_gateway_errors_total\{code="gateway.fault"\}/)
})

t.end()
