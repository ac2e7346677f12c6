/** `reference`: generates the JSON Schemas and docs/configuration.md from src/config/schema. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { gatewaySchema } from '../config/schema/gateway.ts'
import { limitsSchema } from '../config/schema/limits.ts'
import { boundsInWords } from '../config/schema/primitives.ts'
import { routesSchema } from '../config/schema/routes.ts'
import { usersSchema } from '../config/schema/users.ts'
import { asNode, isAnything, type Node } from '../config/schema/visit.ts'
import { errorKinds } from '../errors.ts'
import type { Command } from './command.ts'

const files: ReadonlyArray<readonly [name: string, schema: Node]> = [
  ['gateway', asNode(gatewaySchema)],
  ['routes', asNode(routesSchema)],
  ['limits', asNode(limitsSchema)],
  ['users', asNode(usersSchema)]
]

export const reference: Command = {
  summary: 'generate config/schema and docs/configuration.md (--check: report if they are stale)',
  ways: [{ takes: ['check'] }],
  details: `
For contributors: the JSON Schemas and the reference page are generated from the
schemas in src/config/schema.

Examples:
  node src/launch.js reference
Exit codes: 1 if --check finds them stale.`,
  options: {
    check: { type: 'boolean', description: 'only report whether something would change' }
  },
  run: async ({ values: { check } }) => {
    const outputs = new Map([
      ...schemaTexts().map(([name, text]) => [`config/schema/${name}.schema.json`, text] as const),
      ['docs/configuration.md', configurationPage()]
    ])
    const stale = [...outputs].filter(([file, content]) => current(file) !== content)
    if (check !== true) {
      for (const [file, content] of stale) {
        mkdirSync(dirname(file), { recursive: true })
        writeFileSync(file, content)
        process.stdout.write(`wrote ${file}\n`)
      }
      return 0
    }
    for (const [file] of stale) {
      process.stderr.write(
        `${file} is not what the schemas say: run \`npm run console-gateway -- reference\`\n`
      )
    }
    return stale.length > 0 ? 1 : 0
  }
}

/** The JSON Schemas of the config files, by name. */
export function schemaTexts(): Array<readonly [name: string, text: string]> {
  return files.map(([name, schema]) => {
    const text = JSON.stringify(jsonSchema(name, schema), null, 2)
    return [name, `${text}\n`] as const
  })
}

function current(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return undefined
  }
}

/** JSON Schema for editors: keys with a default are optional, our own keywords are left out. */
function jsonSchema(name: string, schema: Node): object {
  const definitions: Definitions = {}
  const written = forEditors(schema, definitions)
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    $id: `${name}.schema.json`,
    ...written,
    ...(Object.keys(definitions).length > 0 && { definitions })
  }
}

/** Recursive schemas, by name. */
type Definitions = Record<string, object>

function forEditors(schema: Node, definitions: Definitions): object {
  const { recursive, ...plain } = schema
  if (recursive === undefined) return plainForEditors(plain, definitions)
  if (definitions[recursive] === undefined) {
    definitions[recursive] = {}
    definitions[recursive] = plainForEditors(plain, definitions)
  }
  return { $ref: `#/definitions/${recursive}` }
}

const textWithReference = { type: 'string', pattern: '\\$\\{[A-Za-z_]' }

function plainForEditors(schema: Node, definitions: Definitions): object {
  const {
    expected: _expected,
    instead: _instead,
    format,
    pattern,
    enum: values,
    minimum,
    maximum,
    required,
    properties,
    patternProperties,
    items,
    anyOf,
    ...rest
  } = schema
  const all = (members: Readonly<Record<string, Node>>) =>
    Object.fromEntries(
      Object.entries(members).map(([key, member]) => [key, forEditors(member, definitions)])
    )
  const needed = required?.filter(key => properties?.[key]?.default === undefined) ?? []
  // Instead of any value, config may hold a reference such as ${NAME}.
  const loose = ['integer', 'number', 'boolean'].includes(rest.type ?? '')
  return {
    ...rest,
    // A duration or size is no number in the file: its pattern refuses 0 where its bounds do.
    ...(format === undefined && minimum !== undefined && { minimum }),
    ...(format === undefined && maximum !== undefined && { maximum }),
    ...(loose && { type: [rest.type, 'string'] }),
    ...((pattern ?? values) && { anyOf: [{ pattern, enum: values }, textWithReference] }),
    ...(properties && { properties: all(properties) }),
    ...(patternProperties && {
      patternProperties: all(patternProperties),
      additionalProperties: false
    }),
    ...(items && { items: forEditors(items, definitions) }),
    ...(anyOf && { anyOf: anyOf.map(branch => forEditors(branch, definitions)) }),
    ...(needed.length > 0 && { required: needed })
  }
}

function configurationPage(): string {
  const parts = files.map(([, schema]) =>
    [`## \`${schema.title}\``, '', schema.description ?? '', '', ...section(schema, '')].join('\n')
  )
  return `# Configuration

<!-- Written by \`console-gateway reference\` from the schemas in src/config. Do not edit. -->

A config folder contains \`gateway.yaml\`, \`routes.yaml\`, \`limits.yaml\` and the users file that \`gateway.yaml\` names. \`console-gateway check --config DIR\` lists all faults of a folder, with file and line.

- An unknown key is a fault. A missing key has its default.
- \`\${NAME}\` is replaced by an environment variable, \`\${NAME:-text}\` by a variable with a default. A secret is always such a reference or \`file:PATH\`. It never stands in the file itself.
- Durations: \`500ms\`, \`30s\`, \`5m\`, \`8h\`, \`7d\`. Sizes: \`512B\`, \`64KiB\`, \`1MiB\`. Relative paths start at the config folder.
- Put the JSON Schema into the first line of each file, as the files in \`config\` do: then editors complete and check keys.
- \`gateway.yaml\` needs a restart to change; the other files [do not](operations.md#changing-the-config-while-it-runs).

${parts.join('\n\n')}

## Error codes

The codes of \`errorCode\` in the envelope. \`envelope.messages\` replaces messages.

| Code | Status | Message |
|---|---|---|
${Object.entries(errorKinds)
  .map(([code, { status, en }]) => `| \`${code}\` | ${status} | ${en} |`)
  .join('\n')}
`
}

function section(schema: Node, prefix: string): string[] {
  return ['| Key | Value | Default | Description |', '|---|---|---|---|', ...rows(schema, prefix)]
}

/** @param above the enclosing schemas: a recursive schema is written once */
function rows(schema: Node, prefix: string, above: readonly Node[] = []): string[] {
  if (above.includes(schema)) return []
  const here = [...above, schema]
  const members = [
    ...Object.entries(schema.properties ?? {}).map(
      ([key, member]) =>
        [
          `${prefix}${key}`,
          member,
          schema.required?.includes(key) === true && member.default === undefined
        ] as const
    ),
    ...Object.values(schema.patternProperties ?? {}).map(
      member => [`${prefix}NAME`, member, false] as const
    )
  ]
  return members.flatMap(([key, member, required]) => [
    row(key, member, required),
    ...inner(member, key, here)
  ])
}

function inner(member: Node, key: string, above: readonly Node[]): string[] {
  if (member.anyOf !== undefined) {
    return member.anyOf.flatMap(branch =>
      isDescribed(branch) ? rows(branch, `${key}.`, above) : []
    )
  }
  if (member.items?.anyOf !== undefined) {
    return member.items.anyOf.flatMap(branch =>
      branch.type === 'object' ? rows(branch, `${key}[].`, above) : []
    )
  }
  if (member.items !== undefined) {
    return nested(member.items) ? rows(member.items, `${key}[].`, above) : []
  }
  return nested(member) ? rows(member, `${key}.`, above) : []
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
      member => member.type === 'object' || member.type === 'array'
    )
  )
}

function row(key: string, member: Node, required: boolean): string {
  const isSection =
    nested(member) ||
    (member.items !== undefined && (member.items.anyOf !== undefined || nested(member.items)))
  const isObject = isSection && member.type === 'object'
  const preset =
    member.default === undefined || isObject ? '' : `\`${JSON.stringify(member.default)}\``
  const examples = member.examples
  const example =
    examples === undefined
      ? ''
      : ` For example ${examples.map(value => `\`${JSON.stringify(value)}\``).join(', ')}.`
  return `| \`${key}\` | ${valueText(member)} | ${required ? '**required**' : cell(preset)} | ${cell((member.description ?? '') + example)} |`
}

function valueText(member: Node): string {
  if (member.expected !== undefined) {
    return cell([member.expected, ...boundsInWords(member)].join(', '))
  }
  if (member.const !== undefined) return `\`${JSON.stringify(member.const)}\``
  if (member.type === 'integer') return wholeNumberText(member)
  if (member.type === 'boolean') return 'true or false'
  if (member.type === 'array') return listText(member)
  if (member.type === 'object') return 'a mapping'
  if (isAnything(member)) return 'any value'
  return 'a text'
}

function listText({ maxItems }: Node): string {
  return maxItems === undefined ? 'a list' : `a list, at most ${maxItems} items`
}

function wholeNumberText({ minimum = 0, maximum }: Node): string {
  if (maximum !== undefined) return `a whole number, ${minimum} to ${maximum}`
  return minimum === 0 ? 'a whole number' : `a whole number, at least ${minimum}`
}

function cell(text: string) {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ')
}
