/** Lists in responses: where the rows and the total are, and the names of paging. */
import { isRecord, type Json, textOf, valueAt } from '../../json/values.ts'
import type { BackendResponse } from './client.ts'
import { firstNamed, membersOf } from './paths.ts'

export interface ListPaths {
  /** Empty: the response itself is the list. */
  readonly rows: string
  readonly total?: string
}

export interface Paging {
  readonly page?: string
  readonly offset?: string
  readonly size: string
  readonly firstPage?: 0
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

function rowsOf(body: Json, { rows }: ListPaths): readonly Json[] {
  const value = rows === '' ? body : valueAt(body, rows.split('.'))
  return Array.isArray(value) ? (value as Json[]) : []
}

const sizeNames = [
  'pageSize',
  'page_size',
  'size',
  'limit',
  'per_page',
  'perPage',
  'pagesize',
  'rows',
  'take',
  'pagination[pageSize]',
  'page[size]'
]
const pageNames = [
  'page',
  'pageNum',
  'pageNo',
  'current',
  'pageIndex',
  'page_no',
  'pageNumber',
  'currentPage',
  'pagination[page]',
  'page[number]'
]
const offsetNames = ['offset', 'skip', 'start']

/** GET of the list with these parameters; the rows of a success, as texts. */
type GetRows = (query: Readonly<Record<string, string>>) => Promise<readonly string[] | undefined>

/**
 * Finds the names of paging by calls: with the right name of the size, one row comes; with that of
 * the page, another one.
 * @returns undefined if no name has an effect, or if the list has fewer than two rows
 */
export async function findPaging(getRows: GetRows): Promise<Paging | undefined> {
  const all = await getRows({})
  const [first, second] = all ?? []
  if (first === undefined || second === undefined || first === second) return undefined
  for (const size of sizeNames) {
    const rows = await getRows({ [size]: '1' })
    if (rows?.length !== 1) continue
    const place = await findPlace(getRows, size, [first, second])
    if (place !== undefined) return { ...place, size }
  }
  return undefined
}

async function findPlace(
  getRows: GetRows,
  size: string,
  [first, second]: readonly [string, string]
): Promise<Omit<Paging, 'size'> | undefined> {
  for (const page of pageNames) {
    const [row] = (await getRows({ [size]: '1', [page]: '1' })) ?? []
    if (row === second) return { page, firstPage: 0 }
    if (row !== first) continue
    const [next] = (await getRows({ [size]: '1', [page]: '2' })) ?? []
    if (next === second) return { page }
  }
  for (const offset of offsetNames) {
    const [row] = (await getRows({ [size]: '1', [offset]: '1' })) ?? []
    if (row === second) return { offset }
  }
  return undefined
}

/** Rows as texts, to compare them; never shown. */
export function rowTexts({ body }: BackendResponse, paths: ListPaths): string[] {
  return rowsOf(body, paths).map(row => JSON.stringify(row))
}
