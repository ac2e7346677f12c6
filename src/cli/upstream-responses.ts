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
import { CommandError, type Invocation, type Io } from './command.ts'
import { profileBody, profileSubject, routeSubject } from './contract-subject.ts'
import { hasParts, withLiveRoute } from './live-responses.ts'

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

/** `isShaped`: whether the files are responses to the console, not of the upstream. */
type ResponseSource =
  | { readonly files: readonly string[]; readonly isShaped: boolean; readonly io: Io }
  | { readonly times: number; readonly invocation: Invocation }
  | { readonly bodies: readonly unknown[] }

/** A route's responses as its contract describes them: shaped, and mostly without the envelope. */
export async function shapedResponses(
  config: Config,
  name: string,
  from: ResponseSource
): Promise<unknown[]> {
  const target = targetOf(config, name)
  const steps = config.routes.shapes[target.shape ?? ''] ?? []
  const isShaped = 'files' in from && from.isShaped
  if ('files' in from && !isShaped && target.route !== undefined && hasParts(target.route)) {
    throw new CommandError(
      `The route "${name}" is made of parts: request them by --live, or pass responses to the ` +
        'console by --input and --shaped.'
    )
  }
  const isProfile = name === 'profile'
  const { context, envelope } = shapesOf(config, target)
  const { refusal, apply } = compileShape(steps, context)
  const subjectOf = isProfile
    ? profileSubject(config, envelope)
    : routeSubject(isWrapped(steps, context.shapes), envelope)
  const bodyOf = isProfile ? profileBody(config, envelope) : (value: unknown) => value
  const shaped = (body: unknown, which: string): unknown => {
    if (isShaped) return subjectOf(body, which)
    const refused = refusal(body)
    if (refused !== undefined) {
      throw new CommandError(`${which} is a failure: ${refused.status}, ${refused.message}`)
    }
    const result = parseKeepingDigits(JSON.stringify(apply(body)) ?? 'null')
    return subjectOf(bodyOf(result), which)
  }
  if ('bodies' in from) return from.bodies.map(body => shaped(body, 'The response'))
  const responses: unknown[] = []
  if ('files' in from) {
    for (const file of from.files) responses.push(shaped(await readInput(file, from.io), file))
    return responses
  }
  const { values, io } = from.invocation
  await withLiveRoute(config, target, { values, context, io }, async ask => {
    for (let index = 0; index < from.times; index++) {
      const { whole } = await ask()
      responses.push(shaped(whole, 'The answer'))
    }
  })
  return responses
}
