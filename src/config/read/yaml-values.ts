/** The value of a YAML document, the places of its keys, and the faults of both in words. */
import {
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  type Document,
  type LineCounter,
  type Node,
  type Scalar,
  type YAMLError,
  type YAMLMap
} from 'yaml'

/** Where a key or an item of a list stands. */
export interface Place {
  /** The name of the file for people. */
  readonly file: string
  /** The name of the preset that the file is. */
  readonly preset: string | undefined
  /** 1-based. */
  readonly line: number
  /** Whether `null` or `~` stands there; a key with nothing after it means "nothing set". */
  readonly isNull: boolean
}

type Places = ReadonlyMap<string, Place>

const placesOfMembers = new WeakMap<object, Places>()

/** Where a member of a mapping or list of a file stands. */
export const placesOf = (holder: object): Places => placesOfMembers.get(holder) ?? new Map()

/** Makes a mapping or a list whose members know their places. */
export function withPlaces<T extends object>(holder: T, places: Places): T {
  placesOfMembers.set(holder, places)
  return holder
}

/** More than a file of 1 MiB holds without aliases. */
const maxValues = 1_000_000
/**
 * Of a file; nested ones multiply. A file of 1 MiB with a use for each of its routes or users stays
 * below.
 */
export const maxAliasCount = 10_000
/** Of duplicate keys, of tags and of long numbers together. */
const maxMistakes = 10

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

/** The fault of a text that cannot be parsed. Errors after the first often follow from it. */
export function syntaxFault({ code, message, pos: [at] }: YAMLError, source: string): string {
  // In `[${X}]`, YAML takes the brace as the start of a mapping.
  if (source[at] === '{' && source[at - 1] === '$') return unquotedReference
  return messages[code] ?? `${message}.`
}

/**
 * Keys become texts, so that `1` and `"1"` are the same. YAML itself makes the empty text also of
 * `null`, which means the value null in `map`.
 */
function nameOfKey({ value, source }: Scalar): string {
  if (typeof value === 'string') return value
  return value === null && source === '' ? '' : String(value)
}

/** Thrown for aliases and merge keys that have no value. */
export class AliasError extends Error {}

interface Options {
  readonly lines: LineCounter
  readonly file: string
  readonly preset?: string | undefined
  /** The whole file is a JSON Schema, whose bounds are rounded as the console's numbers are. */
  readonly isJsonSchema: boolean
  readonly report: (line: number, message: string) => void
}

/** @throws AliasError; RangeError for a document that is nested too deeply */
export function valueOfDocument(document: Document, options: Options): unknown {
  const { contents } = document
  return contents === null ? null : new Converter(options).valueOf(contents)
}

class Converter {
  readonly #options: Options
  readonly #anchors = new Map<string, Node>()
  /** The aliased nodes within which the current one stands. */
  readonly #above: Node[] = []
  #values = 0
  #aliases = 0
  #mistakes = 0

  constructor(options: Options) {
    this.#options = options
  }

  /** Copies the value of each alias: a value may be replaced at one place only. */
  valueOf(node: unknown): unknown {
    this.#values += 1
    if (this.#values > maxValues) throw new AliasError()
    if (isAlias(node)) {
      return this.#within(node.source, target => this.valueOf(target))
    }
    if (!isNode(node)) return null
    this.#note(node)
    if (isMap(node)) return this.#mappingOf(node)
    if (isScalar(node)) return this.#scalarOf(node)
    if (!isSeq(node)) return null
    const places = new Map<string, Place>()
    const items = node.items.map((item, index) => {
      places.set(String(index), this.#placeOf(item, item))
      return this.valueOf(item)
    })
    return withPlaces(items, places)
  }

  #mappingOf(node: YAMLMap): object {
    const members = new Map<string, unknown>()
    const places = new Map<string, Place>()
    const firsts = new Map<string, unknown>()
    for (const { key: written, value } of node.items) {
      const key = this.#resolved(written)
      if (isScalar(key) && typeof key.value === 'symbol') {
        this.#mergeInto(members, places, value)
        continue
      }
      const member = isScalar(key) ? nameOfKey(key) : String(key)
      if (isScalar(key)) this.#note(key)
      if (firsts.has(member)) this.#reportTwice(member, firsts.get(member), written)
      else firsts.set(member, written)
      places.set(member, this.#placeOf(written, value))
      members.set(member, this.valueOf(value))
    }
    return withPlaces(Object.fromEntries(members), places)
  }

  /** Own keys of a mapping, and earlier sources, win. */
  #mergeInto(members: Map<string, unknown>, places: Map<string, Place>, value: unknown): void {
    const target = this.#resolved(value)
    const sources = isSeq(target) ? target.items : [value]
    for (const source of sources) {
      if (!isMap(this.#resolved(source))) {
        throw new AliasError('the merge key "<<" takes a mapping, or an alias (*name) of one')
      }
      const merged = this.valueOf(source) as Readonly<Record<string, unknown>>
      for (const [key, place] of placesOf(merged)) {
        if (members.has(key)) continue
        members.set(key, merged[key])
        places.set(key, place)
      }
    }
  }

  #scalarOf(node: Scalar): unknown {
    const { value } = node
    if (typeof value !== 'bigint') return value
    if (!this.#options.isJsonSchema && !Number.isSafeInteger(Number(value))) {
      this.#report(node, 'this number is too long to be exact: write it as text, in quotes')
    }
    return Number(value)
  }

  /** Remembers an anchor, and reports a tag of a value that JSON does not have. */
  #note(node: Node): void {
    const { tag = '!' } = node
    if (!plainTags.has(tag)) {
      const name = tag.replace('tag:yaml.org,2002:', '!!')
      this.#report(node, `the tag ${name} is not supported: write the value without it`)
    }
    const { anchor } = node as { readonly anchor?: string }
    if (anchor !== undefined && this.#above.length === 0) this.#anchors.set(anchor, node)
  }

  #reportTwice(name: string, first: unknown, second: unknown): void {
    const message =
      `the key "${name}" stands twice in its mapping, first in line ${this.#lineOf(first)}. ` +
      'Keep one of the two.'
    this.#report(second, message)
  }

  /** An aliased value is reported where it is written. */
  #report(node: unknown, message: string): void {
    if (this.#above.length > 0 || this.#mistakes === maxMistakes) return
    this.#mistakes += 1
    this.#options.report(this.#lineOf(node), message)
  }

  #within<T>(anchor: string, use: (target: Node) => T): T {
    const target = this.#anchored(anchor)
    this.#aliases += 1
    if (this.#aliases > maxAliasCount || this.#above.includes(target)) throw new AliasError()
    this.#above.push(target)
    const value = use(target)
    this.#above.pop()
    return value
  }

  #resolved(node: unknown): unknown {
    return isAlias(node) ? this.#anchored(node.source) : node
  }

  #anchored(anchor: string): Node {
    const target = this.#anchors.get(anchor)
    if (target !== undefined) return target
    throw new AliasError(`the alias *${anchor} has no anchor: define &${anchor} above it`)
  }

  #placeOf(at: unknown, value: unknown): Place {
    const { file, preset } = this.#options
    const target = this.#resolved(value)
    const isNull = isScalar(target) && target.value === null && target.source !== ''
    return { file, preset, line: this.#lineOf(at), isNull }
  }

  #lineOf(node: unknown): number {
    const { range } = (node ?? {}) as { readonly range?: readonly [number, ...number[]] | null }
    return this.#options.lines.linePos(range?.[0] ?? 0).line
  }
}
