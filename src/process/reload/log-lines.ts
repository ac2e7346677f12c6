/** The log lines of a reload. */
import { describeFault } from '../../config/schema/faults.ts'
import type { Config } from '../../config/schema/config.ts'

const maxInLine = 12

export function inWords(lines: readonly string[]): string {
  return [
    ...lines.slice(0, maxInLine),
    ...(lines.length > maxInLine ? [`and ${lines.length - maxInLine} more`] : [])
  ].join('; ')
}

interface Warner {
  readonly warn: (fields: object, message: string) => void
}

interface RolledBack {
  readonly generation: number
  /** The number of the revision. */
  readonly to: number
  readonly changes: readonly string[]
}

export function logRollback(log: Warner, rollback: RolledBack, filesDiffer: boolean): void {
  const files = filesDiffer
    ? 'the files hold another one, which comes back with their next change, a reload or a restart'
    : 'the files hold it too'
  log.warn(
    { event: 'config.rolled-back', ...rollback },
    `config rolled back to revision ${rollback.to}: ${inWords(rollback.changes)}; ${files}`
  )
}

/** Logs the warnings that the config before did not have. */
export function logNewWarnings(log: Warner, before: Config, { warnings }: Config): void {
  const logged = new Set(before.warnings.map(({ path, message }) => path + message))
  for (const warning of warnings) {
    if (!logged.has(warning.path + warning.message)) {
      log.warn({ config: warning.path }, describeFault(warning))
    }
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
