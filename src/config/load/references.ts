/** `${NAME}`, `${NAME:-default}` and `file:PATH`: how values reach config from outside the files. */
import { resolve } from 'node:path'
import { type Node, type Path, visit } from '../schema/visit.ts'

export type Environment = Readonly<Record<string, string | undefined>>

const reference = /\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g

/** Stands in for a secret that could not be had, so that its absence is one fault and not three. */
const placeholder = '-'.repeat(32)

interface Context {
  readonly environment: Environment
  /** What a relative `file:PATH` is seen from. */
  readonly folder: string
  readonly read: (file: string) => string
  readonly report: (path: Path, message: string) => void
}

/** Puts in what references stand for, everywhere in `value`. Secrets have to be references; `file:` is theirs alone. */
export function resolveReferences(
  schema: Node,
  value: unknown,
  { environment, folder, read, report }: Context
): unknown {
  return visit(schema, value, (at, found, path, put, declared) => {
    if (typeof found !== 'string') return
    const isSecret = at.format === 'x-secret'
    if (isSecret && !/^(\$\{[A-Za-z_][A-Za-z0-9_]*(:-)?\}|file:.+)$/.test(found)) {
      put(placeholder)
      return report(
        path,
        'a secret never stands in the file itself: write ${NAME} for an environment variable, or file:PATH'
      )
    }
    let missing = false
    const filled = found.replace(reference, (_, name: string, fallback: string | undefined) => {
      const given = environment[name]
      if (given !== undefined && (given !== '' || fallback === undefined)) return given
      if (fallback !== undefined) return fallback
      missing = true
      report(path, `the environment variable ${name} is not set`)
      return ''
    })
    if (missing) return put(isSecret ? placeholder : undefined)
    // Told to be nothing, a secret is not there at all.
    if (isSecret && filled === '') return put(undefined)
    if (isSecret && filled.startsWith('file:'))
      return put(readSecret(resolve(folder, filled.slice(5)), read, path, report))
    if (filled !== found) put(takesNumberOrFlag(declared) ? numberOrFlag(filled) : filled)
  })
}

function takesNumberOrFlag({ type, anyOf = [] }: Node): boolean {
  return type === 'integer' || type === 'boolean' || anyOf.some(takesNumberOrFlag)
}

/** A text that is neither stays one, and the schema then says what was expected. */
function numberOrFlag(written: string): unknown {
  const trimmed = written.trim()
  if (/^-?\d+$/.test(trimmed)) return Number(trimmed)
  return trimmed === 'true' ? true : trimmed === 'false' ? false : written
}

function readSecret(
  file: string,
  read: Context['read'],
  path: Path,
  report: Context['report']
): string {
  try {
    const secret = read(file).trimEnd()
    if (secret !== '') return secret
    report(path, `the secret's file is empty: ${file}`)
    return placeholder
  } catch (error) {
    report(
      path,
      `the secret's file cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown reason'}): ${file}`
    )
    return placeholder
  }
}
