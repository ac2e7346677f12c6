/** The public interface as TypeScript declarations, from config alone. */
import { createHash } from 'node:crypto'
import type { JsonSchema } from '../json-schema/closed-schema.ts'
import type { Config } from '../config/schema/config.ts'
import { successSchema } from './envelope-schemas.ts'
import { describe } from './describe.ts'
import { envelopeName, type Operation, reference } from './operations.ts'
import { comment, literal, typeName, typeText } from './type-text.ts'

export function typeDeclarations(config: Config): string {
  const {
    gateway: {
      envelope,
      envelope: { dialect: usual }
    }
  } = config
  const { operations, schemas } = describe(config)
  const dialects = new Set([usual, ...operations.map(({ dialect }) => dialect)])
  const body = [
    ...Array.from(dialects, dialect =>
      declaration(
        `${envelopeName('Success', dialect, usual)}<T>`,
        successSchema({ ...envelope, dialect }, reference('T'))
      )
    ),
    ...Object.entries(schemas).map(([name, schema]) =>
      declaration(typeName(`#/components/schemas/${name}`), schema)
    ),
    callsText(operations, usual)
  ].join('\n\n')
  return `/**
 * The endpoints of the console, written by \`console-gateway types\` from the gateway's config. Do not edit.
 * Version ${createHash('sha256').update(body).digest('hex').slice(0, 12)}, which changes with the content.
 */

${body}

/** Any JSON: the config does not describe it. */
export type Json = string | number | boolean | null | Json[] | { [name: string]: Json }

/** A success or a failure, whatever the HTTP status is. */
export type Answer<C extends keyof Calls> = AsJson<Calls[C]['answer']> | Calls[C]['failure']

/** \`unknown\` becomes any JSON: in a union it would hide the failure. */
type AsJson<T> = unknown extends T ? Json : T
`
}

function declaration(name: string, schema: JsonSchema): string {
  const { description } = schema
  const said = typeof description === 'string' ? `${comment(description, '')}\n` : ''
  const text = typeText(schema)
  if (/^\{\n[^]*\}$/.test(text) && !/^\}.*[&|]/m.test(text)) {
    return `${said}export interface ${name} ${text}`
  }
  const isLong = text.length > 120 && !text.includes('\n')
  return `${said}export type ${name} =${
    isLong
      ? branchesOf(text)
          .map(each => `\n  | ${each}`)
          .join('')
      : ` ${text}`
  }`
}

/** The branches of a union; a bar within a literal separates none. */
function branchesOf(text: string): string[] {
  return (text.match(/(?:'(?:[^'\\]|\\.)*'|[^'|])+/g) ?? []).map(branch => branch.trim())
}

function callsText(operations: readonly Operation[], usual: Operation['dialect']): string {
  const line = ({
    method,
    path,
    isAlias,
    name,
    summary,
    access,
    request,
    answer,
    wrapped,
    dialect
  }: Operation) => {
    const alias = isAlias ? ` (an alias of ${name})` : ''
    const description = `${summary}${alias}. ${accessText(access)}`
    const members = [
      ...(request === undefined ? [] : [`request: ${typeText(request, '    ')}`]),
      `answer: ${wrapped === undefined ? typeText(answer, '    ') : wrappedText(wrapped, envelopeName('Success', dialect, usual))}`,
      `failure: ${envelopeName('Failure', dialect, usual)}`
    ]
    return `  ${comment(description, '  ')}\n  ${literal(`${method} ${path}`)}: {\n${members.map(member => `    ${member}`).join('\n')}\n  }`
  }
  return `/** Every call, by method and path; \`*\` matches every path below. */\nexport interface Calls {\n${operations.map(line).join('\n')}\n}`
}

function accessText(access: Operation['access']): string {
  if (access === 'public') return 'For anyone.'
  if (access === 'session') return 'Signed in.'
  return `Signed in, as ${access.roles.join(' or ')}.`
}

function wrappedText(
  { data, beside }: NonNullable<Operation['wrapped']>,
  envelope: string
): string {
  const besideText = beside === undefined ? '' : ` & ${typeText(beside, '    ')}`
  return `${envelope}<${typeText(data, '    ')}>${besideText}`
}
