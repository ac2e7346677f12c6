/** The query for the upstream: the console's, with parameters renamed, set, dropped and paged. */
import type { QueryConfig } from '../config/schema/request-mapping.ts'
import { GatewayError } from '../errors/errors.ts'
import { lenientNames } from './lenient-names.ts'

type Paging = NonNullable<QueryConfig['paging']>

/** A parameter as it stands in the query: `name=value`, still encoded. */
interface Parameter {
  readonly name: string
  readonly written: string
}

/**
 * Parameters that no key of the config names pass byte for byte and keep their order.
 * @returns the query for the upstream, with its `?`, of a query with or without one
 * @throws GatewayError `request.malformed` for a page number or size that is none, or sent twice
 */
export function compileQuery(config: QueryConfig): (query: string) => string {
  const renames = new Map(Object.entries(config.rename ?? {}))
  const fixed = Object.entries(config.set ?? {}).map(([name, value]) => written(name, value))
  const { paging } = config
  const refused = new Set([...(config.drop ?? []), ...namesWritten(config), ...namesPaged(paging)])
  const isSet =
    fixed.length === 0 ? () => false : lenientNames(Object.keys(config.set ?? {})).hasNameOf

  return query => {
    const parameters = parse(query)
    const kept = parameters.flatMap(parameter => {
      const newName = renames.get(parameter.name)
      if (newName !== undefined) {
        return [withoutHidden(encodeURIComponent(newName) + valuePart(parameter), isSet)]
      }
      const isRefused = refused.has(parameter.name) || isSet(parameter.written)
      return isRefused ? [] : [withoutHidden(parameter.written, isSet)]
    })
    const paged = paging === undefined ? [] : pagedParameters(parameters, paging)
    const all = [...kept, ...paged, ...fixed]
    return all.length === 0 ? '' : `?${all.join('&')}`
  }
}

/** Names at the upstream whose values come from here: the client's own value must not join them. */
function namesWritten({ rename = {}, set = {}, paging }: QueryConfig): string[] {
  const { page, offset, size } = paging?.to ?? {}
  const names = [...Object.values(rename), ...Object.keys(set), page, offset, size]
  return names.filter(name => name !== undefined)
}

/** Some back-ends read `a=1;tenant=2`, or `tenant;a=1`, as two: with `%3B` all read one. */
function withoutHidden(pair: string, isSet: (pair: string) => boolean): string {
  return pair.includes(';') && pair.split(';').some(isSet) ? pair.replaceAll(';', '%3B') : pair
}

function namesPaged(paging: Paging | undefined): string[] {
  return [paging?.page, paging?.size].filter(name => name !== undefined)
}

function parse(query: string): Parameter[] {
  const text = query.startsWith('?') ? query.slice(1) : query
  return text
    .split('&')
    .filter(each => each !== '')
    .map(each => ({ name: nameOf(each), written: each }))
}

function nameOf(pair: string): string {
  return decoded(pair.split('=', 1)[0] ?? '')
}

function valuePart({ written: pair }: Parameter): string {
  const mark = pair.indexOf('=')
  return mark < 0 ? '' : pair.slice(mark)
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
    result.push(written(to.offset, offsetOf(page - paging.firstPage, size)))
  }
  if (size !== undefined && to.size !== undefined) result.push(written(to.size, size))
  return result
}

function offsetOf(pagesBefore: number, size: number | undefined): number {
  if (size === undefined) throw malformed('a page number came without a page size')
  return pagesBefore * size
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
  const text = decoded(valuePart(first).slice(1))
  if (text === '') return undefined
  const value = /^\d{1,10}$/.test(text) ? Number(text) : NaN
  if (value >= minimum && value <= maxNumber) return value
  throw malformed(`the parameter ${name} is not a whole number from ${minimum} to ${maxNumber}`)
}

function malformed(reason: string): GatewayError {
  return new GatewayError('request.malformed', { cause: new Error(reason) })
}
