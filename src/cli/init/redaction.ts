/** Keeps values of back-ends and people out of everything that `init` prints and writes. */
import { CommandError } from '../command.ts'
import { isRawNumber, isRecord, type Json } from '../../json/values.ts'

/** Shorter texts stand in config, too, such as `ok` and `200`. */
const minSecret = 5
/**
 * Words such as `admin`, `HttpOnly` or `x-access-token` stand in config whether they are somebody's
 * password or not. To replace them would even tell that they are.
 */
const word = /^[\p{L}_-]{1,15}$/u

/** Collects secrets, and refuses texts that contain one. */
export class Redaction {
  /** Passwords and tokens, never in any text, with what each is. */
  readonly #secrets = new Map<string, string>()

  /** @param kind for messages, such as `the password` */
  add(secret: string, kind: string): void {
    if (secret.length >= minSecret && !word.test(secret)) this.#secrets.set(secret, kind)
  }

  /** The text, with each secret replaced by `…`. */
  clean(text: string): string {
    let cleaned = text
    for (const secret of this.#secrets.keys()) cleaned = cleaned.replaceAll(secret, '…')
    return cleaned
  }

  /** @throws CommandError for a text with a secret: with a replaced one a file is not valid */
  assertClean(text: string, where: string): void {
    for (const [secret, kind] of this.#secrets) {
      if (!text.includes(secret)) continue
      throw new CommandError(`${this.clean(where)} would contain ${kind}. Nothing was written.`)
    }
  }
}

/** A name that programs use, not a value such as an e-mail address or an id. */
const memberName = /^[A-Za-z_$@][\w$.:-]{0,63}$/
/** UUIDs, long hexadecimal ids and names with many digits. */
const dataName = /^[0-9a-f]{8}-[0-9a-f-]{27}$|^[0-9a-f]{16,}$|\d{4}/i

export function isMemberName(name: string): boolean {
  return memberName.test(name) && !dataName.test(name)
}

/**
 * Whether the names of an object are data, such as a mapping by user name: odd names, or several
 * objects that all have the same members.
 */
export function isMapping(record: Readonly<Record<string, Json>>): boolean {
  const names = Object.keys(record)
  if (names.some(name => !isMemberName(name))) return true
  const inner = Object.values(record)
  if (inner.length < 3 || !inner.every(isRecord)) return false
  const keys = inner.map(member => Object.keys(member).toSorted().join())
  return keys[0] !== '' && keys.every(each => each === keys[0])
}

/**
 * The names and types of a value, as a tree of texts, without any value: `{ id: number }`,
 * `[{ title: text }]`. Names that are data become `…`.
 */
export function typesOf(value: Json): Json {
  if (Array.isArray(value)) return value.length === 0 ? [] : [mergedTypes(value.map(typesOf))]
  if (isRawNumber(value)) return 'number'
  if (!isRecord(value)) return value === null ? 'null' : scalarType(value)
  if (isMapping(value)) return { '…': mergedTypes(Object.values(value).map(typesOf)) }
  return Object.fromEntries(
    Object.entries(value).map(([name, member]): [string, Json] => [name, typesOf(member)])
  )
}

function scalarType(value: Json): string {
  return typeof value === 'string' ? 'text' : typeof value
}

/** The types of the items of a list: members of all, and `a | b` where they differ. */
function mergedTypes(types: readonly Json[]): Json {
  const [first, ...others] = types
  return others.reduce<Json>((merged, type) => mergeTwo(merged, type), first ?? 'null')
}

function mergeTwo(left: Json, right: Json): Json {
  if (isRecord(left) && isRecord(right)) {
    const names = new Set([...Object.keys(left), ...Object.keys(right)])
    const merged = [...names].map((name): [string, Json] => {
      if (!Object.hasOwn(left, name)) return [name, right[name]]
      if (!Object.hasOwn(right, name)) return [name, left[name]]
      return [name, mergeTwo(left[name], right[name])]
    })
    return Object.fromEntries(merged)
  }
  if (Array.isArray(left) && Array.isArray(right)) {
    const both = [...(left as Json[]), ...(right as Json[])]
    return both.length === 0 ? [] : [mergedTypes(both)]
  }
  // An object says more than null.
  if (left === 'null') return right
  if (right === 'null' || typeof left !== 'string' || typeof right !== 'string') return left
  const kinds = new Set([...left.split(' | '), ...right.split(' | ')])
  return [...kinds].join(' | ')
}

/** A tree of types as lines, two spaces deeper at each level. */
export function typeLines(type: Json, indent = ''): string[] {
  if (Array.isArray(type)) {
    return type.length === 0 ? [`${indent}(empty list)`] : typeLines(type[0], indent)
  }
  if (!isRecord(type)) return [`${indent}${String(type)}`]
  return Object.entries(type).flatMap(([name, member]) => {
    const isList = Array.isArray(member)
    const label = `${indent}${name}${isList ? '[]' : ''}`
    const inner: Json = isList ? (member as Json[])[0] : member
    if (isRecord(inner)) return [label, ...typeLines(inner, `${indent}  `)]
    return [`${label}: ${typeof inner === 'string' ? inner : 'list'}`]
  })
}
