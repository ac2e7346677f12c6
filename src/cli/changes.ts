/** Compares the JSON before and after a step of a shape, for `explain`. */
import { isRecord } from '../json/values.ts'

const maxLines = 12
const maxLength = 60

/** `+ path: value`, `- path`, `~ path: old → new`; the first lines, and the number of the others. */
export function changeLines(before: unknown, after: unknown): string[] {
  const lines = linesOf(before, after, '')
  if (lines.length === 0) return ['nothing changed']
  const more = lines.length > maxLines ? [`… and ${lines.length - maxLines} more`] : []
  return [...lines.slice(0, maxLines), ...more]
}

function linesOf(before: unknown, after: unknown, path: string): string[] {
  if (JSON.stringify(before) === JSON.stringify(after)) return []
  const [old, now] = [membersOf(before), membersOf(after)]
  const isSameKind = Array.isArray(before) === Array.isArray(after)
  const isKept = path !== '' || Object.keys(old ?? {}).some(name => Object.hasOwn(now ?? {}, name))
  if (old === undefined || now === undefined || !isSameKind || !isKept) {
    return [`~ ${path === '' ? '(all)' : path}: ${brief(before)} → ${brief(after)}`]
  }
  return [...new Set([...Object.keys(old), ...Object.keys(now)])].flatMap(name => {
    const inner = path === '' ? name : `${path}.${name}`
    if (!Object.hasOwn(now, name)) return [`- ${inner}`]
    if (!Object.hasOwn(old, name)) return [`+ ${inner}: ${brief(now[name])}`]
    return linesOf(old[name], now[name], inner)
  })
}

/** Of an object, or of a list by position. */
function membersOf(value: unknown): Readonly<Record<string, unknown>> | undefined {
  return isRecord(value) || Array.isArray(value) ? Object(value) : undefined
}

function brief(value: unknown): string {
  const written = (JSON.stringify(value) as string | undefined) ?? 'nothing'
  return written.length > maxLength ? `${written.slice(0, maxLength - 3)}…` : written
}
