/** The console's own files. */
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import t from 'tap'
import { testGateway } from '../support/gateway.ts'
import { request } from '../support/raw.ts'
import { temporaryFolder } from '../support/temporary.ts'

const root = temporaryFolder()
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
const gateway = await testGateway(t.after, { gateway: { console: { root } } })

t.test('case 18: files that are compressed beside the plain ones are used', async t => {
  for (const [path, accepted, coding] of [
    ['/app.js', 'gzip, br', 'br'],
    ['/app.js', 'gzip', 'gzip'],
    ['/app.js', 'identity', null],
    ['/only-gzip.js', 'br, gzip', 'gzip'],
    ['/plain.js', 'gzip, br', null]
  ] as const) {
    const { status, text, headers } = await gateway.call(path, {
      headers: { 'accept-encoding': accepted }
    })
    t.same([status, text, headers.get('content-encoding')], [200, script, coding], path)
    t.match(Object.fromEntries(headers), {
      'content-type': /javascript/,
      'vary': /accept-encoding/i,
      'cache-control': 'no-cache'
    })
  }
})

t.test('a client that leaves before its page begins is no fault of the gateway', async t => {
  const { port } = new URL(gateway.url)
  for (let visitor = 0; visitor < 5; visitor++) {
    const socket = connect(Number(port), '127.0.0.1')
    await once(socket, 'connect')
    socket.end(request('GET /a/page', ['Accept: text/html']), () => socket.resetAndDestroy())
    await once(socket, 'close')
  }
  await gateway.logged(({ msg, status }) => msg === 'request' && status === 499)
  t.equal((await gateway.call('/a/page', { headers: { accept: 'text/html' } })).status, 200)
  t.notOk(gateway.log.some(({ level }) => level === 'error'))
  const metrics = await (await gateway.ops('/metrics')).text()
  t.match(metrics, 'console_gateway_requests_total')
  t.notMatch(metrics, /console_gateway_errors_total\{code="gateway.fault"\}/)
})

t.end()
