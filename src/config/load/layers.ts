/** Merges presets and a file of the folder, and finds for each key the file where it stands. */
import type { Fault } from '../schema/faults.ts'
import { isAnything, isObject, memberSchema, type Node, type Path } from '../schema/visit.ts'
import type { ConfigDocument } from './document.ts'

/** The part of a document that stands for one config file: all of it, or a member of a preset. */
export interface Layer {
  readonly document: ConfigDocument
  /** Where the part stands in the document. */
  readonly prefix: Path
}

/** One config file, and what it builds on. */
export interface Layers {
  /** The file of the folder, which wins. */
  readonly file: Layer
  /** The later ones win. */
  readonly presets: readonly Layer[]
}

/** Where a key stands. */
export interface Place {
  readonly file: string
  /** Undefined in a file of the folder. */
  readonly preset: string | undefined
  readonly line: number
}

/** A file of the config folder. */
export function ownLayer(document: ConfigDocument): Layer {
  return { document, prefix: [] }
}

type Mapping = Record<string, unknown>

export interface MergedFile {
  readonly value: Mapping
  /** The names of the files that it comes from. */
  readonly files: readonly string[]
  readonly fault: (path: Path, message: string, severity?: Fault['severity']) => Fault
  /** The line of a path in the folder's own file; undefined when it is not there. */
  readonly lineOf: (path: Path) => number | undefined
  /** Undefined for a default. */
  readonly placeOf: (path: Path) => Place | undefined
}

/**
 * Mappings merge key by key, everything else is replaced; only items of `login.sources`
 * inherit from the item of the same name. `null` removes a key.
 */
export function mergeLayers(schema: Node, { file, presets }: Layers): MergedFile {
  let value: Mapping = {}
  for (const layer of [...presets, file]) {
    value = mergeMappings(schema, value, valueOf(layer), { layer, path: [] })
  }
  const names = sourcesOf(value).map(nameOf)
  const ownPlaces = new LayerPlaces(file, names)
  const places = [ownPlaces, ...presets.map(layer => new LayerPlaces(layer, names)).toReversed()]
  const placesOf = (path: Path) => places.find(place => place.lineOf(path) !== undefined)
  return {
    value,
    files: places.map(({ layer }) => layer.document.file),
    lineOf: path => ownPlaces.lineOf(path),
    placeOf: path => placesOf(path)?.placeOf(path),
    // A key that stands nowhere is missing in the file of the folder.
    fault: (path, message, severity = 'fault') =>
      (placesOf(path) ?? ownPlaces).fault(path, message, severity)
  }
}

function valueOf({ document, prefix }: Layer): Mapping {
  const [member] = prefix
  const value = member === undefined ? document.value : document.value[member]
  return isObject(value) ? value : {}
}

interface MergedPlace {
  readonly layer: Layer
  readonly path: Path
}

function mergeMappings(
  schema: Node | undefined,
  base: Mapping,
  over: Mapping,
  { layer, path }: MergedPlace
): Mapping {
  const merged = new Map(Object.entries(base))
  for (const [key, value] of Object.entries(over)) {
    const member = schema === undefined ? undefined : memberOf(schema, key)
    const place = { layer, path: [...path, key] }
    if (!merged.has(key)) merged.set(key, value)
    else if (value !== null || (member !== undefined && isAnything(member))) {
      merged.set(key, mergeValues(member, merged.get(key), value, place))
    } else if (layer.document.isWrittenNull([...layer.prefix, ...place.path])) merged.delete(key)
  }
  return Object.fromEntries(merged)
}

function mergeValues(
  schema: Node | undefined,
  base: unknown,
  over: unknown,
  { layer, path }: MergedPlace
): unknown {
  if (isObject(base) && isObject(over)) return mergeMappings(schema, base, over, { layer, path })
  if (!Array.isArray(base) || !Array.isArray(over) || !isSources(path)) return over
  return over.map((item: unknown, index) => {
    const inherited: unknown = base.find(other => isSameSource(other, item))
    if (!isObject(inherited) || !isObject(item)) return item
    return mergeMappings(schema?.items, inherited, item, { layer, path: [...path, index] })
  })
}

/** The schema of a member, also in one of the branches of a union. */
function memberOf(schema: Node, key: string): Node | undefined {
  if (schema.anyOf === undefined) return memberSchema(schema, key)
  for (const branch of schema.anyOf) {
    const member = memberOf(branch, key)
    if (member !== undefined) return member
  }
  return undefined
}

function isSources([first, second, ...others]: Path): boolean {
  return first === 'login' && second === 'sources' && others.length === 0
}

function sourcesOf(gateway: Mapping): readonly unknown[] {
  const { login } = gateway
  return isObject(login) && Array.isArray(login['sources']) ? login['sources'] : []
}

function nameOf(source: unknown): unknown {
  return isObject(source) ? source['name'] : undefined
}

function isSameSource(base: unknown, over: unknown): boolean {
  if (!isObject(base) || !isObject(over)) return false
  const { name, kind = base['kind'] } = over
  return typeof name === 'string' && name === base['name'] && kind === base['kind']
}

/** Where keys of the merged file stand in the document of one layer. */
class LayerPlaces {
  readonly layer: Layer
  readonly #mergedNames: readonly unknown[]
  readonly #ownNames: readonly unknown[]

  constructor(layer: Layer, mergedNames: readonly unknown[]) {
    this.layer = layer
    this.#mergedNames = mergedNames
    this.#ownNames = sourcesOf(valueOf(layer)).map(nameOf)
  }

  lineOf(path: Path): number | undefined {
    return this.#linesAlong(path)[path.length - 1]
  }

  placeOf(path: Path): Place {
    const { file, preset } = this.layer.document
    return { file, preset, line: this.lineOf(path) ?? 1 }
  }

  fault(path: Path, message: string, severity: Fault['severity']): Fault {
    const { document } = this.layer
    return {
      file: document.file,
      line: this.#linesAlong(path).at(-1) ?? 1,
      path: path.join('.'),
      message: document.preset === undefined ? message : `preset ${document.preset}: ${message}`,
      severity
    }
  }

  #linesAlong(path: Path): readonly number[] {
    const { document, prefix } = this.layer
    return document.linesAlong([...prefix, ...this.#ownPath(path)]).slice(prefix.length)
  }

  /** Sources of the same name may stand at another place of the preset's list. */
  #ownPath(path: Path): Path {
    const [first, second, index, ...others] = path
    if (this.layer.document.preset === undefined || typeof index !== 'number') return path
    if (!isSources([first ?? '', second ?? ''])) return path
    const ownIndex = this.#ownNames.indexOf(this.#mergedNames[index])
    return ['login', 'sources', ownIndex, ...others]
  }
}
