/** Made-up responses with the names and types of real ones. */
import { isRawNumber, isRecord, type Json, put, valueAt } from '../../json/values.ts'
import { isMapping } from './redaction.ts'

interface Kept {
  /** The member with the code of success: its value is part of the protocol, and is kept. */
  readonly code?: string
  /** The member with the number of items. */
  readonly total?: string
}

/** A response with the same members, and values that tell nothing. */
export function exampleOf(body: Json, { code, total }: Kept): Json {
  const example = madeUp(body)
  if (code !== undefined && isRecord(example)) put(example, code, valueAt(body, [code]))
  if (total !== undefined && isRecord(example)) setAt(example, total.split('.'), 1)
  return example
}

function madeUp(value: Json): Json {
  if (Array.isArray(value)) return value.slice(0, 1).map(madeUp)
  if (isRawNumber(value) || typeof value === 'number') return 1
  if (typeof value === 'string') return 'text'
  if (!isRecord(value)) return value === null ? null : true
  if (isMapping(value)) return {}
  const example: Record<string, Json> = {}
  for (const [name, member] of Object.entries(value)) put(example, name, madeUp(member))
  return example
}

function setAt(target: Json, [name, ...rest]: readonly string[], value: Json): void {
  if (!isRecord(target) || name === undefined || !Object.hasOwn(target, name)) return
  if (rest.length === 0) put(target, name, value)
  else setAt(target[name], rest, value)
}
