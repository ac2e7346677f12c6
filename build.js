/**
 * Makes `dist/`, what images and installations run: the gateway and its packages in a few files,
 * since a thousand of them take half a second to start.
 */
import { execFileSync } from 'node:child_process'
import { copyFileSync, cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { build } from 'esbuild-wasm'

// What packages of CommonJS expect to find; each file gets it.
const commonJs = `
import { createRequire as __createRequire } from 'node:module'
import { dirname as __dirnameOf } from 'node:path'
import { fileURLToPath as __fileOf } from 'node:url'
const require = __createRequire(import.meta.url), __filename = __fileOf(import.meta.url), __dirname = __dirnameOf(__filename)
`

/** Modules that the bundle loads in another way, since their own takes a fifth of the start. */
const lean = {
  // An import of `node:http` reads all of its members, and for `http.WebSocket` Node loads an
  // undici of its own: 35 ms and 13 MB. `require` reads none.
  'node:http': `module.exports = require('node:http')`,
  // What the gateway uses; its proxy plugin never sends. The rest of undici (fetch, mocks, caches) is
  // half a megabyte of code, and reads `globalThis.Headers`, with the same effect.
  'undici': `
    const Dispatcher = require('undici/lib/dispatcher/dispatcher.js')
    Object.assign(Dispatcher.prototype, require('undici/lib/api/index.js'))
    module.exports = {
      Dispatcher,
      Client: require('undici/lib/dispatcher/client.js'),
      Pool: require('undici/lib/dispatcher/pool.js'),
      buildConnector: require('undici/lib/core/connect.js')
    }
  `
}
const leanModules = {
  name: 'lean-modules',
  setup(building) {
    const filter = new RegExp(`^(${Object.keys(lean).join('|')})$`)
    building.onResolve({ filter }, ({ kind, path }) =>
      kind === 'import-statement' || path === 'undici' ? { path, namespace: 'lean' } : undefined
    )
    building.onLoad({ filter, namespace: 'lean' }, ({ path }) => ({
      contents: lean[path],
      resolveDir: import.meta.dirname
    }))
  }
}

const outdir = new URL('dist/', import.meta.url).pathname
rmSync(outdir, { recursive: true, force: true })
const { metafile } = await build({
  metafile: true,
  absWorkingDir: import.meta.dirname,
  entryPoints: ['src/launch.js'],
  entryNames: '[name]',
  outdir,
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  plugins: [leanModules],
  target: 'node24',
  banner: { js: commonJs.trim().replaceAll('\n', ';') },
  // Loaded where they are used, from where they are installed.
  external: [
    'pino-pretty',
    'ts-json-schema-generator',
    '@fastify/static',
    '@prometheus-io/client',
    '@opentelemetry/*'
  ],
  // Names stay, so that a stack can be read.
  minifyWhitespace: true,
  // Beside the files: one letter of a name that is not ASCII, and V8 keeps the whole of it in two bytes for each letter.
  legalComments: 'external',
  logLevel: 'warning'
})
// The licences of the packages that the bundle holds.
const folders = new Set(
  Object.keys(metafile.inputs).flatMap(
    file => /^node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? []
  )
)
const notices = Array.from(folders, folder => {
  const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'))
  const texts = readdirSync(folder).filter(file => /^(licen[cs]e|notice)/i.test(file))
  const text = texts.map(file => readFileSync(`${folder}/${file}`, 'utf8').trim()).join('\n\n')
  return `${name} ${version} (${license})\n\n${text}\n`
})
writeFileSync(`${outdir}NOTICES.txt`, notices.join(`\n${'-'.repeat(72)}\n\n`))
// Files of the operators' pages, beside the module that reads them.
for (const file of ['page.css', 'live.js', 'icon.svg']) {
  copyFileSync(new URL(`src/ops/page/${file}`, import.meta.url), `${outdir}${file}`)
}
// The console and the config of the demo; its back-end is part of the bundle.
for (const folder of ['examples/console', 'config']) {
  cpSync(new URL(folder, import.meta.url), `${outdir}demo/${folder}`, { recursive: true })
}
// The schemas that the first lines of the config files name, for editors.
for (const folder of ['config', 'dist/demo/config']) {
  execFileSync(process.execPath, ['dist/launch.js', 'schemas', '-c', folder], { stdio: 'inherit' })
}
