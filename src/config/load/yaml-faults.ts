/** The faults of a YAML text, in words for operators: one fault for each mistake. */
import {
  isNode,
  isScalar,
  visit,
  type Document,
  type LineCounter,
  type Node,
  type Scalar,
  type YAMLError
} from 'yaml'

export interface SyntaxFault {
  /** 1-based. */
  readonly line: number
  readonly message: string
}

/**
 * Of a file, as the library counts them: nested ones multiply. A file of 1 MiB with a use for each
 * of its routes or users stays below.
 */
export const maxAliasCount = 10_000
const maxDuplicates = 10
const maxTags = 10

/** Those of values that JSON has too; a single `!` says "text". */
const plainTags = new Set([
  '!',
  ...['str', 'int', 'float', 'bool', 'null', 'map', 'seq'].map(name => `tag:yaml.org,2002:${name}`)
])

const unquotedReference = 'inside [ ] or { } a reference needs quotes: "${NAME}"'

/** By the library's error codes. For other codes the library's own message is clear enough. */
const messages: Readonly<Record<string, string>> = {
  BAD_INDENT:
    'this line is indented differently from the keys that it stands among. ' +
    'Give all keys of one mapping the same number of spaces.',
  BAD_SCALAR_START: 'a text cannot begin with this character. Put the text in quotes.',
  BLOCK_AS_IMPLICIT_KEY:
    'this line has a second colon. Put a text that contains a colon and a space in quotes.',
  MULTIPLE_DOCS:
    'a second YAML document begins here. Keep one document in a file: remove the line "---".',
  TAB_AS_INDENT: 'a tab stands at the beginning of this line. Indent with spaces.',
  UNEXPECTED_TOKEN:
    'unexpected text. Check the indentation and the quotes of this line and of the line before.'
}

/**
 * The faults of a document that could not be parsed. Errors after the first often follow from it,
 * so only the first is reported; of duplicate keys all, because each is a mistake of its own.
 */
export function syntaxFaults(
  source: string,
  document: Document,
  lines: LineCounter
): SyntaxFault[] {
  const [first] = document.errors
  const duplicates = duplicateKeys(document, lines).slice(0, maxDuplicates)
  if (first === undefined) return duplicates
  const { line } = lines.linePos(first.pos[0])
  return [...duplicates, { line, message: messageOf(first, source) }]
}

function messageOf({ code, message, pos: [at] }: YAMLError, source: string): string {
  // In `[${X}]`, YAML takes the brace as the start of a mapping.
  if (source[at] === '{' && source[at - 1] === '$') return unquotedReference
  return messages[code] ?? `${message}.`
}

/** Linear in the keys of a mapping, where the library compares each with all before it. */
function duplicateKeys(document: Document, lines: LineCounter): SyntaxFault[] {
  const lineOf = (key: Scalar) => lines.linePos(key.range?.[0] ?? 0).line
  const duplicates: Array<{ readonly at: number; readonly fault: SyntaxFault }> = []
  visit(document, {
    Map: (_key, { items }) => {
      const firsts = new Map<string, Scalar>()
      for (const { key } of items) {
        // Merge keys (`<<`) may be several.
        if (!isScalar(key) || typeof key.value === 'symbol') continue
        const name = nameOfKey(key)
        const first = firsts.get(name)
        if (first === undefined) firsts.set(name, key)
        else {
          const message =
            `the key "${name}" stands twice in its mapping, first in line ${lineOf(first)}. ` +
            'Keep one of the two.'
          duplicates.push({ at: key.range?.[0] ?? 0, fault: { line: lineOf(key), message } })
        }
      }
    }
  })
  return duplicates.toSorted((a, b) => a.at - b.at).map(({ fault }) => fault)
}

/**
 * Tags of other values: an ordered mapping, a set or a time would be read as an empty mapping, and
 * `!vault x` or `!include x` as the text x.
 */
export function tagFaults(document: Document, lines: LineCounter): SyntaxFault[] {
  const nodes: Node[] = []
  visit(document, {
    Node: (_key, node) => {
      if (isNode(node) && node.tag !== undefined && !plainTags.has(node.tag)) nodes.push(node)
      return nodes.length === maxTags ? visit.BREAK : undefined
    }
  })
  return nodes.map(({ tag = '', range }) => {
    const name = tag.replace('tag:yaml.org,2002:', '!!')
    const message = `the tag ${name} is not supported: write the value without it`
    return { line: lines.linePos(range?.[0] ?? 0).line, message }
  })
}

/**
 * Keys become texts, so that `1` and `"1"` are the same. YAML itself makes the empty text also of
 * `null`, which means the value null in `map`.
 */
export function nameOfKey({ value, source }: Scalar): string {
  if (typeof value === 'string') return value
  return value === null && source === '' ? '' : String(value)
}

/** The fault of the aliases (`*name`) or merge keys (`<<`) of a document that parses. */
export function aliasFault(error: unknown): string {
  const message = error instanceof Error ? error.message : ''
  const [, name] = /^Unresolved alias.*: (\S+)$/.exec(message) ?? []
  if (name !== undefined) return `the alias *${name} has no anchor: define &${name} above it`
  if (message.startsWith('Merge sources')) {
    return 'the merge key "<<" takes a mapping, or an alias (*name) of one'
  }
  return 'the YAML aliases of this file expand to too much, or one contains itself'
}
