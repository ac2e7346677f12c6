/** Operations on lists and their pages. */
import type { RoutesConfig } from '../config/schema/routes.ts'
import type { ShapeStep } from '../config/schema/shapes.ts'
import { copyOf, isRecord, type Json, put, textOf, valueAt } from '../json/values.ts'
import type { Operation, Wrap } from './operation.ts'

/** PHP writes an empty list as `{}`, and XML converters write a list of one as its item. */
export function asList(value: Json): readonly Json[] {
  if (Array.isArray(value)) return value
  if (
    value === null ||
    value === undefined ||
    value === '' ||
    (isRecord(value) && Object.keys(value).length === 0)
  ) {
    return []
  }
  return [value]
}

/** Adds the page that the console asked for, which some read again from the response. */
export function echo(
  { page, size }: NonNullable<ShapeStep['echo']>,
  sent: RoutesConfig['paging']
): Operation {
  if (sent === undefined) return value => value
  const numberIn = (query: URLSearchParams, name: string | undefined) => {
    const text = name === undefined ? null : query.get(name)
    return text !== null && /^\d{1,9}$/.test(text) ? Number(text) : undefined
  }
  return (value, use) => {
    if (!isRecord(value)) return value
    const query = new URLSearchParams(use.target.split('?', 2)[1] ?? '')
    const result = copyOf(value)
    const number = numberIn(query, sent.page)
    const length = numberIn(query, sent.size)
    if (number !== undefined) put(result, page, number)
    if (length !== undefined) put(result, size, length)
    return result
  }
}

export function paging(
  places: NonNullable<ShapeStep['paging']>,
  items: Operation | undefined,
  wrap: Wrap
): Operation {
  const [list, total, current, pageSize] = [
    places.list,
    places.total,
    places.current,
    places.pageSize
  ].map(path => path?.split('.'))
  const numberAt = (value: Json, path: readonly string[] | undefined) => {
    const text = path === undefined ? undefined : textOf(valueAt(value, path))
    return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined
  }
  return (value, use) => {
    const rows = asList(valueAt(value, list ?? []))
    const page = numberAt(value, current)
    const length = numberAt(value, pageSize)
    return wrap(items === undefined ? rows : items(rows, use), {
      total: numberAt(value, total) ?? rows.length,
      ...(page !== undefined && { current: page }),
      ...(length !== undefined && { pageSize: length })
    })
  }
}
