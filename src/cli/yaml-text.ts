/** Changes of a YAML text that leave all other lines as they are. */
import { isDeepStrictEqual } from 'node:util'
import {
  type Document,
  isMap,
  LineCounter,
  type Pair,
  parseDocument,
  type Range,
  stringify
} from 'yaml'
import { maxAliasCount } from '../config/read/yaml-values.ts'
import { CommandError } from './command.ts'

export function parseYamlText(text: string, lineCounter?: LineCounter): Document.Parsed {
  const options = { merge: true, prettyErrors: false }
  return parseDocument(text, lineCounter === undefined ? options : { ...options, lineCounter })
}

export function valueOf(document: Document.Parsed): unknown {
  return document.toJS({ maxAliasCount })
}

export function rangeOf(node: unknown): Range | undefined {
  return (node as { readonly range?: Range | null } | null | undefined)?.range ?? undefined
}

type Change = (document: Document.Parsed) => void

/**
 * The first of the texts that has the value which `change` makes of the document; where none has,
 * the whole document written anew, with its comments.
 * @throws CommandError where that has another value, such as with shared anchors
 */
export function verifiedText(text: string, spliced: readonly string[], change: Change): string {
  const document = parseYamlText(text)
  const expected = expectedValue(text, change)
  const isRight = (candidate: string): boolean => {
    const parsed = parseYamlText(candidate)
    return parsed.errors.length === 0 && isDeepStrictEqual(valueOf(parsed), expected)
  }
  const right = spliced.find(isRight)
  if (right !== undefined) return right
  change(document)
  const written = document.toString({ lineWidth: 0 })
  if (isRight(written)) return written
  throw new CommandError('The file is written in a way that cannot be changed: change it by hand.')
}

/** The value after a change, made on a copy without anchors, aliases and merged mappings. */
function expectedValue(text: string, change: Change): unknown {
  const plain = stringify(valueOf(parseYamlText(text)), { aliasDuplicateObjects: false })
  const document = parseYamlText(plain)
  change(document)
  return valueOf(document)
}

/** Adds a member at the end of the mapping at a path, in the style of its other members. */
export function addMember(
  text: string,
  path: readonly string[],
  name: string,
  value: unknown
): string {
  const spliced = spliceMember(text, path, { [name]: value })
  return verifiedText(text, spliced === undefined ? [] : [spliced], document => {
    document.setIn([...path, name], document.createNode(value))
    const holder = document.getIn(path)
    if (isMap(holder)) holder.flow = false
  })
}

/** Inserts a member after the last one of a block mapping; undefined for other mappings. */
function spliceMember(text: string, path: readonly string[], member: object): string | undefined {
  const lines = new LineCounter()
  const document = parseYamlText(text, lines)
  const map = path.length === 0 ? document.contents : document.getIn(path, true)
  if (!isMap(map) || map.flow === true) return undefined
  const [first, last] = [map.items[0], map.items.at(-1)] as [Pair?, Pair?]
  const start = rangeOf(first?.key)?.[0]
  const end = Math.max(rangeOf(last?.key)?.[1] ?? 0, rangeOf(last?.value)?.[1] ?? 0)
  if (start === undefined || end === 0) return undefined
  const indent = ' '.repeat(lines.linePos(start).col - 1)
  const eol = text.includes('\r\n') ? '\r\n' : '\n'
  const next = text[end - 1] === '\n' ? end : text.indexOf('\n', end) + 1
  const at = next === 0 ? text.length : next
  const before = text.slice(0, at)
  const added = stringify(member, { lineWidth: 0 }).trimEnd().split('\n')
  const gap = before.endsWith('\n') ? '' : eol
  return before + gap + added.map(line => indent + line + eol).join('') + text.slice(at)
}
