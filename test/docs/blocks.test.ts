/**
 * Every code block of the pages: config is loaded, code is parsed; commands.test.ts runs
 * commands, and test/long the files of proxies. Chinese pages have the same blocks as the English.
 */
import { execFileSync } from 'node:child_process'
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import t from 'tap'
import { parse, stringify } from 'yaml'
import { loadConfig } from '../../src/config/read/load.ts'
import { schemaOf } from '../../src/config/schema/config.ts'
import { ConfigError } from '../../src/config/schema/faults.ts'
import { testAuthority } from '../support/authority.ts'
import { textFolder } from '../support/config-files.ts'
import { blocksOf } from '../support/doc-blocks.ts'

type Mapping = Record<string, any>

const pages = execFileSync('git', ['ls-files', '*.md'], { encoding: 'utf8' }).trim().split('\n')
/** Those of presets have lines of config and code, not whole parts. */
const blocks = pages.filter(page => !page.includes('/presets/')).flatMap(blocksOf)
const keys = new Set(
  Object.values(schemaOf).flatMap(({ properties = {} }) => Object.keys(properties))
)
/** Each variable that a block names. */
const environmentOf = (text: string) =>
  Object.fromEntries(
    Array.from(text.matchAll(/\$\{(\w+)\}/g), ([, name = '']) => [
      name,
      'a secret of at least thirty-two characters'
    ])
  )
const { certificate, key } = testAuthority(t.after, 'DNS:console.example.com')

/** Files that config names, and that are not of the page. */
const filesHere = (text: string) =>
  text.replaceAll(/(file:)?[\w./-]+\.(?:pem|key)\b|file:[\w./-]+-password/g, file =>
    file.startsWith('file:') ? `file:${key}` : certificate
  )

/** What the block stands on: the upstreams and shapes that it names and does not have. */
function completed(block: Mapping, text: string): Mapping {
  const named = (pattern: RegExp) => Array.from(text.matchAll(pattern), ([, name = '']) => name)
  const upstreams = ['backend', ...named(/\bupstream: ([\w-]+)/g)]
  const shapes = named(/\b(?:shape|use): ([\w-]+)/g)
  const from = (names: string[], value: unknown) =>
    Object.fromEntries(names.map(name => [name, value]))
  return {
    ...block,
    upstreams: { ...from(upstreams, { url: 'http://127.0.0.1:1' }), ...block['upstreams'] },
    shapes: { ...from(shapes, [{ default: {} }]), ...block['shapes'] }
  }
}

function faultsOf(text: string): string[] {
  const whole = completed(parse(text) as Mapping, text)
  const folder = textFolder(t.after, { 'routes.yaml': stringify(whole) })
  mkdirSync(join(folder, 'contracts'))
  writeFileSync(join(folder, 'contracts/notices.schema.json'), '{}')
  try {
    loadConfig(folder, environmentOf(text))
    return []
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.faults
      .filter(({ severity }) => severity === 'fault')
      .map(({ path, message }) => `${path}: ${message}`)
  }
}

/** How the blocks of a language are tried; `false` where another test runs them. */
const languages: Readonly<Record<string, false | ((text: string) => void)>> = {
  yaml: text => {
    const value = parse(text) as Mapping
    if (!Object.keys(value).every(name => keys.has(name))) return
    const faults = faultsOf(filesHere(text))
    if (faults.length > 0) throw new Error(faults.join('\n'))
  },
  ts: text => void stripTypeScriptTypes(text),
  js: text => void stripTypeScriptTypes(text),
  sh: text => void execFileSync('bash', ['-n'], { input: text }),
  console: false,
  text: false,
  nginx: false,
  caddyfile: false,
  haproxy: false
}

t.test('each block is what it says', async t => {
  t.ok(blocks.length > 70, `${blocks.length} blocks`)
  for (const { place, language, text } of blocks) {
    const attempt = languages[language]
    if (!t.ok(attempt !== undefined, `${place}: ${language}`) || attempt === false) continue
    t.doesNotThrow(() => attempt?.(text), place)
  }
})

t.test('a Chinese page has the blocks of the English one, and its headings', async t => {
  const chinese = pages.filter(page => page.endsWith('.zh-CN.md'))
  t.equal(chinese.length, 4)
  for (const page of chinese) {
    const english = page.replace('.zh-CN', '')
    const codeOf = (file: string) => blocksOf(file).map(({ language, text }) => [language, text])
    t.same(codeOf(page), codeOf(english), page)
    const levels = (file: string) =>
      readFileSync(file, 'utf8')
        .replaceAll(/^```[^]*?^```/gm, '')
        .match(/^#+ /gm)
    t.same(levels(page), levels(english), page)
  }
})

t.test('each event of the log stands in observability.md, since its name is stable', t => {
  const page = readFileSync('docs/observability.md', 'utf8')
  const events = globSync('src/**/*.ts').flatMap(file =>
    Array.from(readFileSync(file, 'utf8').matchAll(/event: '([a-z.-]+)'/g), ([, name = '']) => name)
  )
  t.ok(events.length > 30, `${events.length} events`)
  t.same(
    events.filter(name => !page.includes(`\`${name}\``)),
    []
  )
  t.end()
})
