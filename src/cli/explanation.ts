/** What the gateway did with the request of `explain`, for people and programs. */
import { stringify } from 'yaml'
import type { LoadedConfig } from '../config/schema/config.ts'
import type { Path } from '../config/schema/node.ts'
import { isEndpoint } from '../config/schema/own-endpoints.ts'
import { firstUrlOf } from '../config/schema/upstreams.ts'
import type { DryRequest, DryResult, UpstreamCall } from '../dry-run/dry-app.ts'
import { parseKeepingDigits } from '../json/digits.ts'
import { requestSteps } from '../observability/request-story.ts'
import { printable, printableLines } from '../observability/unprintable.ts'
import type { Identity } from '../session/types.ts'
import { changeLines } from './changes.ts'
import type { Output } from './command.ts'
import { paint } from './output.ts'
import { traceShape } from './shape-steps.ts'
import { stepLines } from './table.ts'

interface Asked {
  readonly method: string
  readonly target: string
  readonly from: string
  /** Who asks, for people. */
  readonly as: string | undefined
  readonly user: Identity | undefined
  readonly sent: DryRequest['headers']
  /** Whether the upstreams gave a response that means something. */
  readonly isAnswered: boolean
}

/** A header on its way to the upstream: `+` is new, `~` changed, `=` the same, `-` dropped. */
interface Field {
  readonly mark: '+' | '~' | '=' | '-'
  readonly name: string
  readonly value: string
}

export type Explanation = Awaited<ReturnType<typeof explanationOf>>

export async function explanationOf(
  config: LoadedConfig,
  { isAnswered, sent, user, ...request }: Asked,
  { status, body, record, calls, shaped }: DryResult
) {
  const { routes } = config
  const locate = (place: Path) => {
    const { file, line, path } = config.fault(place, '')
    return { file, line, path }
  }
  const urlOf = ({ upstream, path }: UpstreamCall) =>
    firstUrlOf(routes.upstreams[upstream] ?? { url: '' }).replace(/\/$/, '') + path
  const main = calls.find(({ part }) => part === undefined)
  /** Otherwise the upstream would decide. */
  const isSettled = isAnswered || main === undefined
  const route = record?.route ?? ''
  const isOwn = isEndpoint(route)
  const isKnown = isOwn || Object.hasOwn(routes.routes, route)
  const ofProfile = route === 'profile' ? routes.endpoints.profile.shape : undefined
  const shape = isOwn || !isKnown ? ofProfile : routes.routes[route]?.shape
  const before = shape === undefined ? undefined : shaped.get(shape)
  const use = { route, target: request.target, user }
  return {
    request,
    verdict: {
      passes: !isSettled || status < 400,
      ...(isSettled && { status, code: record?.code }),
      ...(main !== undefined && { upstream: main.upstream, url: urlOf(main) })
    },
    record,
    calls: calls.map(call => ({
      upstream: call.upstream,
      part: call.part,
      method: call.method,
      url: urlOf(call),
      headers: fieldsOf(config, sent, call),
      at: locate(['upstreams', call.upstream])
    })),
    /** Where the names of the record stand. */
    places: {
      route: isKnown ? locate([isOwn ? 'endpoints' : 'routes', route]) : undefined,
      limits: Object.fromEntries(
        (record?.limits ?? []).map(({ name }) => [name, locate(['limits', name])])
      )
    },
    shape:
      isAnswered && shape !== undefined && shaped.has(shape)
        ? {
            name: shape,
            at: locate(['shapes', shape]),
            before,
            operations: await traceShape(config, { ...use, name: shape }, before)
          }
        : undefined,
    response: isAnswered ? { status, body } : undefined
  }
}

function fieldsOf(
  { routes }: LoadedConfig,
  sent: DryRequest['headers'],
  { upstream, headers }: UpstreamCall
): Field[] {
  // Any of them may be a secret.
  const ofConfig = Object.keys(routes.upstreams[upstream]?.headers ?? {})
  const got = new Map(ofConfig.map(name => [name, '(of the config)']))
  for (const [name, value] of Object.entries(headers)) got.set(name, [value].flat().join(', '))
  const names = new Set([...got.keys(), ...Object.keys(sent)])
  return [...names].toSorted().map(name => {
    const [before, value] = [sent[name], got.get(name)]
    if (value === undefined) return { mark: '-', name, value: '' }
    if (before === undefined) return { mark: '+', name, value }
    return { mark: before === value ? '=' : '~', name, value }
  })
}

export function formatExplanation(explanation: Explanation, stream: Output): string {
  const { request, verdict, record, calls, places, shape, response } = explanation
  const { method, target, from, as } = request
  const at = (place: { readonly file: string; readonly line: number } | undefined) =>
    place === undefined ? '' : `  ${paint('dim', `${place.file}:${place.line}`, stream)}`
  const steps = record === undefined ? [] : requestSteps(record)
  const lines = stepLines(steps).map((line, index) => {
    const { name, text = '' } = steps[index] ?? {}
    const limit = name === 'limits' ? places.limits[text.split(' ', 1)[0] ?? ''] : undefined
    return line + at(name === 'route' ? places.route : limit)
  })
  const who = as === undefined ? '' : `, as ${printable(as)}`
  const parts = [
    [`${paint('bold', printable(`${method} ${target}`), stream)} from ${from}${who}`, ...lines],
    ...calls.map(call => callLines(call, at(call.at))),
    ...(shape === undefined ? [] : [shapeLines(shape, at(shape.at))]),
    [verdictText(verdict, stream), ...(response?.body ? [jsonOf(response.body)] : [])]
  ]
  return `${parts.map(part => part.join('\n')).join('\n\n')}\n`
}

function callLines(
  { upstream, part = '', method, url, headers }: Explanation['calls'][number],
  place: string
): string[] {
  const purpose = part === '' ? '' : ` for part ${part}`
  const fields = headers.map(({ mark, name, value }) =>
    printable(`    ${mark} ${value === '' ? name : `${name}: ${value}`}`)
  )
  return [`asks ${upstream}${purpose}${place}`, printable(`  ${method} ${url}`), ...fields]
}

function shapeLines(
  { name, operations, before }: NonNullable<Explanation['shape']>,
  place: string
): string[] {
  let last = before
  const steps = operations.flatMap(({ operation, after, missing, failed }, index) => {
    const written = stringify(operation, { flowCollectionPadding: true, lineWidth: 110 }).trimEnd()
    const changes = failed === undefined ? changeLines(last, after) : [failed]
    last = after
    if (missing !== undefined) {
      changes.unshift(`the response has no "${missing}": null from here on`)
    }
    const [first = '', ...more] = [...written.split('\n'), ...changes].map(printable)
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

/** Indented where it is JSON. */
function jsonOf(body: string): string {
  try {
    return printableLines(JSON.stringify(parseKeepingDigits(body), null, 2))
  } catch {
    return printable(body)
  }
}
