/** Responses of a route's upstream for commands: from files, or requested. */
import { readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import type { Config } from '../config/schema/config.ts'
import { hasParameters } from '../config/schema/public-path.ts'
import { routeSettings, upstreamPathOf } from '../config/schema/resolved.ts'
import { firstUrlOf } from '../config/schema/upstream-addresses.ts'
import { createEnvelope, type Envelope } from '../shaping/envelope.ts'
import { GatewayError } from '../errors.ts'
import { parseKeepingDigits } from '../json/digits.ts'
import { fillCurrentUser } from '../shaping/current-user.ts'
import { createExpressions } from '../shaping/expressions.ts'
import { compileShape, isWrapped, type ShapeContext } from '../shaping/shape.ts'
import { CommandError, type Invocation, type Option, UsageError } from './command.ts'

/** The options of commands that request a response from a route's upstream. */
export const liveOptions = {
  live: { type: 'boolean', description: 'request it from the upstream' },
  header: {
    type: 'string',
    value: 'HEADER',
    description: 'a header for --live, such as "authorization: Bearer …"'
  },
  path: {
    type: 'string',
    value: 'PATH',
    description: 'the path at the upstream for --live, if the route has a *'
  }
} as const satisfies Readonly<Record<string, Option>>

interface Target {
  readonly shape?: string
  readonly route?: {
    readonly upstream?: string
    readonly path: string
    readonly rewrite?: string
    readonly parts: object
  }
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
    return { shape: name, dialect }
  }
  return {
    ...(route.shape !== undefined && { shape: route.shape }),
    route,
    dialect
  }
}

export async function readInput(file: string): Promise<string> {
  try {
    return file === '-' ? await text(process.stdin) : readFileSync(file, 'utf8')
  } catch (error) {
    throw new CommandError(
      `${file} cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown reason'}).`
    )
  }
}

/** @throws CommandError with the reason when there is no response */
export async function askLive(
  { routes: { upstreams } }: Config,
  { route }: Target,
  { values: { header, path } }: Invocation
): Promise<{ readonly status: number; readonly body: string }> {
  const upstream = upstreams[route?.upstream ?? '']
  if (route === undefined || upstream === undefined) {
    throw new UsageError('--live needs a route with an upstream.')
  }
  const at = typeof path === 'string' ? path : upstreamPathOf(route)
  if (at.endsWith('*') || hasParameters(at)) {
    throw new UsageError('This route has many paths: choose one with --path.')
  }
  const [, name = '', value = ''] =
    /^([^:\s]+):\s*(.*)$/.exec(typeof header === 'string' ? header : '') ?? []
  const url = firstUrlOf(upstream)
  const request = fetch(url.replace(/\/$/, '') + at, {
    headers: { accept: 'application/json', ...(name !== '' && { [name]: value }) },
    signal: AbortSignal.timeout(upstream.responseTimeout),
    redirect: 'error'
  })
  const response = await request.catch((error: unknown) => {
    throw new CommandError(
      `${url} does not answer: ${error instanceof Error && error.cause instanceof Error ? error.cause.message : String(error)}`
    )
  })
  process.stderr.write(`${response.status} from ${url}\n`)
  return { status: response.status, body: await response.text() }
}

export function parseResponse(source: string): unknown {
  try {
    return parseKeepingDigits(source)
  } catch {
    throw new CommandError('Not valid JSON.')
  }
}

/** Provides the context of compiled shapes outside of a running gateway. */
export async function withShapes<T>(
  {
    routes: { shapes },
    gateway,
    limits: {
      expressions: { timeout, maxSize }
    }
  }: Config,
  { dialect }: Target,
  work: (context: ShapeContext, dataName: Envelope['dataName']) => Promise<T>
): Promise<T> {
  const expressions = createExpressions()
  try {
    const { success, dataName } = createEnvelope({ ...gateway.envelope, dialect })
    const context: ShapeContext = {
      wrap: success,
      shapes,
      evaluate: (expression, value) =>
        expressions.evaluate(expression, value, { timeoutMs: timeout, maxBytes: maxSize })
    }
    return await work(context, dataName)
  } finally {
    await expressions.close()
  }
}

/** `isShaped`: whether the files are responses to the console, not of the upstream. */
type ResponseSource =
  | { readonly files: readonly string[]; readonly isShaped: boolean }
  | { readonly times: number; readonly invocation: Invocation }
  | { readonly bodies: readonly unknown[] }

/** A route's responses as its contract describes them: shaped, without the envelope. */
export async function shapedResponses(
  config: Config,
  name: string,
  from: ResponseSource
): Promise<unknown[]> {
  const target = targetOf(config, name)
  const steps = config.routes.shapes[target.shape ?? ''] ?? []
  const isShaped = 'files' in from && from.isShaped
  if (!isShaped && Object.keys(target.route?.parts ?? {}).length > 0) {
    throw new CommandError(
      `The route "${name}" is made of parts: pass responses to the console by --input and --shaped.`
    )
  }
  return withShapes(config, target, async (context, dataName) => {
    const { refusal, apply } = compileShape(steps, context)
    const shaped = async (body: unknown, which: string): Promise<unknown> => {
      if (isShaped) {
        const isInEnvelope = isWrapped(steps, context.shapes) || name === 'profile'
        return isInEnvelope ? dataOf(body, dataName, which) : body
      }
      const refused = refusal(body)
      if (refused !== undefined) {
        throw new CommandError(`${which} is a failure: ${refused.status}, ${refused.message}`)
      }
      const result = parseKeepingDigits(JSON.stringify(await apply(body)) ?? 'null')
      if (name === 'profile') {
        return fillCurrentUser(result, { id: '', username: '', name: '', roles: [], profile: {} })
      }
      return isWrapped(steps, context.shapes) ? dataOf(result, dataName, which) : result
    }
    const responses: unknown[] = []
    try {
      if ('files' in from) {
        for (const file of from.files) {
          responses.push(await shaped(parseResponse(await readInput(file)), file))
        }
      } else if ('bodies' in from) {
        for (const body of from.bodies) responses.push(await shaped(body, 'The response'))
      } else {
        for (let index = 0; index < from.times; index++) {
          const { status, body } = await askLive(config, target, from.invocation)
          if (status >= 300) {
            throw new CommandError(
              `The upstream answered ${status}: expected a status of 200 to 299.`
            )
          }
          responses.push(await shaped(parseResponse(body), 'The answer'))
        }
      }
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      const { message } = error.cause instanceof Error ? error.cause : error
      throw new CommandError(`${error.code}: ${message}`)
    }
    return responses
  })
}

function dataOf(response: unknown, dataName: Envelope['dataName'], which: string): unknown {
  if (dataName === false) return response
  if (typeof response === 'object' && response !== null && Object.hasOwn(response, dataName)) {
    return (response as Record<string, unknown>)[dataName]
  }
  throw new CommandError(
    `${which} is not a response of the gateway: it has no member "${dataName}".`
  )
}
