/**
 * Writes docs/configuration.md from the schemas in src/config/schema, docs/error-codes.md, and the
 * pages of presets from the heads of their files; with `--check` it only says which is stale, and
 * then ends with 1.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileSchemas } from '../src/config/schema/for-editors.ts'
import { inUnits, publicTemplate } from '../src/config/schema/primitives.ts'
import type { Node } from '../src/config/schema/node.ts'
import { presetText } from '../src/config/read/presets.ts'
import { presetKinds, presetsOfKind } from '../src/config/schema/presets.ts'
import { errorKinds } from '../src/errors/errors.ts'

/** By what faults say, the words that the head of the page explains. */
const shortNames: Readonly<Record<string, string>> = {
  'a text that is not empty': 'a text',
  'a duration such as 500ms, 30s, 5m or 8h': 'a duration',
  'a size such as 4KiB, 1MiB or 1GiB': 'a size',
  'names joined by dots, such as result.items': 'a member',
  'a name in lower case with dashes': 'a name',
  'a path such as /admin, with no / or * at its end and no empty or dot segments': 'a path',
  'a path that begins with /, without a query, and with no empty or dot segments': 'a path',
  [publicTemplate.expected]: 'a path',
  'a header name in lower case, such as x-user-id': 'a header'
}

/** What most installations set, by what it is for. */
const usual: Readonly<Record<string, readonly string[]>> = {
  'the console and its back-end': ['extends', 'backend', 'upstreams.NAME.url'],
  'addresses': ['server.listen', 'server.hosts', 'server.trustedProxies', 'console.root'],
  'https by the gateway': ['server.tls.certificate', 'server.tls.key'],
  'sessions': [
    'session.secrets',
    'session.idle',
    'session.absolute',
    'redis.url',
    'redis.password'
  ],
  'sign-in': [
    ...['kind', 'file', 'upstream', 'path', 'body', 'outcomes', 'message', 'token'],
    ...['user.id', 'user.roles', 'logout.path']
  ].map(key => `login.sources.NAME.${key}`),
  'calls of a back-end': ['credential', 'headers', 'responseTimeout', 'sessionEnded'].map(
    key => `upstreams.NAME.${key}`
  ),
  'routes': ['path', 'methods', 'access', 'upstream', 'rewrite', 'shape', 'maxBody'].map(
    key => `routes.NAME.${key}`
  ),
  'limits': ['limits.NAME.by', 'limits.NAME.max', 'limits.NAME.window', 'limits.NAME.routes'],
  'operators': ['ops.listen', 'ops.secret', 'ops.role', 'audit.key']
}

/** The keys that have a text. */
const texts = new Map<string, string>()
/** Where the keys of a mapping stand, by these keys. */
const listed = new Map<string, string>()

for (const [file, page] of [
  ['docs/configuration.md', configurationPage()],
  ['docs/error-codes.md', errorsPage()],
  ...presetPages()
] as const) {
  if (!process.argv.includes('--check')) writeFileSync(file, page)
  else if (readFileSync(file, 'utf8') !== page) {
    process.stderr.write(`${file} is not what src says: node scripts/reference.ts\n`)
    process.exitCode = 1
  }
}

function configurationPage(): string {
  const parts = fileSchemas.map(([name, schema]) =>
    [`## \`${name}.yaml\``, '', schema.description ?? '', '', ...section(schema)].join('\n')
  )
  return `# Configuration

<!-- Written by \`node scripts/reference.ts\` from the schemas in src/config. Do not edit. -->

A config folder contains \`gateway.yaml\`, \`routes.yaml\`, \`limits.yaml\` and the users file that \`gateway.yaml\` names. The first three are read as one: a key may stand in any of them, but in one only. \`console-gateway check --config DIR\` lists all faults of a folder, with file and line. Of several folders, \`--config base --config prod\`, the files of a later one override those of the former key by key, lists as a whole, and \`null\` removes a key; a file may then be missing in one of them, and a file that they name is that of the last folder that has it.

- An unknown key is a fault. A missing key has its default.
- \`\${NAME}\` is replaced by an environment variable, \`\${NAME:-text}\` by a variable with a default. A secret is always such a reference or \`file:PATH\`. It never stands in the file itself.
- Durations: \`500ms\`, \`30s\`, \`5m\`, \`8h\`, \`7d\`. Sizes: \`512B\`, \`64KiB\`, \`1MiB\`. Relative paths of files start at the config folder.
- A member is named by the names that lead to it, joined by dots: \`result.items\`, in lists also by numbers. A name has lower-case letters, digits and dashes. A path of requests begins with \`/\`; where its description says so, \`/*\` at its end is all below it, and a segment \`:name\` any one. Headers are written in lower case.
- Put the JSON Schema into the first line of each file, as the files in \`config\` do: then editors complete and check keys.
- \`gateway.yaml\` needs a restart to change, unless a key says otherwise; the other files [do not](operations.md#changing-the-config-while-it-runs).

## What most people need

${Object.entries(usual)
  .map(([what, keys]) => `- ${what}: ${keys.map(key => `\`${key}\``).join(', ')}`)
  .join('\n')}

${parts.join('\n\n')}
`
}

function errorsPage(): string {
  return `# Error codes

<!-- Written by \`node scripts/reference.ts\` from src/errors. Do not edit. -->

The codes of \`errorCode\` in the envelope. \`envelope.messages\` of [the config](configuration.md) replaces messages.

| Code | Status | Message |
|---|---|---|
${Object.entries(errorKinds)
  .map(([code, { status, en }]) => `| \`${code}\` | ${status} | ${en} |`)
  .join('\n')}
`
}

/** A page for each preset, and their list. @returns each with its file */
function presetPages(): Array<readonly [string, string]> {
  const note = '<!-- Written by `node scripts/reference.ts` from presets/. Do not edit. -->'
  const presets = presetKinds.flatMap(kind =>
    presetsOfKind(kind).map(name => {
      const [head = ''] = presetText(kind, name).split(/\n(?!#)/, 1)
      const [title = '', ...lines] = head.replaceAll(/^# ?/gm, '').split('\n')
      const file = `${kind === 'backend' ? 'backend-' : ''}${name}.md`
      const [read = '', ...rest] = lines.join('\n').split('\n\n')
      const whose = kind === 'backend' ? 'Back-end' : 'Console'
      const source = `${whose} preset \`${name}\`. ${read.replaceAll('*', '\\*')}`
      const text = `${[`# ${title}`, note, source, ...rest].join('\n\n')}\n`
      return { kind, file, text, link: `- [\`${name}\`](${file}): ${title}` }
    })
  )
  const links = (kind: string) =>
    presets.flatMap(each => (each.kind === kind ? [each.link] : [])).join('\n')
  const list = `# Presets\n\n${note}\n
[What a preset is, and how your files change it](../consoles.md#presets). \`console-gateway presets show NAME\` prints the file.\n
## Consoles\n\n${links('console')}\n\n## Back-ends\n\n${links('backend')}\n`
  return [
    ['docs/presets/README.md', list],
    ...presets.map(({ file, text }) => [`docs/presets/${file}`, text] as const)
  ]
}

function section(schema: Node): string[] {
  return ['| Key | Value | Default | Description |', '|---|---|---|---|', ...rows(schema, '')]
}

/** @param above the enclosing schemas: a recursive schema is written once */
function rows(schema: Node, prefix: string, above: readonly Node[] = []): string[] {
  if (above.includes(schema)) return []
  const here = [...above, schema]
  const { properties = {}, patternProperties = {}, required = [], chosenBy } = schema
  const members = [
    ...Object.entries(properties),
    ...Object.values(patternProperties).map(member => ['NAME', member] as const)
  ]
  return members.flatMap(([name, member]) => {
    const key = prefix + name
    const isNeeded = required.includes(name) && name !== chosenBy && member.default === undefined
    const former = formerPlace(member, key)
    if (former !== undefined) {
      return [row(key, member, isNeeded, ` Its keys are those of \`${former}\`.`)]
    }
    // What a mapping has by a name of the operator's choice says nothing of its own.
    const isListed = !key.endsWith('.NAME')
    return [...(isListed ? [row(key, member, isNeeded)] : []), ...inner(member, key, here)]
  })
}

/** The place of a mapping with the same keys, which are listed once. */
function formerPlace({ items, ...member }: Node, key: string): string | undefined {
  const { properties = {} } = member.anyOf?.find(isDescribed) ?? items ?? member
  const keys = Object.entries(properties).map(([name, { description }]) => [name, description])
  if (keys.length < 2) return undefined
  const text = JSON.stringify(keys)
  const former = listed.get(text)
  if (former === undefined) listed.set(text, key)
  return former
}

function inner(member: Node, key: string, above: readonly Node[]): string[] {
  if (member.anyOf !== undefined) {
    const all = member.anyOf.flatMap(branch =>
      isDescribed(branch)
        ? rows(branch, `${key}.`, above).map(text => ({ text, title: branch.title }))
        : []
    )
    // A key of several branches is listed once, or with the branch where its row is another one.
    const keyOf = (text: string) => text.split(' | ', 1)[0] ?? ''
    const listedRows = new Map<string, string>()
    return all.flatMap(({ text, title }) => {
      const own = keyOf(text)
      const first = listedRows.get(own)
      if (first === undefined) listedRows.set(own, text)
      if (first === undefined || title === undefined) return first === undefined ? [text] : []
      return first === text ? [] : [text.replace(own, `${own} (${title})`)]
    })
  }
  const { items } = member
  if (items === undefined) return nested(member) ? rows(member, `${key}.`, above) : []
  const branches = (items.anyOf ?? [items]).filter(nested)
  return branches.flatMap(branch => rows(branch, `${key}[].`, above))
}

/** Members of a union's mapping get rows of their own unless the union's row says it all. */
function isDescribed({ properties }: Node): boolean {
  return (
    properties !== undefined &&
    Object.values(properties).every(({ description }) => description !== undefined)
  )
}

function nested(schema: Node) {
  return (
    schema.properties !== undefined ||
    Object.values(schema.patternProperties ?? {}).some(
      ({ type = '', anyOf = [] }) => ['object', 'array'].includes(type) || anyOf.some(isDescribed)
    )
  )
}

function row(key: string, member: Node, required: boolean, more = ''): string {
  const isPlain = member.default !== undefined && !nested(member)
  const preset = isPlain ? `\`${JSON.stringify(member.default)}\`` : ''
  const [example] = member.examples ?? []
  const exampleText = example === undefined ? '' : ` For example \`${JSON.stringify(example)}\`.`
  const restart = member.restart === false ? ' A change needs no restart.' : ''
  const full = (member.description ?? '') + exampleText
  const said = textOnce(full, key)
  const text = cell(said.startsWith('As `') && more !== '' ? more.trim() : said + restart + more)
  const cells = [`\`${key}\``, valueText(member), required ? '**required**' : cell(preset), text]
  return `| ${cells.join(' | ')} |`
}

/** A text that is longer than its former place stands there once. */
function textOnce(text: string, key: string): string {
  const former = texts.get(text)
  if (former === undefined) texts.set(text, key)
  const short = `As \`${former}\`.`
  return former !== undefined && short.length < text.length ? short : text
}

function valueText(member: Node): string {
  if (member.format === 'x-secret') return 'a secret'
  if (member.expected !== undefined) {
    const expected = shortNames[member.expected] ?? member.expected
    const bound =
      member.format === 'x-size' ? `, at most ${inUnits('x-size', member.maximum ?? 0)}` : ''
    return cell(expected + bound)
  }
  if (member.const !== undefined) return `\`${JSON.stringify(member.const)}\``
  if (member.type === 'array') return 'a list'
  if (member.type === 'object' || member.anyOf?.some(isDescribed)) return 'a mapping'
  return 'any value'
}

function cell(text: string) {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ')
}
