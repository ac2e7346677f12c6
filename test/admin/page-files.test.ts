/** The files of the ops page, from the sources and as build.js bundles them. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import Fastify from 'fastify'
import t, { type Test } from 'tap'
import { addPageFiles } from '../../src/admin/page-files.ts'
import { bundlePage } from '../../src/admin/page/bundle.js'

const built = mkdtempSync(join(tmpdir(), 'page-'))
t.teardown(() => rmSync(built, { recursive: true, force: true }))
await bundlePage(built)

async function serve(t: Test, folder?: string) {
  const app = Fastify()
  t.teardown(() => app.close())
  addPageFiles(app, folder)
  const get = async (path: string, headers: Record<string, string> = {}) =>
    await app.inject({ method: 'GET', url: path, headers })
  const index = await get('/ops/')
  const assets = [...index.body.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path]) => path ?? '')
  return { get, index, assets }
}

const imports = /^(?:import|export|\})[^'"\n]*from ?['"]([^'"\n]+)['"]/gm

/** Everything that the document and its modules load. */
async function loadAll({ get, assets }: Awaited<ReturnType<typeof serve>>, encoding?: string) {
  const loaded = new Map<string, Buffer>()
  const queue = [...assets]
  for (const path of queue) {
    if (loaded.has(path)) continue
    const plain = await get(path)
    if (plain.statusCode !== 200) throw new Error(`${path}: ${plain.statusCode}`)
    const sent = encoding === undefined ? plain : await get(path, { 'accept-encoding': encoding })
    loaded.set(path, sent.rawPayload)
    if (!path.endsWith('.js')) continue
    for (const [, specifier = ''] of plain.body.matchAll(imports)) {
      queue.push(new URL(specifier, `http://x${path}`).pathname)
    }
  }
  return loaded
}

for (const [name, folder] of [
  ['src', undefined],
  ['dist', built]
] as const) {
  t.test(`${name}: the page and all that it loads are answered, under a hash for ever`, async t => {
    const served = await serve(t, folder)
    const { get, index, assets } = served
    t.equal(index.statusCode, 200)
    t.match(index.headers, { 'content-type': /^text\/html/, 'cache-control': 'no-cache' })
    t.ok(assets.length >= 4)
    const loaded = await loadAll(served)
    t.ok([...loaded.keys()].every(path => /^\/ops\/assets\/[\w-]{16}\//.test(path)))
    for (const path of loaded.keys()) {
      const { headers, body } = await get(path)
      t.match(headers['cache-control'], /immutable/, path)
      if (path.endsWith('.js')) t.match(headers['content-type'], /^text\/javascript/)
      if (path.includes('/packages/')) continue
      t.notMatch(body, /https?:\/\/(?!www\.w3\.org)/, `${path} names no host`)
    }
    const again = await get('/ops/', { 'if-none-match': index.headers.etag ?? '' })
    t.equal(again.statusCode, 304)
    t.equal((await get('/ops')).headers.location, '/ops/')
  })

  t.test(`${name}: nothing is inline, so that the policy may forbid it`, async t => {
    const { index } = await serve(t, folder)
    t.notMatch(index.body, /<style|\sstyle=|\son\w+=|javascript:/i)
    t.notMatch(index.body, /<script(?![^>]*\bsrc=)/i)
  })

  t.test(`${name}: other hashes, other files and the sources themselves are not there`, async t => {
    const { get, assets } = await serve(t, folder)
    const base = (assets[0] ?? '').split('/').slice(0, 4).join('/')
    for (const path of [
      '/ops/assets/0000000000000000/main.js',
      `${base}/index.html`,
      `${base}/bundle.js`,
      `${base}/tsconfig.json`,
      `${base}/../../../package.json`,
      `${base}/..%2f..%2fserver.ts`,
      `${base}/main.ts`
    ]) {
      t.equal((await get(path)).statusCode, 404, path)
    }
  })

  t.test(`${name}: brotli and gzip are the same text`, async t => {
    const { get, assets } = await serve(t, folder)
    const css = assets.find(path => path.endsWith('page.css')) ?? ''
    const plain = await get(css)
    const brotli = await get(css, { 'accept-encoding': 'gzip, deflate, br' })
    const gzip = await get(css, { 'accept-encoding': 'gzip' })
    t.equal(brotli.headers['content-encoding'], 'br')
    t.equal(brotliDecompressSync(brotli.rawPayload).toString(), plain.body)
    t.equal(gzip.headers['content-encoding'], 'gzip')
    t.equal(gunzipSync(gzip.rawPayload).toString(), plain.body)
  })
}

t.test('src: a text that ends with the word “from” is no import', async t => {
  const { get, assets } = await serve(t)
  const base = (assets[0] ?? '').split('/').slice(0, 4).join('/')
  t.match((await get(`${base}/texts/sessions.js`)).body, "'sessions.from': 'From'")
})

t.test('the built page transfers less than 60 KB, and is less than 165 KB of text', async t => {
  const served = await serve(t, built)
  const total = async (encoding?: string) => {
    const files = [...(await loadAll(served, encoding)).values()]
    return files.reduce((sum, { length }) => sum + length, served.index.rawPayload.length)
  }
  const [plain, brotli] = [await total(), await total('br')]
  t.comment(`${plain} bytes, ${brotli} with brotli`)
  t.ok(brotli < 60_000, `${brotli} bytes with brotli`)
  t.ok(plain < 165_000, `${plain} bytes`)
})
