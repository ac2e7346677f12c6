/** Writes YAML with comments: sections of text, each with its reason above it. */
import { stringify } from 'yaml'

/** A value in one line, such as `{ path: code, in: [ 200 ] }`. */
export function flow(value: unknown): string {
  return stringify(value, { collectionStyle: 'flow', lineWidth: 0 })
    .trimEnd()
    .replaceAll('[ ', '[')
    .replaceAll(' ]', ']')
}

const maxFlow = 90

/** `key: value`, in one line where it is short, with a comment above it. */
export function entry(key: string, value: unknown, comment?: string): string[] {
  const head = comment === undefined ? [] : [`# ${comment}`]
  const name = stringify(key, { lineWidth: 0 }).trimEnd()
  const line = `${name}: ${flow(value)}`
  if (typeof value !== 'object' || value === null || line.length <= maxFlow) return [...head, line]
  const inner = Array.isArray(value)
    ? value.map(item => `- ${flow(item)}`)
    : Object.entries(value).flatMap(([member, each]) => entry(member, each))
  return [...head, `${name}:`, ...indent(inner)]
}

export function indent(lines: readonly string[], spaces = 2): string[] {
  return lines.map(line => (line === '' ? '' : ' '.repeat(spaces) + line))
}

/** `key:` with lines below it; nothing without lines. */
export function section(key: string, lines: readonly string[], comment?: string): string[] {
  if (lines.length === 0) return []
  return [...(comment === undefined ? [] : [`# ${comment}`]), `${key}:`, ...indent(lines)]
}

/** A file of sections, with an empty line between them. */
export function file(head: readonly string[], sections: ReadonlyArray<readonly string[]>): string {
  const parts = [head, ...sections].filter(lines => lines.length > 0)
  return `${parts.map(lines => lines.join('\n')).join('\n\n')}\n`
}
