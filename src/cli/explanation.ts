import { stringify } from 'yaml'
import type { Config, LoadedConfig } from '../config/schema/config.ts'
import { ownMember, type Path } from '../config/schema/node.ts'
import { endpointNames } from '../config/schema/own-endpoints.ts'
import { credentialOf, tokenHeaderOf } from '../config/schema/routes.ts'
import { flatten, type ShapeStep } from '../config/schema/shapes.ts'
import type { DryRequest, DryResult, UpstreamCall } from '../dry-run/dry-app.ts'
import { reasonOf, toGatewayError } from '../errors/errors.ts'
import { tryJson } from '../json/body.ts'
import { requestSteps, type Step } from '../observability/request-story.ts'
import { printable, printableLines } from '../observability/unprintable.ts'
import type { Identity } from '../session/types.ts'
import { createEnvelope } from '../shaping/envelope.ts'
import { loadModules, type ShapeUse } from '../shaping/module.ts'
import { compileShape } from '../shaping/shape.ts'
import type { Output } from './command.ts'
import { paint, stepLines } from './output.ts'

type Request = Pick<DryRequest, 'method' | 'target'> & Record<'from' | 'as', string | undefined>

interface Answered extends DryResult {
  /** By a response in a file or of the upstreams; otherwise these would decide. */
  readonly isAnswered: boolean
  readonly user: Identity | undefined
}

export type Explanation = Awaited<ReturnType<typeof explanationOf>>

export async function explanationOf(config: LoadedConfig, request: Request, answered: Answered) {
  const { status, body, record, calls, isAnswered } = answered
  const main = calls.find(({ part }) => part === undefined)
  const isSettled = isAnswered || main === undefined
  return {
    request,
    verdict: {
      passes: !isSettled || status < 400,
      ...(isSettled && { status, code: record?.code }),
      ...(main !== undefined && { upstream: main.upstream, url: urlOf(config, main) })
    },
    record,
    calls: calls.map(call => ({
      upstream: call.upstream,
      part: call.part,
      method: call.method,
      url: urlOf(config, call),
      headers: { ...call.headers, ...hiddenHeaders(config, call) }
    })),
    shape: await shapeOf(config, request.target, answered),
    response: isAnswered ? { status, body } : undefined
  }
}

async function shapeOf(config: LoadedConfig, target: string, answered: Answered) {
  const { record, shaped, isAnswered, user } = answered
  const { routes, endpoints } = config.routes
  const route = record?.route ?? ''
  const { shape: name } = route === 'profile' ? endpoints.profile : (ownMember(routes, route) ?? {})
  if (name === undefined || !isAnswered || !shaped.has(name)) return undefined
  const before = shaped.get(name)
  return {
    name,
    before,
    operations: await traceShape(config, { name, route, target, user }, before)
  }
}

function urlOf({ routes }: LoadedConfig, { upstream, path }: UpstreamCall): string {
  const [url = ''] = routes.upstreams[upstream]?.url ?? []
  return url.replace(/\/$/, '') + path
}

/** Those of config may be secrets, and the gateway signs a real token here, too. */
function hiddenHeaders({ routes }: LoadedConfig, { upstream, headers }: UpstreamCall): object {
  const config = routes.upstreams[upstream]
  const names = Object.keys(config?.headers ?? {})
  const { as, jwt } = credentialOf(config?.credential ?? 'none')
  const token = tokenHeaderOf(as) ?? ''
  return {
    ...Object.fromEntries(names.map(name => [name, '(of the config)'])),
    ...(jwt !== undefined && token in headers && { [token]: '(signed by the gateway)' })
  }
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
    if (endpointNames.has(route)) return at('endpoints', route)
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
  const answered = ['answered with', status, code ?? []].flat().join(' ')
  const what = status === undefined ? `passes to ${upstream}: ${url}` : answered
  return paint(passes ? 'green' : 'red', `→ ${printable(what)}`, stream)
}

function jsonOf(body: string): string {
  const value = tryJson(Buffer.from(body), {}, Infinity)
  return value === undefined ? printable(body) : printableLines(JSON.stringify(value, null, 2))
}

interface TracedStep {
  readonly operation: ShapeStep
  readonly after?: unknown
  readonly missing?: string | undefined
  readonly failed?: string
}

/** Applies each operation by itself; a running gateway applies all in one pass. */
async function traceShape(
  config: Config,
  { name, ...use }: ShapeUse & { readonly name: string },
  before: unknown
): Promise<TracedStep[]> {
  const { shapes, paging } = config.routes
  const { success: wrap } = createEnvelope(config.gateway.envelope)
  const context = { wrap, shapes, paging, modules: await loadModules(config) }
  const done: TracedStep[] = []
  let after = before
  for (const operation of flatten(shapes[name] ?? [], shapes)) {
    let missing: string | undefined
    const onMissing = (path: string) => {
      missing = path
    }
    const { refusal, apply } = compileShape([operation], { ...context, onMissing })
    const refused = refusal(after)
    if (refused !== undefined) {
      return [...done, { operation, failed: `a failure: ${refused.status}, ${refused.message}` }]
    }
    try {
      after = await apply(after, use)
    } catch (error) {
      const { code, cause } = toGatewayError(error)
      return [...done, { operation, failed: `${code}: ${reasonOf(cause)}` }]
    }
    done.push({ operation, after, missing })
  }
  return done
}
