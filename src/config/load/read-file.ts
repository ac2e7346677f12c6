/** One config file: YAML → references resolved → defaults → schema checked → normalised. */
import { relative, resolve } from 'node:path'
import type { Static, TSchema } from 'typebox'
import { isMap, isScalar, isSeq, LineCounter, parseDocument, type Document } from 'yaml'
import { rawNumber } from '../../json/values.ts'
import { type Fault, schemaFaults } from '../schema/faults.ts'
import { isOneOrMany, toBytes, toMilliseconds } from '../schema/primitives.ts'
import { asNode, isObject, type Node, type Path, visit } from '../schema/visit.ts'
import type { Inputs } from './inputs.ts'
import { type Environment, resolveReferences } from './references.ts'
import { aliasFault, syntaxFaults } from './yaml-faults.ts'

export interface LoadedFile<T> {
  readonly value: T
  readonly fault: (path: Path, message: string, severity?: Fault['severity']) => Fault
  /** The line of a path; undefined when it is not in the file, as with a default. */
  readonly lineOf: (path: Path) => number | undefined
}

interface ReadContext {
  readonly environment: Environment
  readonly inputs: Inputs
  readonly faults: Fault[]
  /** Reports an unreadable file at the line of another file that names it: there it is mended. */
  readonly namedBy?: (message: string) => void
}

/** Reads one config file and checks it by itself. */
export function readFile<T extends TSchema>(
  folder: string,
  name: string,
  schema: T,
  context: ReadContext
): LoadedFile<Static<T>> | undefined {
  const { environment, inputs, faults } = context
  const file = resolve(folder, name)
  const source = readSource(file, name, context)
  if (source === undefined) return undefined
  const document = parse(file, source, faults)
  if (document === undefined) return undefined
  const { value, lineOf, fault } = document
  const report = (path: Path, message: string) => {
    faults.push(fault(path, message))
  }
  const node = asNode(schema)
  dropEmptySections(node, value)
  resolveReferences(node, value, { environment, folder, read: inputs.read, report })
  fillDefaults(node, value)
  schemaFaults(node, value, report)
  return { value: normalise(node, value) as Static<T>, fault, lineOf }
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
function parse(
  file: string,
  source: string,
  faults: Fault[]
): LoadedFile<Record<string, unknown>> | undefined {
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
    const message = 'expected a mapping; the file is empty or holds something else'
    faults.push(faultOfFile(file, message))
    return undefined
  }
  return {
    value,
    lineOf: path => linesAlong(document, lines, path)[path.length - 1],
    fault: (path, message, severity = 'fault') => ({
      file: displayName(file),
      line: linesAlong(document, lines, path).at(-1) ?? 1,
      path: path.join('.'),
      message,
      severity
    })
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

/** `server:` with nothing below it is null in YAML, but is meant as "nothing set". */
function dropEmptySections(schema: Node, value: unknown): void {
  visit(schema, value, ({ schema: { properties }, value: mapping }) => {
    if (!isObject(mapping) || properties === undefined) return
    for (const key of Object.keys(mapping)) {
      if (mapping[key] === null && Object.hasOwn(properties, key)) delete mapping[key]
    }
  })
}

function fillDefaults(schema: Node, value: unknown): void {
  visit(schema, value, ({ schema: { properties = {} }, value: current, put }) => {
    if (Array.isArray(current) && current.includes(undefined)) {
      put(current.filter(item => item !== undefined))
    }
    if (!isObject(current)) return
    for (const [key, member] of Object.entries(properties)) {
      if (current[key] === undefined && member.default !== undefined) {
        current[key] = structuredClone(member.default)
      }
    }
  })
}

/** Brings each value to one form: milliseconds, bytes, lists. */
function normalise(schema: Node, value: unknown): unknown {
  return visit(schema, value, ({ schema: at, declared, value: written, put }) => {
    if (at.format === 'x-duration') put(toMilliseconds(String(written)))
    if (at.format === 'x-size') put(toBytes(String(written)))
    if (declared.anyOf?.some(isOneOrMany) === true && !Array.isArray(written)) put([written])
  })
}

/** The lines of the keys and items along a path, up to the first that is not in the file. */
function linesAlong(document: Document, lines: LineCounter, path: Path): number[] {
  const along: number[] = []
  let node: unknown = document.contents
  for (const step of path) {
    // A key may be a number in YAML.
    const pair = isMap(node)
      ? node.items.find(({ key }) => isScalar(key) && String(key.value) === String(step))
      : undefined
    const item = isSeq(node) ? node.items[Number(step)] : undefined
    const { range } = (pair?.key ?? item ?? {}) as { range?: [number, number, number] }
    if (range === undefined) break
    along.push(lines.linePos(range[0]).line)
    node = pair?.value ?? item
  }
  return along
}
