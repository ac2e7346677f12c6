/** A YAML file of config before any schema check: its value, and where each key stands. */
import { Composer, type CST, type Document, Lexer, LineCounter, Parser, YAMLParseError } from 'yaml'
import { isRecord, type JsonRecord } from '../../json/values.ts'
import { displayName, type Fault, faultOfFile } from '../schema/faults.ts'
import type { Path } from '../schema/node.ts'
import { runSteps, type Steps } from '../schema/steps.ts'
import { type Inputs, NotUtf8Error } from './inputs.ts'
import { AliasError, type Place, placesOf, syntaxFault, valueOfDocument } from './yaml-values.ts'

/** A mapping from files, whose keys know their places. */
export interface Tree {
  readonly value: JsonRecord
  /** The file in which a key is missing that stands in none. */
  readonly fileOf: (path: Path) => string
}

interface ReadContext {
  readonly inputs: Inputs
  readonly faults: Fault[]
  /** Reports an unreadable file at the line of another file that names it: there it is mended. */
  readonly namedBy?: ((message: string) => void) | undefined
  /** The name of the preset that the file is. */
  readonly preset?: string
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
): Steps<Tree | undefined> {
  const source = readSource(file, name, context)
  return source === undefined ? undefined : yield* parse(file, source, context)
}

/** The place of a key; undefined for one that stands in no file. */
export function placeAt({ value }: Pick<Tree, 'value'>, path: Path): Place | undefined {
  const along = placesAlong(value, path)
  return along.length === path.length ? along.at(-1) : undefined
}

/**
 * A fault at the place of a key, or in the mapping where it is missing: in the folder's own file,
 * not in a preset.
 */
export function faultAt(
  { value, fileOf }: Tree,
  path: Path,
  message: string,
  severity: Fault['severity'] = 'fault'
): Fault {
  const along = placesAlong(value, path)
  const isThere = along.length === path.length
  const place = isThere ? along.at(-1) : along.findLast(({ preset }) => preset === undefined)
  return {
    file: place?.file ?? fileOf(path),
    line: place?.line ?? 1,
    path: path.join('.'),
    message: place?.preset === undefined ? message : `preset ${place.preset}: ${message}`,
    severity
  }
}

/** The places along a path, up to the first key that stands in no file. */
function placesAlong(root: JsonRecord, path: Path): Place[] {
  const along: Place[] = []
  let holder: unknown = root
  for (const step of path) {
    if (typeof holder !== 'object' || holder === null) break
    const place = placesOf(holder).get(String(step))
    if (place === undefined) break
    along.push(place)
    holder = (holder as JsonRecord)[step]
  }
  return along
}

function readSource(
  file: string,
  name: string,
  { inputs, faults, namedBy, preset }: ReadContext
): string | undefined {
  try {
    return preset === undefined ? inputs.readDocument(file) : inputs.read(file)
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
  { faults, preset, isJsonSchema = false }: ReadContext
): Steps<Tree | undefined> {
  const lines = new LineCounter()
  const before = faults.length
  const report = (line: number, message: string) => {
    faults.push(faultOfFile(file, message, line))
  }
  const document = yield* yamlSteps(source, lines)
  const [error] = document.errors
  if (error !== undefined) {
    report(lines.linePos(error.pos[0]).line, syntaxFault(error, source))
    return undefined
  }
  yield
  const name = displayName(file)
  let value: unknown
  try {
    value = valueOfDocument(document, { lines, file: name, preset, isJsonSchema, report })
  } catch (thrown) {
    const message = thrown instanceof AliasError ? thrown.message : ''
    const tooMuch = 'the YAML aliases of this file expand to too much, or one contains itself'
    faults.push(faultOfFile(file, message || tooMuch))
    return undefined
  }
  if (faults.length > before) return undefined
  if (isRecord(value)) return { value, fileOf: () => name }
  report(0, 'expected a mapping, at least {}; the file is empty or holds something else')
  return undefined
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
    // The library compares each key with all before it.
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
