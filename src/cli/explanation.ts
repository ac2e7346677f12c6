import { stringify } from 'yaml'
import type { Config, LoadedConfig } from '../config/schema/config.ts'
import type { Path } from '../config/schema/node.ts'
import { isEndpoint } from '../config/schema/own-endpoints.ts'
import { credentialOf, tokenHeaderOf } from '../config/schema/routes.ts'
import { flatten, type ShapeStep } from '../config/schema/shapes.ts'
import { urlsOf } from '../config/schema/upstreams.ts'
import type { DryResult, UpstreamCall } from '../dry-run/dry-app.ts'
import { toGatewayError } from '../errors/errors.ts'
import { parseKeepingDigits } from '../json/digits.ts'
import { requestSteps, type Step } from '../observability/request-story.ts'
import { printable, printableLines } from '../observability/unprintable.ts'
import type { Identity } from '../session/types.ts'
import { createEnvelope } from '../shaping/envelope.ts'
import { loadModules, reasonOf, type ShapeUse } from '../shaping/module.ts'
import { compileShape } from '../shaping/shape.ts'
import type { Output } from './command.ts'
import { paint, stepLines } from './output.ts'

interface Asked {
  readonly method: string
  readonly target: string
  readonly from: string
  readonly as: string | undefined
  readonly user: Identity | undefined
  readonly isAnswered: boolean
}

export type Explanation = Awaited<ReturnType<typeof explanationOf>>

export async function explanationOf(
  config: LoadedConfig,
  { isAnswered, user, ...request }: Asked,
  { status, body, record, calls, shaped }: DryResult
) {
  const main = calls.find(({ part }) => part === undefined)
  /** Otherwise the upstream would decide. */
  const isSettled = isAnswered || main === undefined
  const route = record?.route ?? ''
  const name = isAnswered ? shapeOf(config, route) : undefined
  return {
    request,
    verdict: {
      passes: !isSettled || status < 400,
      ...(isSettled && { status, code: record?.code }),
      ...(main !== undefined && { upstream: main.upstream, url: urlOf(config, main) })
    },
    record,
    calls: calls.map(({ headers, ...call }) => ({
      upstream: call.upstream,
      part: call.part,
      method: call.method,
      url: urlOf(config, call),
      headers: {
        ...headers,
        ...hiddenHeaders(config, call.upstream),
        ...hiddenToken(config, call.upstream, headers)
      }
    })),
    shape:
      name !== undefined && shaped.has(name)
        ? {
            name,
            before: shaped.get(name),
            operations: await traceShape(
              config,
              { name, route, target: request.target, user },
              shaped.get(name)
            )
          }
        : undefined,
    response: isAnswered ? { status, body } : undefined
  }
}

function shapeOf({ routes }: LoadedConfig, route: string): string | undefined {
  if (route === 'profile') return routes.endpoints.profile.shape
  return Object.hasOwn(routes.routes, route) ? routes.routes[route]?.shape : undefined
}

function urlOf(
  { routes }: LoadedConfig,
  { upstream, path }: Pick<UpstreamCall, 'upstream' | 'path'>
): string {
  const [url = ''] = urlsOf(routes.upstreams[upstream] ?? {})
  return url.replace(/\/$/, '') + path
}

/** Those that config gives the upstream: any of them may be a secret. */
function hiddenHeaders({ routes }: LoadedConfig, upstream: string): Record<string, string> {
  const names = Object.keys(routes.upstreams[upstream]?.headers ?? {})
  return Object.fromEntries(names.map(name => [name, '(of the config)']))
}

/** The gateway signs a real token here, too, which no terminal or log is to keep. */
function hiddenToken({ routes }: LoadedConfig, upstream: string, sent: object): object {
  const { as, jwt } = credentialOf(routes.upstreams[upstream]?.credential ?? 'none')
  const name = tokenHeaderOf(as) ?? ''
  return jwt !== undefined && name in sent ? { [name]: '(signed by the gateway)' } : {}
}

export function formatExplanation(
  config: LoadedConfig,
  { request, verdict, record, calls, shape, response }: Explanation,
  stream: Output
): string {
  const { method, target, from, as } = request
  const at = (...path: Path) => {
    const { file, line } = config.fault(path, '')
    return `  ${paint('dim', `${file}:${line}`, stream)}`
  }
  const placeOf = ({ name, text }: Step) => {
    const [first = ''] = text.split(' ', 1)
    if (name === 'limits') return at('limits', first)
    if (name !== 'route' || record === undefined) return ''
    const { route } = record
    if (isEndpoint(route)) return at('endpoints', route)
    return Object.hasOwn(config.routes.routes, route) ? at('routes', route) : ''
  }
  const steps = record === undefined ? [] : requestSteps(record)
  const lines = stepLines(steps).map((line, index) => line + placeOf(steps[index] as Step))
  const who = as === undefined ? '' : `, as ${printable(as)}`
  const parts = [
    [`${paint('bold', printable(`${method} ${target}`), stream)} from ${from}${who}`, ...lines],
    ...calls.map(call => callLines(call, at('upstreams', call.upstream))),
    ...(shape === undefined ? [] : [shapeLines(shape, at('shapes', shape.name))]),
    [verdictText(verdict, stream), ...(response?.body ? [jsonOf(response.body)] : [])]
  ]
  return `${parts.map(part => part.join('\n')).join('\n\n')}\n`
}

function callLines(
  { upstream, part = '', method, url, headers }: Explanation['calls'][number],
  place: string
): string[] {
  const purpose = part === '' ? '' : ` for part ${part}`
  const fields = Object.entries(headers)
    .map(([name, value]) => printable(`    ${name}: ${[value].flat().join(', ')}`))
    .toSorted()
  return [`asks ${upstream}${purpose}${place}`, printable(`  ${method} ${url}`), ...fields]
}

/** The operations in their order; `--json` has the value after each. */
function shapeLines({ name, operations }: NonNullable<Explanation['shape']>, place: string) {
  const steps = operations.flatMap(({ operation, missing, failed }, index) => {
    const written = stringify(operation, { flowCollectionPadding: true, lineWidth: 110 }).trimEnd()
    const notes = failed === undefined ? [] : [failed]
    if (missing !== undefined) notes.push(`the response has no "${missing}": null from here on`)
    const [first = '', ...more] = [...written.split('\n'), ...notes].map(printable)
    return [`  ${index + 1}. ${first}`, ...more.map(line => `     ${line}`)]
  })
  return [`shape ${name}${place}`, ...steps]
}

function verdictText(
  { passes, status, code, upstream, url }: Explanation['verdict'],
  stream: Output
): string {
  const what =
    status === undefined
      ? `passes to ${upstream}: ${url}`
      : `answered with ${status} ${code ?? ''}`.trimEnd()
  return paint(passes ? 'green' : 'red', `→ ${printable(what)}`, stream)
}

function jsonOf(body: string): string {
  try {
    return printableLines(JSON.stringify(parseKeepingDigits(body), null, 2))
  } catch {
    return printable(body)
  }
}

export interface TracedStep {
  readonly operation: ShapeStep
  readonly after?: unknown
  readonly missing?: string
  /** The failure with which the operation ended the response. */
  readonly failed?: string
}

/** Applies each operation by itself; a running gateway applies all in one pass. */
async function traceShape(
  config: Config,
  { name, ...use }: ShapeUse & { readonly name: string },
  before: unknown
): Promise<TracedStep[]> {
  const { gateway, routes } = config
  const { shapes, paging } = routes
  const { success } = createEnvelope(gateway.envelope)
  const context = { wrap: success, shapes, paging, modules: await loadModules(config) }
  const done: TracedStep[] = []
  let current = before
  for (const operation of singles(flatten(shapes[name] ?? [], shapes))) {
    let missing: string | undefined
    const onMissing = (path: string) => {
      missing = path
    }
    const { refusal, apply } = compileShape([operation], { ...context, onMissing })
    const refused = refusal(current)
    if (refused !== undefined) {
      return [...done, { operation, failed: `a failure: ${refused.status}, ${refused.message}` }]
    }
    try {
      current = await apply(current, use)
    } catch (error) {
      const { code, cause } = toGatewayError(error)
      return [...done, { operation, failed: `${code}: ${reasonOf(cause as Error)}` }]
    }
    done.push({ operation, after: current, ...(missing !== undefined && { missing }) })
  }
  return done
}

function singles(steps: readonly ShapeStep[]): ShapeStep[] {
  return steps.flatMap((step): ShapeStep[] => {
    const { each, at } = step
    if (each !== undefined) return singles(each).map(inner => ({ each: [inner] }))
    if (at === undefined) return [step]
    return singles(at.operations).map(inner => ({ at: { path: at.path, operations: [inner] } }))
  })
}
