/** JSON Schema as TypeScript; what has no counterpart there is `unknown`. */
import { pascal } from './contract-components.ts'
import { isRecord, type JsonSchema } from '../json-schema/closed-schema.ts'

/** @returns the type's text; lines after the first are indented by `indent` */
export function typeText(schema: unknown, indent = ''): string {
  if (!isRecord(schema)) return schema === false ? 'never' : 'unknown'
  const parts = [
    ...(typeof schema['$ref'] === 'string' ? [typeName(schema['$ref'])] : []),
    ...unionOf(schema['anyOf'], indent),
    ...unionOf(schema['oneOf'], indent),
    ...(Array.isArray(schema['allOf']) ? schema['allOf'].map(each => typeText(each, indent)) : []),
    ...ownTypes(schema, indent)
  ]
  const [only = 'unknown', ...more] = new Set(parts.filter(part => part !== 'unknown'))
  return more.length === 0 ? only : [only, ...more].map(grouped).join(' & ')
}

/** `#/components/schemas/NoticesData/$defs/notice-item` → `NoticesDataNoticeItem`. */
export function typeName(reference: string): string {
  const steps = reference
    .replace(/^#\/(components\/schemas\/)?/, '')
    .split('/')
    .filter(step => step !== '$defs' && step !== 'definitions')
  return steps
    .map(step => pascal(decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~')))
    .join('')
}

function grouped(text: string) {
  return / [|&] /.test(text) ? `(${text})` : text
}
const union = (texts: readonly string[]) =>
  texts.includes('unknown') ? 'unknown' : [...new Set(texts)].join(' | ')

function unionOf(branches: unknown, indent: string): string[] {
  return Array.isArray(branches) ? [union(branches.map(branch => typeText(branch, indent)))] : []
}

/** The types of the schema itself, without references and combinations. */
function ownTypes(schema: JsonSchema, indent: string): string[] {
  if (Object.hasOwn(schema, 'const')) return [literal(schema['const'])]
  if (Array.isArray(schema['enum'])) return [union(schema['enum'].map(literal))]
  const types = Array.isArray(schema['type'])
    ? schema['type']
    : [schema['type'] ?? guessedType(schema)]
  return [union(types.map(type => ofType(type, schema, indent)))]
}

/** The type of a schema without `type`. */
function guessedType({ properties, items }: JsonSchema): 'object' | 'array' | undefined {
  if (isRecord(properties)) return 'object'
  return items === undefined ? undefined : 'array'
}

/** A literal type, with single quotes as in the code of consoles. */
export function literal(value: unknown): string {
  if (typeof value === 'string') {
    return `'${JSON.stringify(value).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`
  }
  return typeof value === 'object' && value !== null ? 'unknown' : JSON.stringify(value)
}

function ofType(type: unknown, schema: JsonSchema, indent: string): string {
  switch (type) {
    case 'string':
    case 'boolean':
    case 'null':
      return type
    case 'number':
    case 'integer':
      return 'number'
    case 'array':
      return arrayText(schema, indent)
    case 'object':
      return objectText(schema, indent)
    default:
      return 'unknown'
  }
}

function arrayText({ items, prefixItems, minItems = 0 }: JsonSchema, indent: string): string {
  if (!Array.isArray(prefixItems)) {
    const item = typeText(items, indent)
    return /^\w+$/.test(item) ? `${item}[]` : `Array<${item}>`
  }
  const first = prefixItems.map(
    (item, index) => `${grouped(typeText(item, indent))}${index < Number(minItems) ? '' : '?'}`
  )
  return `[${[...first, ...(isRecord(items) ? [`...${grouped(typeText(items, indent))}[]`] : [])].join(', ')}]`
}

function objectText(
  { properties, required, additionalProperties, patternProperties }: JsonSchema,
  indent: string
): string {
  const inner = `${indent}  `
  const needed = new Set(Array.isArray(required) ? required : [])
  const members = Object.entries(isRecord(properties) ? properties : {}).map(([name, member]) => {
    const { description } = isRecord(member) ? member : {}
    const said = typeof description === 'string' ? `${comment(description, inner)}\n${inner}` : ''
    return `${said}${/^[A-Za-z_$][\w$]*$/.test(name) ? name : literal(name)}${needed.has(name) ? '' : '?'}: ${typeText(member, inner)}`
  })
  const others = isRecord(additionalProperties)
    ? [additionalProperties]
    : Object.values(isRecord(patternProperties) ? patternProperties : {})
  // No index beside named members: it would have to match all their types.
  if (members.length === 0) {
    return others.length > 0
      ? `Record<string, ${union(others.map(other => typeText(other, indent)))}>`
      : 'Record<string, unknown>'
  }
  return `{\n${members.map(member => `${inner}${member}`).join('\n')}\n${indent}}`
}

/** @returns without the first line's indent */
export function comment(text: string, indent: string): string {
  const lines = text.replaceAll('*/', '* /').split('\n')
  return lines.length === 1
    ? `/** ${lines[0] ?? ''} */`
    : `/**\n${lines.map(line => `${indent} * ${line}`.trimEnd()).join('\n')}\n${indent} */`
}
