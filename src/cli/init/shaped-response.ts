/** A response as the console gets it: what its contract is about. */
import type { Config } from '../../config/schema/config.ts'
import { parseKeepingDigits } from '../../json/digits.ts'
import type { Json } from '../../json/values.ts'
import { compileShape, isWrapped } from '../../shaping/shape.ts'
import { CommandError } from '../command.ts'
import { shapeContextOf } from '../shape-steps.ts'

/** Shaped by the route, and mostly without the envelope. */
export function shapedResponse(config: Config, name: string, body: unknown): Json {
  const { dataName, ...context } = shapeContextOf(config, name)
  const { shapes } = context
  const steps = shapes[config.routes.routes[name]?.shape ?? ''] ?? []
  const { refusal, apply } = compileShape(steps, context)
  const refused = refusal(body)
  if (refused !== undefined) {
    throw new CommandError(`The response is a failure: ${refused.status}, ${refused.message}`)
  }
  const shaped = apply(body, { target: firstPage(config), route: name })
  const value = parseKeepingDigits(JSON.stringify(shaped) ?? 'null') as Json
  if (!isWrapped(steps, shapes) || dataName === false) return value
  return (value as Record<string, Json>)[dataName] as Json
}

/** The query by which the console asks for the first page of a list. */
function firstPage({ routes: { paging } }: Config): string {
  if (paging === undefined) return ''
  const { page, size, firstPage: first, defaultSize = 10 } = paging
  return `?${page}=${first}${size === undefined ? '' : `&${size}=${defaultSize}`}`
}
