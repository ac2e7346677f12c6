/** Every code block and link of the pages. Commands: commands.test.ts; proxies: test/long. */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { dirname, join } from 'node:path'
import t from 'tap'
import { parse, stringify } from 'yaml'
import { schemaOf } from '../../src/config/schema/config.ts'
import { testAuthority } from '../support/authority.ts'
import { faultsOf, textFolder } from '../support/config-files.ts'
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

function faultsIn(text: string): string[] {
  const whole = completed(parse(text) as Mapping, text)
  const folder = textFolder(t.after, {
    'routes.yaml': stringify(whole),
    'contracts/notices.schema.json': '{}'
  })
  // Nor a warning of certificates.
  return faultsOf(folder, environmentOf(text)).filter(
    report => !report.includes(': warning: ') || report.includes('tls')
  )
}

/** How the blocks of a language are tried. */
const languages: Readonly<Record<string, (text: string) => unknown>> = {
  yaml: text => {
    const isConfig = Object.keys(parse(text) as Mapping).every(name => keys.has(name))
    const faults = isConfig ? faultsIn(filesHere(text)) : []
    if (faults.length > 0) throw new Error(faults.join('\n'))
  },
  ts: stripTypeScriptTypes,
  js: stripTypeScriptTypes,
  sh: text => execFileSync('bash', ['-n'], { input: text })
}
const triedElsewhere = ['console', 'text', 'nginx', 'caddyfile', 'haproxy']

t.test('each block is what it says', async t => {
  t.ok(blocks.length > 70, `${blocks.length} blocks`)
  for (const { place, language, text } of blocks) {
    const isKnown = language in languages || triedElsewhere.includes(language)
    t.ok(isKnown, `${place}: ${language}`)
    t.doesNotThrow(() => languages[language]?.(text), place)
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

t.test('the files for Traefik, which no test runs, are YAML that refers to each other', async t => {
  const files = blocks.filter(({ place }) => place.startsWith('docs/proxies.md'))
  const fileWith = (part: string) =>
    parse(files.find(({ text }) => text.includes(part))?.text ?? '')
  const [fixed, dynamic] = [fileWith('entryPoints:\n  web'), fileWith('routers')]
  const [router] = Object.values<any>(dynamic.http.routers)
  t.match(router.entryPoints, Object.keys(fixed.entryPoints).slice(1))
  const service = dynamic.http.services[router.service].loadBalancer
  t.ok(dynamic.http.serversTransports[service.serversTransport])
})

/** Written ones, and as GitHub makes them of headings. */
function anchorsOf(text: string): Set<string> {
  const headings = text.replaceAll(/^```[^]*?^```/gm, '').matchAll(/^#+ (.+)$/gm)
  const ofHeadings = Array.from(headings, ([, heading = '']) =>
    heading
      .trim()
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-')
  )
  const written = Array.from(text.matchAll(/<a id="([^"]+)">/g), ([, id = '']) => id)
  return new Set([...ofHeadings, ...written])
}

t.test('each link leads somewhere', async t => {
  for (const page of pages) {
    const links = readFileSync(page, 'utf8').matchAll(/\]\((?![a-z]+:)([^)\s]+)\)/g)
    for (const [, link = ''] of links) {
      const [path = '', anchor = ''] = link.split('#')
      const file = path === '' ? page : join(dirname(page), path)
      const isThere = existsSync(file)
      const leads = isThere && (anchor === '' || anchorsOf(readFileSync(file, 'utf8')).has(anchor))
      t.ok(leads, `${page}: ${link}`)
    }
  }
})

t.test('what the reference says that most people need are keys of it', async t => {
  const page = readFileSync('docs/configuration.md', 'utf8')
  const [, part = ''] = /## What most people need\n([^]*?)\n## /.exec(page) ?? []
  const named = Array.from(part.matchAll(/`([^`]+)`/g), ([, key = '']) => key)
  t.ok(named.length >= 40)
  for (const key of named) t.match(page, `| \`${key}\` |`)
})
