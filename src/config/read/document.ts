/** A YAML file of config before any schema check: its value, and where each key stands. */
import * as yaml from 'yaml'
import { isRecord, type JsonRecord } from '../../json/values.ts'
import { displayName, type Fault, faultOfFile, reasonOf } from '../schema/faults.ts'
import type { Path } from '../schema/node.ts'
import type { Steps } from '../schema/steps.ts'
import { faultOfReading, type Inputs } from './inputs.ts'

interface Place {
  readonly file: string
  readonly preset: string | undefined
  readonly line: number
  /** A key with nothing after it means "nothing set"; `null` or `~` is a value. */
  readonly isEmpty: boolean
}

/** A file or a part of one. An empty member is undefined. */
export interface Layer {
  readonly value: JsonRecord
  readonly file: string
  readonly preset: string | undefined
  readonly placeOf: (path: Path) => Place | undefined
}

/** A mapping from files, of which the later override the former. */
export interface Tree {
  readonly value: JsonRecord
  readonly layers: readonly Layer[]
  /** The file in which a key is missing that stands in none. */
  readonly fileOf: (path: Path) => string
}

interface ReadContext {
  readonly inputs: Inputs
  readonly faults: Fault[]
  /** Reports an unreadable file where another file names it: there it is mended. */
  readonly namedBy?: ((message: string) => void) | undefined
  readonly preset?: string
  /** A JSON Schema: its bounds may be rounded, as the console's numbers are. */
  readonly isJsonSchema?: boolean
}

/** @param name for the message of {@link ReadContext.namedBy} */
export function* documentSteps(
  file: string,
  name: string,
  context: ReadContext
): Steps<Layer | undefined> {
  const { inputs, faults, namedBy, preset } = context
  let source: string
  try {
    source = preset === undefined ? inputs.readDocument(file) : inputs.read(file)
  } catch (error) {
    if (namedBy === undefined || error instanceof RangeError) {
      faults.push(faultOfReading(file, error))
    } else {
      namedBy(`the file "${name}" cannot be read (${reasonOf(error)})`)
    }
    return undefined
  }
  return yield* parse(file, source, context)
}

export const treeOf = (layer: Layer): Tree => ({
  value: layer.value,
  layers: [layer],
  fileOf: () => layer.file
})

export function placeAt({ layers }: Pick<Tree, 'layers'>, path: Path): Place | undefined {
  const places = layers.flatMap(layer => layer.placeOf(path) ?? [])
  return places.findLast(({ isEmpty }) => !isEmpty) ?? places.at(-1)
}

export function faultAt(
  { layers, fileOf }: Tree,
  path: Path,
  message: string,
  severity: Fault['severity'] = 'fault'
): Fault {
  const own = layers.filter(({ preset }) => preset === undefined)
  const above = path.slice(1).map((_, index) => path.slice(0, -1 - index))
  const place =
    placeAt({ layers }, path) ??
    above.map(each => placeAt({ layers: own }, each)).find(each => each !== undefined)
  return {
    file: place?.file ?? fileOf(path),
    line: place?.line ?? 1,
    path: path.join('.'),
    message: place?.preset === undefined ? message : `preset ${place.preset}: ${message}`,
    severity
  }
}

/** A file of 1 MiB with a use for each user stays below. */
export const maxAliasCount = 10_000

/** Of a file that is no config at all the first ones tell enough. */
const maxMistakes = 10

const isEmpty = (node: unknown): boolean =>
  node === null || (yaml.isScalar(node) && (node.value ?? null) === null && !node.source)

function* parse(
  file: string,
  source: string,
  { faults, preset, isJsonSchema = false }: ReadContext
): Steps<Layer | undefined> {
  const lines = new yaml.LineCounter()
  const found: Fault[] = []
  const lineOf = (node: yaml.Node | null) => lines.linePos(node?.range?.[0] ?? 0).line
  const report = (line: number, message: string) => {
    if (found.length < maxMistakes) found.push(faultOfFile(file, message, line))
  }
  const document = yield* yamlSteps(source, lines)
  const [error] = document.errors
  let value: unknown
  if (error !== undefined) report(lines.linePos(error.pos[0]).line, syntaxFault(error, source))
  yield
  try {
    if (error === undefined) checkNodes(document, { report, lineOf, isJsonSchema })
    if (found.length === 0) value = document.toJS({ maxAliasCount })
  } catch (thrown) {
    const { message } = thrown as Error
    const isMerge = message.startsWith('Merge sources')
    const ofMerge = 'the merge key "<<" takes a mapping, or an alias (*name) of one'
    const tooMuch = 'the YAML aliases of this file expand to too much, or one contains itself'
    report(0, isMerge ? ofMerge : tooMuch)
  }
  if (found.length === 0 && !isRecord(value)) {
    report(0, 'expected a mapping, at least {}; the file is empty or holds something else')
  }
  faults.push(...found.toSorted((a, b) => a.line - b.line))
  if (found.length > 0 || !isRecord(value)) return undefined
  const name = displayName(file)
  const placeOf = (path: Path) => {
    const member = memberAt(value, path)
    if (member === undefined) return undefined
    const line = lineOf(nodeOfKey(document.contents, path))
    return { file: name, preset, line, isEmpty: member.value === undefined }
  }
  return { value, file: name, preset, placeOf }
}

/** So many take a millisecond. */
const lexemesInStep = 1000

/** As `parseDocument` of `yaml`, which takes 20 ms in one piece for a file with 200 routes. */
function* yamlSteps(source: string, lines: yaml.LineCounter): Steps<yaml.Document.Parsed> {
  const parser = new yaml.Parser(lines.addNewLine)
  const tokens: yaml.CST.Token[] = []
  lines.addNewLine(0)
  let count = 0
  for (const lexeme of new yaml.Lexer().lex(source)) {
    tokens.push(...parser.next(lexeme))
    if (++count % lexemesInStep === 0) yield
  }
  tokens.push(...parser.end())
  yield
  const composer = new yaml.Composer({
    prettyErrors: false,
    merge: true,
    // The library compares each key with all before it.
    uniqueKeys: false,
    intAsBigInt: true,
    // So that `0123` is the user 0123.
    stringKeys: true
  })
  const [document, second] = composer.compose(tokens, true, source.length)
  yield
  if (second !== undefined) {
    const at = [second.range[0], second.range[1]] as const
    document?.errors.push(new yaml.YAMLParseError([...at], 'MULTIPLE_DOCS', ''))
  }
  return document as yaml.Document.Parsed
}

interface NodesCheck {
  readonly report: (line: number, message: string) => void
  readonly lineOf: (node: yaml.Node) => number
  readonly isJsonSchema: boolean
}

/** Those of values that JSON has too; a single `!` says "text". */
const plainTags = new Set([
  '!',
  ...['str', 'int', 'float', 'bool', 'null', 'map', 'seq'].map(name => `tag:yaml.org,2002:${name}`)
])

/** Reports what JSON does not have; whole numbers and empty members become as readers expect. */
function checkNodes(document: yaml.Document, check: NodesCheck): void {
  const report = (node: yaml.Node, message: string) => check.report(check.lineOf(node), message)
  const anchors = new Map<string, yaml.Node>()
  yaml.visit(document, (_, node, above) => {
    if (yaml.isPair(node)) {
      if (isEmpty(node.value)) node.value = new yaml.Scalar(undefined)
    } else if (yaml.isAlias(node)) {
      const target = anchors.get(node.source)
      if (target && above.includes(target)) throw new RangeError('an alias within its anchor')
      const name = node.source
      if (target === undefined) {
        report(node, `the alias *${name} has no anchor: define &${name} above it`)
      }
    } else if (yaml.isNode(node)) {
      const { anchor, tag = '!' } = node
      if (anchor !== undefined) anchors.set(anchor, node)
      if (!plainTags.has(tag)) {
        const name = tag.replace('tag:yaml.org,2002:', '!!')
        report(node, `the tag ${name} is not supported: write the value without it`)
      }
      if (yaml.isMap(node)) reportTwice(node.items, check)
      if (!yaml.isScalar(node) || typeof node.value !== 'bigint') return
      node.value = Number(node.value)
      if (check.isJsonSchema || Number.isSafeInteger(node.value)) return
      report(node, 'this number is too long to be exact: write it as text, in quotes')
    }
  })
}

const isMerge = ({ key }: yaml.Pair): boolean =>
  yaml.isScalar(key) && key.value === '<<' && key.type === 'PLAIN'

function reportTwice(pairs: readonly yaml.Pair[], { report, lineOf }: NodesCheck): void {
  const firsts = new Map<unknown, yaml.Node>()
  for (const pair of pairs) {
    const { key } = pair
    if (!yaml.isScalar(key) || isMerge(pair)) continue
    const first = firsts.get(key.value)
    firsts.set(key.value, first ?? key)
    if (first === undefined) continue
    report(lineOf(key), `the key "${String(key.value)}" stands in line ${lineOf(first)} too`)
  }
}

/** The node of a key. What an alias or `<<` brings stands where that does. */
function nodeOfKey(root: yaml.Node | null, path: Path): yaml.Node | null {
  let key = root
  let value: unknown = root
  for (const step of path) {
    if (yaml.isSeq(value)) {
      key = value.items[Number(step)] as yaml.Node
      value = key
    } else if (yaml.isMap<yaml.Scalar, yaml.Node>(value)) {
      const { items } = value
      const pair = items.find(each => each.key.value === String(step)) ?? items.find(isMerge)
      key = pair?.key ?? key
      value = pair && !isMerge(pair) && pair.value
    }
  }
  return key
}

function memberAt(root: unknown, path: Path): { readonly value: unknown } | undefined {
  let value = root
  for (const step of path) {
    const isInside = typeof value === 'object' && value !== null && Object.hasOwn(value, step)
    if (!isInside) return undefined
    value = (value as JsonRecord)[step]
  }
  return { value }
}

/** Of the library's errors whose own message is not clear enough. */
const messages: Readonly<Record<string, string>> = {
  BAD_INDENT: 'this line is indented differently from the keys that it stands among.',
  BAD_SCALAR_START: 'a text cannot begin with this character. Put the text in quotes.',
  BLOCK_AS_IMPLICIT_KEY: 'this line has a second colon. Put a text with a colon in quotes.',
  MULTIPLE_DOCS: 'a second YAML document begins here: remove the line "---".',
  NON_STRING_KEY: 'a key is a text.',
  TAB_AS_INDENT: 'a tab stands at the beginning of this line. Indent with spaces.',
  UNEXPECTED_TOKEN: 'unexpected text. Check the indentation and quotes here and one line above.'
}

function syntaxFault({ code, message, pos: [at] }: yaml.YAMLError, source: string): string {
  // In `[${X}]`, YAML takes the brace as the start of a mapping.
  if (source[at] === '{' && source[at - 1] === '$') {
    return 'inside [ ] or { } a reference needs quotes: "${NAME}"'
  }
  // YAML notices it at the next line that begins further left, whose indentation may be right.
  if (message.startsWith('Flow ')) {
    const end = message.at(-1)
    return `a "${end}" is missing before this place, or stands further left than its key.`
  }
  return messages[code] ?? `${message}.`
}
