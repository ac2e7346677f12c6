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
