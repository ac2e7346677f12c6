/** Serves the files of the ops page, from memory: compressed, and immutable under their hash. */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

interface PageFile {
  readonly type: string
  readonly body: Buffer
  /** The body in other encodings, each made at its first use. */
  readonly encoded: Map<string, Promise<Buffer>>
}

interface PageFiles {
  /** Of the contents of all files; part of the address of each but the first. */
  readonly hash: string
  readonly byPath: ReadonlyMap<string, PageFile>
}

/** `src/admin/page/`, or `dist/page/` that build.js has made of it. */
const pageFolder = fileURLToPath(new URL('page/', import.meta.url))
const indexFile = 'index.html'

const typeOf: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.ts': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml'
}

/** Packages that the sources import, and the file of each that a browser can load. */
const packages: Readonly<Record<string, () => string>> = {
  'preact': () => import.meta.resolve('preact'),
  'preact/hooks': () => import.meta.resolve('preact/hooks'),
  'uplot': () => new URL('uPlot.esm.js', import.meta.resolve('uplot')).href
}

const compress = {
  br: promisify(brotliCompress),
  gzip: promisify(gzip)
}
const brotliQuality = 9

/**
 * Adds `/ops/` and what the page loads. They show nothing of the gateway, so they need no sign-in.
 *
 * @param folder another folder with a built page, for tests
 */
export function addPageFiles(ops: FastifyInstance, folder = pageFolder): void {
  let files: PageFiles | undefined
  const load = () => (files ??= loadFiles(folder))

  const open = { config: { isOpen: true } }
  ops.get('/ops', open, async (_request, reply) => await reply.redirect('/ops/', 308))
  ops.get('/ops/', open, async (request, reply) => {
    const { hash, byPath } = load()
    reply.header('etag', `"${hash}"`).header('cache-control', 'no-cache')
    if (request.headers['if-none-match'] === `"${hash}"`) return await reply.code(304).send()
    return await sendFile(request, reply, byPath.get(indexFile))
  })
  ops.get<{ Params: { 'hash': string; '*': string } }>(
    '/ops/assets/:hash/*',
    open,
    async (request, reply) => {
      const { hash, byPath } = load()
      const { 'hash': requested, '*': path } = request.params
      const file = requested === hash && path !== indexFile ? byPath.get(path) : undefined
      if (file !== undefined) reply.header('cache-control', 'public, max-age=31536000, immutable')
      return await sendFile(request, reply, file)
    }
  )
}

async function sendFile(
  { headers }: FastifyRequest,
  reply: FastifyReply,
  file: PageFile | undefined
): Promise<FastifyReply> {
  if (file === undefined) {
    return await reply.code(404).send({ error: 'The ops page has no such file. Reload the page.' })
  }
  const accepted = headers['accept-encoding'] ?? ''
  const encoding = (['br', 'gzip'] as const).find(name => accepted.includes(name))
  reply.type(file.type).header('vary', 'accept-encoding')
  if (encoding === undefined) return await reply.send(file.body)
  return await reply.header('content-encoding', encoding).send(await encode(file, encoding))
}

async function encode({ body, encoded }: PageFile, encoding: 'br' | 'gzip'): Promise<Buffer> {
  let pending = encoded.get(encoding)
  if (pending === undefined) {
    const params = { [constants.BROTLI_PARAM_QUALITY]: brotliQuality }
    pending = encoding === 'br' ? compress.br(body, { params }) : compress.gzip(body)
    encoded.set(encoding, pending)
  }
  return await pending
}

function loadFiles(folder: string): PageFiles {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map(name => name.replaceAll('\\', '/'))
    .filter(name => isShown(name))
    .toSorted()
  const sources = new Map(names.map(name => [name, readFileSync(join(folder, name), 'utf8')]))
  if (sources.has('main.ts')) addPackages(sources)
  const digest = createHash('sha256')
  for (const [name, text] of sources) digest.update(name).update('\0').update(text).update('\0')
  const hash = digest.digest('base64url').slice(0, 16)
  const byPath = new Map<string, PageFile>()
  for (const [name, text] of sources) {
    const body = Buffer.from(forBrowser(name, text, hash))
    const type = typeOf[extname(name)] ?? 'text/plain'
    byPath.set(name.replace(/\.ts$/, '.js'), { type, body, encoded: new Map() })
  }
  return { hash, byPath }
}

function isShown(name: string): boolean {
  return Object.hasOwn(typeOf, extname(name)) && name !== 'bundle.js'
}

function addPackages(sources: Map<string, string>): void {
  for (const [name, resolve] of Object.entries(packages)) {
    sources.set(`packages/${name}.js`, readFileSync(fileURLToPath(resolve()), 'utf8'))
  }
  const styles = new URL('uPlot.min.css', import.meta.resolve('uplot'))
  sources.set('packages/uplot.css', readFileSync(fileURLToPath(styles), 'utf8'))
}

/** The sources as a browser runs them: without types, and with addresses for file names. */
function forBrowser(name: string, text: string, hash: string): string {
  const assets = `/ops/assets/${hash}/`
  if (name === indexFile) return text.replaceAll('assets/', assets)
  if (name.endsWith('.ts')) return toAddresses(stripTypeScriptTypes(text), assets)
  return name.startsWith('packages/preact') ? toAddresses(text, assets) : text
}

/**
 * `'./x.ts'` → `'./x.js'`, `'preact'` → `'/ops/assets/HASH/packages/preact.js'`. Other texts behind
 * the word stay, such as the key `'sessions.from'`.
 */
function toAddresses(code: string, assets: string): string {
  return code.replaceAll(
    /\bfrom ?(['"])(\.[^'"\n]*|preact|preact\/hooks|uplot)\1/g,
    (_match, _quote, specifier: string) =>
      Object.hasOwn(packages, specifier)
        ? `from '${assets}packages/${specifier}.js'`
        : `from '${specifier.replace(/\.ts$/, '.js')}'`
  )
}
