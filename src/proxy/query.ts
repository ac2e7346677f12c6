/** The query for the upstream: the console's, with parameters renamed, set, dropped and paged. */
import type { QueryConfig } from '../config/schema/request-mapping.ts'
import { GatewayError } from '../errors/errors.ts'
import { lenientNames } from './token-names.ts'

type Paging = NonNullable<QueryConfig['paging']>

/** A parameter as it stands in the query: `name=value`, still encoded. */
interface Parameter {
  /** Decoded. */
  readonly name: string
  /** With its `=`. */
  readonly value: string
  readonly written: string
}

/**
 * Parameters that no key of the config names pass byte for byte and keep their order.
 * @returns the query for the upstream, with its `?`, of a query with or without one
 * @throws GatewayError `request.malformed` for a page number or size that is none, or sent twice
 */
export function compileQuery({
  rename = {},
  set = {},
  drop = [],
  paging
}: QueryConfig): (query: string) => string {
  const renames = new Map(Object.entries(rename))
  const fixed = Object.entries(set).map(([name, value]) => written(name, value))
  const { page, offset, size } = paging?.to ?? {}
  // Names at the upstream whose values come from here: the client's own value must not join them.
  const ours = [...Object.values(rename), ...Object.keys(set), page, offset, size]
  const refused = new Set([...drop, ...ours, paging?.page, paging?.size])
  const isSet = fixed.length === 0 ? () => false : lenientNames(Object.keys(set)).hasNameOf

  return query => {
    const parameters = parse(query)
    const kept = parameters.flatMap(parameter => {
      const newName = renames.get(parameter.name)
      if (newName !== undefined) {
        return [withoutHidden(encodeURIComponent(newName) + parameter.value, isSet)]
      }
      const isRefused = refused.has(parameter.name) || isSet(parameter.written)
      return isRefused ? [] : [withoutHidden(parameter.written, isSet)]
    })
    const paged = paging === undefined ? [] : pagedParameters(parameters, paging)
    const all = [...kept, ...paged, ...fixed]
    return all.length === 0 ? '' : `?${all.join('&')}`
  }
}

/** Some back-ends read `a=1;tenant=2`, or `tenant;a=1`, as two: with `%3B` all read one. */
function withoutHidden(pair: string, isSet: (pair: string) => boolean): string {
  return pair.includes(';') && pair.split(';').some(isSet) ? pair.replaceAll(';', '%3B') : pair
}

function parse(query: string): Parameter[] {
  const text = query.startsWith('?') ? query.slice(1) : query
  return text
    .split('&')
    .filter(each => each !== '')
    .map(each => {
      const [name = ''] = each.split('=', 1)
      return { name: decoded(name), value: each.slice(name.length), written: each }
    })
}

/** Form encoding (WHATWG URL §5.1); a malformed escape stays as it is. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return text
  }
}

function written(name: string, value: string | number): string {
  return `${encodeURIComponent(name)}=${encodeURIComponent(value)}`
}

function pagedParameters(parameters: readonly Parameter[], paging: Paging): string[] {
  const { to } = paging
  const page = numberOf(parameters, paging.page, paging.firstPage)
  const sent = paging.size === undefined ? undefined : numberOf(parameters, paging.size, 1)
  const size = sent ?? (page === undefined ? undefined : paging.defaultSize)
  const result: string[] = []
  if (page !== undefined && to.page !== undefined) {
    result.push(written(to.page, page - paging.firstPage + to.firstPage))
  }
  if (page !== undefined && to.offset !== undefined) {
    if (size === undefined) throw malformed('a page number came without a page size')
    result.push(written(to.offset, (page - paging.firstPage) * size))
  }
  if (size !== undefined && to.size !== undefined) result.push(written(to.size, size))
  return result
}

/** Bounded: page × size has to stay an exact whole number. */
const maxNumber = 1_000_000_000

function numberOf(
  parameters: readonly Parameter[],
  name: string,
  minimum: number
): number | undefined {
  const [first, second] = parameters.filter(parameter => parameter.name === name)
  if (second !== undefined) throw malformed(`the parameter ${name} came twice`)
  if (first === undefined) return undefined
  const text = decoded(first.value.slice(1))
  if (text === '') return undefined
  const value = /^\d{1,10}$/.test(text) ? Number(text) : NaN
  if (value >= minimum && value <= maxNumber) return value
  throw malformed(`the parameter ${name} is not a whole number from ${minimum} to ${maxNumber}`)
}

function malformed(reason: string): GatewayError {
  return new GatewayError('request.malformed', { cause: new Error(reason) })
}
