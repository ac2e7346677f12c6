/** A YAML file of config before any schema check: its value, and where each key stands. */
import { relative } from 'node:path'
import {
  Composer,
  type CST,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  Parser,
  visit,
  YAMLParseError
} from 'yaml'
import type { Fault } from '../schema/faults.ts'
import { isObject, type Path } from '../schema/visit.ts'
import { type Inputs, NotUtf8Error } from './inputs.ts'
import { runSteps, type Steps } from '../schema/steps.ts'
import { aliasFault, maxAliasCount, nameOfKey, syntaxFaults, tagFaults } from './yaml-faults.ts'

/** Which keys stand in a file, and where. */
export interface Places {
  /** The name of the file for people. */
  readonly file: string
  /** The lines of the keys along a path, up to the first that is not in the file. */
  readonly linesAlong: (path: Path) => readonly number[]
}

export interface ConfigDocument extends Places {
  readonly value: Record<string, unknown>
  /** The name of the preset that it is. */
  readonly preset?: string
  /** Whether `null` or `~` stands at a path; a key with nothing after it means "nothing set". */
  readonly isWrittenNull: (path: Path) => boolean
}

interface ReadContext {
  readonly inputs: Inputs
  readonly faults: Fault[]
  /** Reports an unreadable file at the line of another file that names it: there it is mended. */
  readonly namedBy?: (message: string) => void
  /** The whole file is a JSON Schema. */
  readonly isJsonSchema?: boolean
}

/** @param name for the message of {@link ReadContext.namedBy} */
export const readDocument = (...args: Parameters<typeof documentSteps>) =>
  runSteps(documentSteps(...args))

export function* documentSteps(
  file: string,
  name: string,
  context: ReadContext
): Steps<ConfigDocument | undefined> {
  const source = readSource(file, name, context)
  return source === undefined ? undefined : yield* parse(file, source, context)
}

/** Relative to the current folder when below it; absolute otherwise. */
function displayName(file: string): string {
  const fromHere = relative(process.cwd(), file)
  return fromHere.startsWith('..') ? file : fromHere
}

/** A fault of a file as a whole, or of a line without a key. */
export function faultOfFile(file: string, message: string, line = 0): Fault {
  return { file: displayName(file), line, path: '', message, severity: 'fault' }
}

function readSource(
  file: string,
  name: string,
  { inputs, faults, namedBy }: ReadContext
): string | undefined {
  try {
    return inputs.readDocument(file)
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code ?? 'unknown reason'
    if (error instanceof RangeError) {
      const line = error instanceof NotUtf8Error ? error.line : 0
      faults.push(faultOfFile(file, error.message, line))
    } else if (namedBy === undefined) {
      faults.push(faultOfFile(file, `the file cannot be read (${reason})`))
    } else namedBy(`the file "${name}" cannot be read (${reason})`)
    return undefined
  }
}

/** The value of a YAML text, before any schema check. */
function* parse(
  file: string,
  source: string,
  { faults, isJsonSchema = false }: ReadContext
): Steps<ConfigDocument | undefined> {
  const lines = new LineCounter()
  const document = yield* yamlSteps(source, lines)
  const syntax = syntaxFaults(source, document, lines)
  const mistakes = syntax.length > 0 ? syntax : tagFaults(document, lines)
  for (const { line, message } of mistakes) faults.push(faultOfFile(file, message, line))
  if (mistakes.length > 0) return undefined
  nameNullKeys(document)
  yield
  const nodesAlong = (path: Path) => keysAndItemsAlong(document, path)
  const linesAlong = (path: Path) => nodesAlong(path).map(({ at }) => lines.linePos(at).line)
  const inexact: Path[] = []
  let value: unknown
  try {
    const standing = { path: [], above: [], inexact, isJsonSchema, copied: { values: 0 } }
    value = unshared(document.toJS({ maxAliasCount }), standing)
  } catch (error) {
    faults.push(faultOfFile(file, aliasFault(error)))
    return undefined
  }
  if (!isObject(value)) {
    const message = 'expected a mapping, at least {}; the file is empty or holds something else'
    faults.push(faultOfFile(file, message))
    return undefined
  }
  for (const path of inexact) {
    const message = 'this number is too long to be exact: write it as text, in quotes'
    faults.push(faultOfFile(file, message, linesAlong(path).at(-1)))
  }
  return {
    value,
    file: displayName(file),
    linesAlong,
    isWrittenNull: path => {
      const nodes = nodesAlong(path)
      const last = nodes.length === path.length ? nodes.at(-1)?.value : undefined
      return isScalar(last) && last.value === null && last.source !== ''
    }
  }
}

/** Of the lexer: so many take a millisecond. */
const lexemesInStep = 1000

/** As `parseDocument` of `yaml`, which takes 20 ms in one piece for a file with 200 routes. */
function* yamlSteps(source: string, lines: LineCounter): Steps<Document.Parsed> {
  const parser = new Parser(lines.addNewLine)
  const tokens: CST.Token[] = []
  lines.addNewLine(0)
  let count = 0
  for (const lexeme of new Lexer().lex(source)) {
    tokens.push(...parser.next(lexeme))
    if (++count % lexemesInStep === 0) yield
  }
  tokens.push(...parser.end())
  yield
  const composer = new Composer({
    prettyErrors: false,
    merge: true,
    // `syntaxFaults` finds those that stand twice.
    uniqueKeys: false,
    intAsBigInt: true
  })
  const [document, second] = composer.compose(tokens, true, source.length)
  yield
  if (second !== undefined) {
    const at = [second.range[0], second.range[1]] as const
    document?.errors.push(new YAMLParseError([...at], 'MULTIPLE_DOCS', ''))
  }
  return document as Document.Parsed
}

/** A key with nothing in it stays the empty text. */
function nameNullKeys(document: Document): void {
  visit(document, {
    Pair: (_index, { key }) => {
      if (isScalar(key) && key.value === null) key.value = nameOfKey(key)
    }
  })
}

interface Standing {
  readonly path: Path
  /** The mappings and lists that hold the value. */
  readonly above: readonly unknown[]
  /** Gets the paths of integers outside contracts that a number would round. */
  readonly inexact: Path[]
  /** Whether the whole document is a contract. */
  readonly isJsonSchema: boolean
  /** How many values of the document have been copied. */
  readonly copied: { values: number }
}

/** More than a file of 1 MiB holds without aliases. */
const maxValues = 1_000_000

/** Within `contract.schema` of a route or of the profile. */
function isInContract([, , key, inner]: Path): boolean {
  return key === 'contract' && inner === 'schema'
}

/**
 * Copies the value of each alias, because YAML gives the same object at each place: a default put
 * into one would appear in all. A contract
 * checks what a console reads, so its bounds are rounded as the console's numbers are.
 */
function unshared(value: unknown, standing: Standing): unknown {
  const { path, above, inexact, isJsonSchema, copied } = standing
  copied.values += 1
  if (copied.values > maxValues) throw new Error('the aliases expand to too many values')
  if (typeof value === 'bigint') {
    const mayRound = isJsonSchema || isInContract(path)
    if (!mayRound && !Number.isSafeInteger(Number(value))) inexact.push(path)
    return Number(value)
  }
  if (typeof value !== 'object' || value === null) return value
  if (above.includes(value)) throw new Error('an alias holds itself')
  const member = (name: string | number, each: unknown) =>
    unshared(each, { ...standing, path: [...path, name], above: [...above, value] })
  if (Array.isArray(value)) return value.map((item, index) => member(index, item))
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, member(key, each)]))
}

/** A key with its value, or an item of a list. */
interface Member {
  /** The offset of its text. */
  readonly at: number
  readonly value: unknown
}

/** The members along a path, up to the first that is not in the file. */
function keysAndItemsAlong(document: Document, path: Path): Member[] {
  const along: Member[] = []
  let node: unknown = document.contents
  for (const step of path) {
    const member = memberOf(document, node, step)
    if (member === undefined) break
    node = member.value
    along.push(member)
  }
  return along
}

/** Also one that a merge key brings: it stands where its mapping is written. */
function memberOf(document: Document, node: unknown, step: string | number): Member | undefined {
  const resolved = (each: unknown) => (isAlias(each) ? each.resolve(document) : each)
  const memberAt = (key: unknown, value: unknown): Member | undefined => {
    const { range } = (key ?? {}) as { range?: [number, number, number] }
    return range && { at: range[0], value: resolved(value) }
  }
  if (isSeq(node)) return memberAt(node.items[Number(step)], node.items[Number(step)])
  if (!isMap(node)) return undefined
  // A key may be a number in YAML.
  const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(step))
  if (pair !== undefined) return memberAt(pair.key, pair.value)
  const merged = node.items
    .filter(({ key }) => isScalar(key) && typeof key.value === 'symbol')
    .map(({ value }) => resolved(value))
    .flatMap(value => (isSeq(value) ? value.items.map(resolved) : [value]))
  for (const mapping of merged) {
    const member = memberOf(document, mapping, step)
    if (member !== undefined) return member
  }
  return undefined
}
