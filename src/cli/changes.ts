/** Compares the JSON before and after a step of a shape, for `console-gateway explain`. */
import { isRecord } from '../json/values.ts'

const maxLines = 12

/** `+ path: value`, `- path`, `~ path: old → new`; the first lines, and the number of the others. */
export function changeLines(before: unknown, after: unknown): string[] {
  const lines = linesOf(before, after, '')
  if (lines.length === 0) return ['nothing changed']
  return [
    ...lines.slice(0, maxLines),
    ...(lines.length > maxLines ? [`… and ${lines.length - maxLines} more`] : [])
  ]
}

function linesOf(before: unknown, after: unknown, path: string): string[] {
  if (JSON.stringify(before) === JSON.stringify(after)) return []
  const at = path === '' ? '(all)' : path
  const both = comparable(before, after)
  if (
    both === undefined ||
    (path === '' && !Object.keys(both[0]).some(name => Object.hasOwn(both[1], name)))
  ) {
    return [`~ ${at}: ${brief(before)} → ${brief(after)}`]
  }
  const [old, now] = both
  return [...new Set([...Object.keys(old), ...Object.keys(now)])].flatMap(name => {
    const inner = path === '' ? name : `${path}.${name}`
    if (!Object.hasOwn(now, name)) return [`- ${inner}`]
    if (!Object.hasOwn(old, name)) return [`+ ${inner}: ${brief(now[name])}`]
    return linesOf(old[name], now[name], inner)
  })
}

/** Both as objects, if their members can be compared one by one. */
function comparable(
  before: unknown,
  after: unknown
): readonly [Record<string, unknown>, Record<string, unknown>] | undefined {
  if (isRecord(before) && isRecord(after)) return [before, after]
  if (Array.isArray(before) && Array.isArray(after)) return [members(before), members(after)]
  return undefined
}

function members(list: readonly unknown[]): Record<string, unknown> {
  return Object.fromEntries(list.entries())
}

function brief(value: unknown): string {
  const written = (JSON.stringify(value) as string | undefined) ?? 'nothing'
  return written.length > 60 ? `${written.slice(0, 57)}…` : written
}
