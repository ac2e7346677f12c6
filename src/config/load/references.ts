/** Resolves `${NAME}`, `${NAME:-default}` and `file:PATH`, the values from outside config files. */
import { resolve } from 'node:path'
import { type Node, ownMember, type Path, visit } from '../schema/visit.ts'

export type Environment = Readonly<Record<string, string | undefined>>

const reference = /\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g

const emptyDefault = /^\$\{[A-Za-z_][A-Za-z0-9_]*:-\}$/

/** Replaces a secret that could not be read, so that its absence causes one fault, not three. */
const placeholder = '-'.repeat(32)

interface Context {
  readonly environment: Environment
  /** A relative `file:PATH` starts here. */
  readonly folder: string
  readonly read: (file: string) => string
  readonly report: (path: Path, message: string) => void
}

/** Whether a text can be a secret: one whole reference. */
export function isReference(written: string): boolean {
  return /^(\$\{[A-Za-z_][A-Za-z0-9_]*(:-)?\}|file:.+)$/.test(written)
}

/** Replaces all references in `value`. A secret has to be one; `file:` is for secrets only. */
export function resolveReferences(schema: Node, value: unknown, context: Context): unknown {
  return visit(schema, value, ({ schema: { format }, declared, value: written, path, put }) => {
    if (typeof written !== 'string') return
    const report = (message: string) => context.report(path, message)
    const isSecret = format === 'x-secret'
    if (isSecret && !isReference(written)) {
      put(placeholder)
      return report(
        'a secret never stands in the file itself: ' +
          'write ${NAME} for an environment variable, or file:PATH'
      )
    }
    const filled = fill(written, context.environment, report)
    if (filled === undefined) return put(isSecret ? placeholder : undefined)
    // An empty secret counts as not set, and so does `${NAME:-}` where a text may not be empty.
    const mayBeUnset = isSecret || (declared.minLength === 1 && emptyDefault.test(written))
    if (mayBeUnset && filled === '') return put(undefined)
    if (isSecret && filled.startsWith('file:')) {
      return put(readSecret(resolve(context.folder, filled.slice(5)), context.read, report))
    }
    if (filled !== written) put(valueOf(filled, declared))
  })
}

/** @returns undefined when a variable is not set */
function fill(
  written: string,
  environment: Environment,
  report: (message: string) => void
): string | undefined {
  let isMissing = false
  const filled = written.replace(reference, (_, name: string, fallback: string | undefined) => {
    const variable = ownMember(environment, name)
    if (variable !== undefined && (variable !== '' || fallback === undefined)) return variable
    if (fallback !== undefined) return fallback
    isMissing = true
    report(`the environment variable ${name} is not set`)
    return ''
  })
  return isMissing ? undefined : filled
}

function valueOf(filled: string, declared: Node): unknown {
  return takesNumberOrFlag(declared) ? numberOrFlag(filled) : filled
}

function takesNumberOrFlag({ type, anyOf = [] }: Node): boolean {
  return type === 'integer' || type === 'boolean' || anyOf.some(takesNumberOrFlag)
}

/** Any other text stays a text; the schema check then reports it. */
function numberOrFlag(written: string): unknown {
  const trimmed = written.trim()
  if (/^-?\d+$/.test(trimmed)) return Number(trimmed)
  return ['true', 'false'].includes(trimmed) ? trimmed === 'true' : written
}

function readSecret(
  file: string,
  read: Context['read'],
  report: (message: string) => void
): string {
  try {
    const secret = read(file).trimEnd()
    if (secret !== '') return secret
    report(`the secret's file is empty: ${file}`)
    return placeholder
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code ?? (error as Error).message
    report(`the secret's file cannot be read (${reason}): ${file}`)
    return placeholder
  }
}
