/** A YAML file of config before any schema check: its value, and where each key stands. */
import { relative } from 'node:path'
import { isMap, isScalar, isSeq, LineCounter, parseDocument, type Document } from 'yaml'
import { rawNumber } from '../../json/values.ts'
import type { Fault } from '../schema/faults.ts'
import { isObject, type Path } from '../schema/visit.ts'
import type { Inputs } from './inputs.ts'
import { aliasFault, syntaxFaults } from './yaml-faults.ts'

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
}

/** @param name for the message of {@link ReadContext.namedBy} */
export function readDocument(
  file: string,
  name: string,
  context: ReadContext
): ConfigDocument | undefined {
  const source = readSource(file, name, context)
  return source === undefined ? undefined : parse(file, source, context.faults)
}

/** Relative to the current folder when below it; absolute otherwise. */
function displayName(file: string): string {
  const fromHere = relative(process.cwd(), file)
  return fromHere.startsWith('..') ? file : fromHere
}

function faultOfFile(file: string, message: string, line = 0): Fault {
  return { file: displayName(file), line, path: '', message, severity: 'fault' }
}

function readSource(
  file: string,
  name: string,
  { inputs, faults, namedBy }: ReadContext
): string | undefined {
  try {
    return inputs.read(file)
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code ?? 'unknown reason'
    if (error instanceof RangeError) faults.push(faultOfFile(file, error.message))
    else if (namedBy === undefined) {
      faults.push(faultOfFile(file, `the file cannot be read (${reason})`))
    } else namedBy(`the file "${name}" cannot be read (${reason})`)
    return undefined
  }
}

/** The value of a YAML text, before any schema check. */
function parse(file: string, source: string, faults: Fault[]): ConfigDocument | undefined {
  const lines = new LineCounter()
  const document = parseDocument(source, {
    lineCounter: lines,
    prettyErrors: false,
    merge: true,
    intAsBigInt: true
  })
  for (const { line, message } of syntaxFaults(source, document, lines)) {
    faults.push(faultOfFile(file, message, line))
  }
  if (document.errors.length > 0) return undefined
  let value: unknown
  try {
    value = unshared(document.toJS({ maxAliasCount: 50 }), [])
  } catch (error) {
    faults.push(faultOfFile(file, aliasFault(error)))
    return undefined
  }
  if (!isObject(value)) {
    const message = 'expected a mapping, at least {}; the file is empty or holds something else'
    faults.push(faultOfFile(file, message))
    return undefined
  }
  const nodesAlong = (path: Path) => keysAndItemsAlong(document, path)
  return {
    value,
    file: displayName(file),
    linesAlong: path => nodesAlong(path).map(({ at }) => lines.linePos(at).line),
    isWrittenNull: path => {
      const nodes = nodesAlong(path)
      const last = nodes.length === path.length ? nodes.at(-1)?.value : undefined
      return isScalar(last) && last.value === null && last.source !== ''
    }
  }
}

/**
 * Copies the value of each alias, because YAML gives the same object at each place: a default put
 * into one would appear in all. Examples are responses, whose ids keep their digits.
 */
function unshared(value: unknown, above: readonly unknown[], isExample = false): unknown {
  if (typeof value === 'bigint') return isExample ? exactNumber(value) : Number(value)
  if (typeof value !== 'object' || value === null) return value
  if (above.includes(value)) throw new Error('an alias holds itself')
  const here = [...above, value]
  if (Array.isArray(value)) return value.map(item => unshared(item, here, isExample))
  const isInExample = (key: string) => isExample || (above.length === 0 && key === 'examples')
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [key, unshared(member, here, isInExample(key))])
  )
}

function exactNumber(value: bigint): unknown {
  return Number.isSafeInteger(Number(value)) ? Number(value) : rawNumber(String(value))
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
    // A key may be a number in YAML.
    const pair = isMap(node)
      ? node.items.find(({ key }) => isScalar(key) && String(key.value) === String(step))
      : undefined
    const item = isSeq(node) ? node.items[Number(step)] : undefined
    const { range } = (pair?.key ?? item ?? {}) as { range?: [number, number, number] }
    if (range === undefined) break
    node = pair?.value ?? item
    along.push({ at: range[0], value: node })
  }
  return along
}
