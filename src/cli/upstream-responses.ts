/** Responses of a route's upstream for commands, shaped: from files, or requested. */
import { readFileSync } from 'node:fs'
import { buffer } from 'node:stream/consumers'
import type { Config } from '../config/schema/config.ts'
import { routeSettings } from '../config/schema/resolved.ts'
import type { LiveTarget } from '../dry-run/live-route.ts'
import { createEnvelope, type Envelope } from '../shaping/envelope.ts'
import type { GatewayError } from '../errors.ts'
import { readJson } from '../json/body.ts'
import { parseKeepingDigits } from '../json/digits.ts'
import type { Json } from '../json/values.ts'
import { compileShape, isWrapped, type ShapeContext } from '../shaping/shape.ts'
import { CommandError, type Io } from './command.ts'

export interface Target {
  readonly name: string
  readonly shape?: string
  /** Undefined for a shape. */
  readonly route: LiveTarget | undefined
  readonly dialect: Config['gateway']['envelope']['dialect']
}

export function targetOf(config: Config, name: string): Target {
  const { routes, endpoints, shapes } = config.routes
  const ownRoute = name === 'profile' ? endpoints.profile : undefined
  const route = Object.hasOwn(routes, name) ? routes[name] : ownRoute
  const { dialect } = routeSettings(config, name, route ?? {})
  if (route === undefined) {
    if (!Object.hasOwn(shapes, name)) {
      throw new CommandError(
        `There is no route and no shape "${name}". Routes: ${Object.keys(routes).join(', ') || 'none'}.`
      )
    }
    return { name, shape: name, route, dialect }
  }
  return {
    name,
    ...(route.shape !== undefined && { shape: route.shape }),
    route,
    dialect
  }
}

/** A response in a file, by the gateway's own reader: it may begin with a byte order mark. */
export async function readInput(file: string, { stdin }: Pick<Io, 'stdin'>): Promise<Json> {
  const place = file === '-' ? 'Standard input' : file
  let bytes: Buffer
  try {
    bytes = file === '-' ? await buffer(stdin) : readFileSync(file)
  } catch (error) {
    const { code = 'unknown reason' } = error as NodeJS.ErrnoException
    throw new CommandError(`${place} cannot be read (${code}).`)
  }
  try {
    return readJson(bytes, {}, Infinity)
  } catch (error) {
    const { cause } = error as GatewayError
    throw new CommandError(`${place}: ${cause instanceof Error ? cause.message : String(error)}.`)
  }
}

/** Provides the context of compiled shapes outside of a running gateway. */
export function shapesOf(
  { routes: { shapes }, gateway }: Config,
  { dialect }: Target
): { readonly context: ShapeContext; readonly envelope: Envelope } {
  const envelope = createEnvelope({ ...gateway.envelope, dialect })
  return { context: { wrap: envelope.success, shapes }, envelope }
}

/** Responses of a route's upstream as its contract describes them: shaped, mostly without the envelope. */
export function shapedResponse(config: Config, name: string, body: unknown): unknown {
  const target = targetOf(config, name)
  const steps = config.routes.shapes[target.shape ?? ''] ?? []
  const { context, envelope } = shapesOf(config, target)
  const { refusal, apply } = compileShape(steps, context)
  const refused = refusal(body)
  if (refused !== undefined) {
    throw new CommandError(`The response is a failure: ${refused.status}, ${refused.message}`)
  }
  const shaped = parseKeepingDigits(JSON.stringify(apply(body)) ?? 'null') as Json
  if (!isWrapped(steps, context.shapes)) return shaped
  return envelope.dataName === false
    ? shaped
    : (shaped as Record<string, unknown>)[envelope.dataName]
}
