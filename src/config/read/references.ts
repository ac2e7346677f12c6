/** Resolves `${NAME}`, `${NAME:-default}` and `file:PATH`. */
import { reasonOf } from '../schema/faults.ts'
import { fileIn } from '../schema/resolved.ts'
import type { Environment, FolderReading } from './inputs.ts'
import { certificateIn } from '../schema/pem.ts'
import { branchOf, type Node, ownMember, pemFormat } from '../schema/node.ts'

export type References = Pick<FolderReading, 'environment' | 'inputs' | 'folder' | 'bases'>

/** Stands for a value with a fault that was reported. */
export const unusable = Symbol('unusable')

const reference = /\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^{}]*))?\}/g

const emptyDefault = /^\$\{[A-Za-z_][A-Za-z0-9_]*:-\}$/

function isReference(written: string): boolean {
  return /^(\$\{[A-Za-z_][A-Za-z0-9_]*(:-)?\}|file:.+)$/.test(written)
}

/** @returns undefined for a value that counts as not set */
export function filledIn(
  schema: Node,
  written: string,
  references: References,
  report: (message: string) => void
): unknown {
  const isNeeded = branchOf(schema, written).format === 'x-secret'
  const isSecret = isNeeded || (schema.format === 'x-maybe-secret' && isReference(written))
  if (isNeeded && !isReference(written)) {
    report('a secret never stands in the file itself: write ${NAME} or file:PATH')
    return unusable
  }
  const filled = fill(written, references.environment, report)
  if (filled === undefined) return unusable
  // An empty secret counts as not set, and so does `${NAME:-}` where a text may not be empty.
  const mayBeUnset = isSecret || (schema.minLength === 1 && emptyDefault.test(written))
  if (mayBeUnset && filled === '') return undefined
  if (isSecret && filled.startsWith('file:')) {
    const file = fileIn(references, filled.slice('file:'.length))
    return secretIn(file, references, report)
  }
  if (schema.format === pemFormat) return pemIn(filled, references, report)
  return filled !== written && takesNumberOrFlag(schema) ? numberOrFlag(filled) : filled
}

function fill(written: string, environment: Environment, report: (message: string) => void) {
  let isMissing = false
  const filled = written.replace(reference, (_, name: string, fallback: string | undefined) => {
    const variable = ownMember(environment, name)
    if (variable !== undefined && (variable !== '' || fallback === undefined)) return variable
    if (fallback !== undefined) return fallback
    isMissing = true
    report(`the environment variable ${name} is not set, also not in .env of the folder`)
    return ''
  })
  // As of shells, or one within another: it would be taken for the text itself.
  if (written.replaceAll(reference, '').includes('${')) {
    report('a reference is ${NAME} or ${NAME:-text}, without another one in it')
    return undefined
  }
  return isMissing ? undefined : filled
}

function takesNumberOrFlag({ type, anyOf = [] }: Node): boolean {
  return type === 'integer' || type === 'boolean' || anyOf.some(takesNumberOrFlag)
}

/** Any other text stays a text; the schema then reports it. */
function numberOrFlag(written: string): unknown {
  const trimmed = written.trim()
  if (/^-?\d+$/.test(trimmed)) return Number(trimmed)
  return ['true', 'false'].includes(trimmed) ? trimmed === 'true' : written
}

function secretIn(file: string, { inputs }: References, report: (message: string) => void) {
  try {
    const secret = inputs.read(file).trimEnd()
    if (secret !== '') return secret
    report(`the secret's file is empty: ${file}`)
  } catch (error) {
    report(`the secret's file cannot be read (${reasonOf(error)}): ${file}`)
  }
  return unusable
}

/** TLS itself takes any text, and then trusts nobody: each connection would fail. */
function pemIn(name: string, references: References, report: (message: string) => void) {
  try {
    // The text around certificates may have any encoding.
    const pem = references.inputs.readBytes(fileIn(references, name)).toString('utf8')
    if (certificateIn(pem) !== undefined) return pem
    report('the file does not begin with a certificate: expected PEM')
  } catch (error) {
    report(`the file "${name}" cannot be read (${reasonOf(error)})`)
  }
  return unusable
}
