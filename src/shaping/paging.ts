import type { RoutesConfig } from '../config/schema/routes.ts'
import type { ShapeStep } from '../config/schema/shapes.ts'
import { tryJson } from '../json/body.ts'
import { isRecord, type Json, put, textOf, valueAt } from '../json/values.ts'
import type { Success } from './envelope.ts'
import type { Operation, ShapeUse } from './module.ts'

/** PHP writes an empty list as `{}`, and XML converters write a list of one as its item. */
export function asList(value: Json): readonly Json[] {
  if (Array.isArray(value)) return value
  if (value === null || value === undefined || value === '') return []
  return isRecord(value) && Object.keys(value).length === 0 ? [] : [value]
}

/** Adds the page that the console asked for, which some read again from the response. */
export function echo(
  { page, size }: NonNullable<ShapeStep['echo']>,
  sent: RoutesConfig['paging']
): Operation {
  if (sent === undefined) return value => value
  return (value, use) => {
    if (!isRecord(value)) return value
    const member = memberOf(use)
    const result = { ...value }
    const number = numberOf(member(sent.page))
    const length = sent.size === undefined ? undefined : numberOf(member(sent.size))
    if (number !== undefined) put(result, page, number)
    if (length !== undefined) put(result, size, length)
    return result
  }
}

/** A parameter of the query, or a member of the body where a list is asked for by POST. */
function memberOf({ target, body }: ShapeUse): (name: string) => Json {
  const query = new URLSearchParams(target.split('?', 2)[1] ?? '')
  let members: Json
  return name => {
    const written = query.get(name)
    if (written !== null || body === undefined) return written
    members ??= tryJson(body, {}, Infinity) ?? {}
    return valueAt(members, [name])
  }
}

function numberOf(value: Json): number | undefined {
  const text = textOf(value)
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined
}

function numberIn(path: string | undefined): (value: Json) => number | undefined {
  const steps = path?.split('.')
  return value => steps && numberOf(valueAt(value, steps))
}

export function paging(
  places: NonNullable<ShapeStep['paging']>,
  items: Operation | undefined,
  wrap: Success
): Operation {
  const list = places.list?.split('.') ?? []
  const totalIn = numberIn(places.total)
  const pageIn = numberIn(places.current)
  const lengthIn = numberIn(places.pageSize)
  return (value, use) => {
    const rows = asList(valueAt(value, list))
    const page = pageIn(value)
    const length = lengthIn(value)
    return wrap(items === undefined ? rows : items(rows, use), {
      total: totalIn(value) ?? rows.length,
      ...(page !== undefined && { current: page }),
      ...(length !== undefined && { pageSize: length })
    })
  }
}
