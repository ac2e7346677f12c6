/** What the gateway did with the request of `explain`, for people and programs. */
import { stringify } from 'yaml'
import { isEndpoint } from '../config/schema/own-endpoints.ts'
import type { ConfigFile, LoadedConfig } from '../config/schema/config.ts'
import { firstUrlOf } from '../config/schema/upstreams.ts'
import type { Path } from '../config/schema/node.ts'
import type { DryRequest, DryResult, UpstreamCall } from '../dry-run/dry-app.ts'
import { parseKeepingDigits } from '../json/digits.ts'
import { textAt } from '../json/values.ts'
import { requestSteps } from '../observability/request-story.ts'
import type { FullRequestJson } from '../observability/request-json.ts'
import { printable, printableLines } from '../observability/unprintable.ts'
import { paint } from './output.ts'
import type { Output } from './command.ts'
import { changeLines } from './changes.ts'
import type { Identity } from '../session/types.ts'
import { type TracedStep, traceShape } from './shape-steps.ts'

interface Asked {
  readonly method: string
  readonly target: string
  readonly from: string
  /** Who asks, for people. */
  readonly as: string | undefined
  /** Whether the upstreams gave a response that means something. */
  readonly isAnswered: boolean
}

/** A place in a config file. */
interface Location {
  readonly file: string
  readonly line: number
  readonly path: string
}

/** What becomes of the client's headers: `+` is new, `~` changed, `=` the same, `-` dropped. */
interface Field {
  readonly mark: '+' | '~' | '=' | '-'
  readonly name: string
  readonly value: string
}

interface Call {
  readonly upstream: string
  readonly part?: string | undefined
  readonly method: string
  readonly url: string
  readonly headers: readonly Field[]
  readonly at: Location
}

export interface Explanation {
  readonly request: Omit<Asked, 'isAnswered'>
  readonly verdict: {
    readonly passes: boolean
    /** Undefined where the upstream would say it. */
    readonly status?: number
    readonly code?: string | undefined
    /** Of the route itself. */
    readonly upstream?: string
    readonly url?: string
  }
  readonly record: FullRequestJson | undefined
  readonly calls: readonly Call[]
  /** Where the names of the record stand. */
  readonly places: {
    readonly route?: Location
    readonly limits: Readonly<Record<string, Location>>
  }
  /** Of a response that was given. */
  readonly shape?: {
    readonly name: string
    readonly at: Location
    readonly before: unknown
    readonly operations: readonly TracedStep[]
  }
  /** The same. */
  readonly response?: { readonly status: number; readonly body: string }
}

export async function explanationOf(
  config: LoadedConfig,
  {
    isAnswered,
    sent,
    user,
    ...request
  }: Asked & { readonly sent: DryRequest['headers']; readonly user: Identity | undefined },
  { status, body, record, calls, shaped }: DryResult
): Promise<Explanation> {
  const locate = (file: ConfigFile, path: Path): Location => {
    const { message: _, severity: __, ...at } = config.fault(file, path, '')
    return at
  }
  const urlOf = ({ upstream, path }: UpstreamCall) =>
    firstUrlOf(config.routes.upstreams[upstream] ?? { url: '' }).replace(/\/$/, '') + path
  const main = calls.find(({ part }) => part === undefined)
  const isSettled = isAnswered || main === undefined
  const route = record?.route
  const isOwn = route !== undefined && isEndpoint(route)
  const isKnown = isOwn || (route !== undefined && Object.hasOwn(config.routes.routes, route))
  const name = isKnown && !isOwn ? config.routes.routes[route]?.shape : profileShape(config, route)
  const { code } = record ?? {}
  return {
    request,
    verdict: {
      passes: isSettled ? status < 400 : true,
      ...(isSettled && { status, code }),
      ...(main !== undefined && { upstream: main.upstream, url: urlOf(main) })
    },
    record,
    calls: calls.map(call => ({
      upstream: call.upstream,
      part: call.part,
      method: call.method,
      url: urlOf(call),
      headers: fieldsOf(config, sent, call),
      at: locate('routes', ['upstreams', call.upstream])
    })),
    places: {
      ...(isKnown && { route: locate('routes', [isOwn ? 'endpoints' : 'routes', route]) }),
      limits: Object.fromEntries(
        (record?.limits ?? []).map(each => [each.name, locate('limits', ['limits', each.name])])
      )
    },
    ...(isAnswered &&
      name !== undefined &&
      shaped.has(name) && {
        shape: {
          name,
          at: locate('routes', ['shapes', name]),
          before: shaped.get(name),
          operations: await traceShape(
            config,
            { route: route ?? '', name, target: request.target, user },
            shaped.get(name)
          )
        }
      }),
    ...(isAnswered && { response: { status, body } })
  }
}

function fieldsOf(
  { routes, written }: LoadedConfig,
  sent: DryRequest['headers'],
  { upstream, headers }: UpstreamCall
): Field[] {
  const constant = Object.entries(routes.upstreams[upstream]?.headers ?? {})
  const ofConfig = constant
    .filter(([name]) => !Object.hasOwn(headers, name))
    .map(([name, value]) => {
      const text = textAt(written.routes, `upstreams.${upstream}.headers.${name}`)
      return [name, text === value ? value : '(a secret of the config)'] as const
    })
  const got = new Map<string, string>([
    ...Object.entries(headers).map(([name, value]) => [name, [value].flat().join(', ')] as const),
    ...ofConfig
  ])
  const names = new Set([...got.keys(), ...Object.keys(sent)])
  return [...names].toSorted().map(name => {
    const [before, after] = [sent[name], got.get(name)]
    if (after === undefined) return { mark: '-', name, value: '' }
    if (before === undefined) return { mark: '+', name, value: after }
    return { mark: before === after ? '=' : '~', name, value: after }
  })
}

function profileShape({ routes }: LoadedConfig, route: string | undefined): string | undefined {
  return route === 'profile' ? routes.endpoints.profile.shape : undefined
}

export function formatExplanation(explanation: Explanation, stream: Output): string {
  const { request, verdict, record, calls, places, shape, response } = explanation
  const { method, target, from, as } = request
  const who = as === undefined ? '' : `, as ${printable(as)}`
  const at = (place: Location | undefined) =>
    place === undefined ? '' : `  ${paint('dim', `${place.file}:${place.line}`, stream)}`
  const steps = record === undefined ? [] : requestSteps(record)
  const width = Math.max(0, ...steps.map(({ name }) => name.length))
  const lines = steps.map(({ name, text }) => {
    const limit = name === 'limits' ? places.limits[text.split(' ', 1)[0] ?? ''] : undefined
    const place = name === 'route' ? places.route : limit
    return `  ${name.padEnd(width)}  ${printable(text)}${at(place)}\n`
  })
  return [
    `${paint('bold', printable(`${method} ${target}`), stream)} from ${from}${who}\n`,
    ...lines,
    ...calls.map(call => `\n${callText(call, at(call.at))}`),
    ...(shape === undefined ? [] : [`\n${shapeText(shape, at(shape.at))}`]),
    `\n${verdictText(verdict, stream)}\n`,
    ...(response === undefined || response.body === '' ? [] : [`${jsonOf(response.body)}\n`])
  ].join('')
}

function callText({ upstream, part = '', method, url, headers }: Call, place: string): string {
  const purpose = part === '' ? '' : ` for part ${part}`
  const fields = headers.map(({ mark, name, value }) => {
    return `    ${mark} ${printable(value === '' ? name : `${name}: ${value}`)}\n`
  })
  return `asks ${upstream}${purpose}${place}\n  ${printable(`${method} ${url}`)}\n${fields.join('')}`
}

function shapeText(
  { name, operations, before }: NonNullable<Explanation['shape']>,
  place: string
): string {
  let last = before
  const steps = operations.map(({ operation, after, missing, failed }, index) => {
    const written = stringify(operation, { flowCollectionPadding: true, lineWidth: 110 }).trimEnd()
    const changes = failed === undefined ? changeLines(last, after) : [failed]
    last = after
    const notes = [
      ...(missing === undefined ? [] : [`the response has no "${missing}": null from here on`]),
      ...changes
    ]
    const shown = notes.map(note => `     ${printable(note)}\n`).join('')
    return `  ${index + 1}. ${written.split('\n').map(printable).join('\n     ')}\n${shown}`
  })
  return `shape ${name}${place}\n${steps.join('')}`
}

function verdictText(
  { passes, status, code, upstream, url }: Explanation['verdict'],
  stream: Output
): string {
  const what =
    status === undefined
      ? `passes to ${upstream ?? ''}: ${url ?? ''}`
      : `answered with ${status}${code === undefined ? '' : ` ${code}`}`
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
