/** Lists in responses: where the rows and the total are. */
import { isRecord, type Json, textOf } from '../../json/values.ts'
import { firstNamed, membersOf } from './paths.ts'

export interface ListPaths {
  /** Empty: the response itself is the list. */
  readonly rows: string
  readonly total?: string
}

const rowsNames = [
  /^(rows|records|list|items|results?|content|data|entries|elements|value)$/i,
  /(list|rows|items|records)$/i
]
const totalNames = [
  /^total(_?(count|elements|items|size|rows?|num|records))?$/i,
  /^(count|item_?count|filter_?count|row_?count)$/i
]

/** The paths of a list; undefined for a response without one. */
export function listPathsOf(body: Json): ListPaths | undefined {
  if (Array.isArray(body)) return { rows: '' }
  const members = membersOf(body)
  const rows =
    firstNamed(members, rowsNames, isRows) ?? members.find(({ value }) => isFilledRows(value))
  if (rows === undefined) return undefined
  const total = firstNamed(members, totalNames, isCount)
  return { rows: rows.path, ...(total !== undefined && { total: total.path }) }
}

function isRows(value: Json): boolean {
  return Array.isArray(value) && value.every(isRecord)
}

function isFilledRows(value: Json): boolean {
  return isRows(value) && (value as Json[]).length > 0
}

function isCount(value: Json): boolean {
  return /^\d{1,15}$/.test(textOf(value) ?? '')
}
