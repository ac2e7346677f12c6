/** The console's own files. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import t from 'tap'
import { testGateway } from '../support/gateway.ts'

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

t.end()
