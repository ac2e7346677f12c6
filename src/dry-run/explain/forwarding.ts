/** The decisions after the gates: upstream, headers, bounds, and the handling of the response. */
import type { LoadedConfig } from '../../config/schema/config.ts'
import { inUnits } from '../../config/schema/primitives.ts'
import { routeSettings, timeoutOf } from '../../config/schema/resolved.ts'
import { credentialOf, type RouteConfig, type UpstreamConfig } from '../../config/schema/routes.ts'
import { firstUrlOf } from '../../config/schema/upstream-addresses.ts'
import type { Path } from '../../config/schema/visit.ts'
import { flatten } from '../../config/schema/shape-steps.ts'
import { type TimeOutOverrides, timeOutsOf } from '../../proxy/time-outs.ts'
import type { RecordedRequest } from '../offline-app.ts'
import type { Traced } from '../traced-app.ts'
import { bodyTimeOutLines } from './body-time-outs.ts'
import { errorStatusText } from './error-status.ts'
import { type Decision, type Locate, type Location, pathOfRoute } from './decision.ts'
import { ownAnswer } from './own-answer.ts'
import { webSocketDecision } from './websocket.ts'

interface Options {
  readonly config: LoadedConfig
  readonly traced: Traced
  /** The headers of the request. */
  readonly sent: Readonly<Record<string, string>>
  readonly locate: Locate
  /** Whether the request itself is refused, so that this is for a permitted caller. */
  readonly isStopped: boolean
}

type Lines = NonNullable<Decision['lines']>

/** A request with its route and its calls of upstreams. */
interface Forwarded extends Options {
  readonly name: string
  readonly at: NonNullable<Traced['at']>
  /** The route's path in config. */
  readonly path: Path
  readonly route: Partial<RouteConfig>
  /** The request to the route's own upstream. */
  readonly main: RecordedRequest | undefined
  readonly parts: readonly RecordedRequest[]
}

const ms = (value: number) => inUnits('x-duration', value)
const bytes = (value: number) => inUnits('x-size', value)

export function forwardingDecisions(options: Options): Decision[] {
  const { config, traced, isStopped } = options
  const { at, asked } = traced
  // The console's own files have no rules.
  if (at?.access === undefined || at.route === undefined) return []
  const { routes, endpoints } = config.routes
  const name = at.route
  const forwarded: Forwarded = {
    ...options,
    name,
    at,
    path: pathOfRoute(name),
    route: routes[name] ?? (name === 'profile' ? endpoints.profile : {}),
    main: asked.find(({ isPart }) => !isPart),
    parts: asked.filter(({ isPart }) => isPart)
  }
  return [
    ...upstreamDecisions(forwarded),
    sizesDecision(forwarded),
    ...touchDecision(forwarded),
    ...webSocketDecision(forwarded),
    ...partsDecision(forwarded),
    ...shapeDecision(forwarded),
    ...contractDecision(forwarded),
    errorsDecision(forwarded)
  ].map(decision => ({ ...decision, result: isStopped ? 'skipped' : 'info' }))
}

/** A decision of this file: none of them passes or refuses. */
type Info = Omit<Decision, 'result'>

/** The place of a key of the route, or else of its default. */
function locationOf(
  { route, path, locate }: Forwarded,
  key: keyof RouteConfig,
  otherwise: Parameters<Locate>
): Location {
  return route[key] === undefined ? locate(...otherwise) : locate('routes', [...path, key])
}

function upstreamDecisions(forwarded: Forwarded): Info[] {
  const { config, main, parts, path, locate } = forwarded
  const upstream = main && config.routes.upstreams[main.upstream]
  if (main === undefined || upstream === undefined) {
    return [{ step: 'answer', ...ownAnswer(forwarded, parts.length > 0) }]
  }
  const upstreamPath = ['upstreams', main.upstream]
  const base = firstUrlOf(upstream).replace(/\/$/, '')
  return [
    {
      step: 'upstream',
      text: `${main.upstream}: ${main.method} ${base}${main.path}`,
      at: locationOf(forwarded, 'rewrite', ['routes', [...path, 'upstream']]),
      lines: addressLines(upstream, upstreamPath, locate)
    },
    timeoutsDecision(forwarded, main, upstream),
    {
      step: 'fields',
      text: 'headers of the request to the upstream',
      lines: [
        ...headerLines(forwarded.sent, main),
        ...identityLines(upstream, upstreamPath, locate)
      ]
    }
  ]
}

/** The addresses that a request may go to. */
function addressLines(upstream: UpstreamConfig, path: Path, locate: Locate): Lines {
  const { url, urls = [] } = upstream
  if (url !== undefined) return [{ text: url, at: locate('routes', [...path, 'url']) }]
  const { failures, openFor } = upstream.breaker
  const breaker = `left out for ${ms(openFor)} after ${failures} failures in a row`
  return [
    ...urls.map((text, index) => ({
      text,
      at: locate('routes', [...path, 'urls', index])
    })),
    {
      text: `an address is ${breaker}`,
      at: locate('routes', [...path, 'breaker'])
    }
  ]
}

function timeoutsDecision(
  forwarded: Forwarded,
  main: RecordedRequest,
  upstream: UpstreamConfig
): Info {
  const { config, locate } = forwarded
  const path = ['upstreams', main.upstream]
  const timeOuts = timeOutsOf(upstream, forwarded.route)
  const atRoute = (key: keyof TimeOutOverrides) =>
    locationOf(forwarded, key, ['routes', [...path, key]])
  return {
    step: 'timeouts',
    text: `${ms(timeoutOf(forwarded.route, upstream))} to the first byte of the response`,
    at: locationOf(forwarded, 'timeout', ['routes', [...path, 'responseTimeout']]),
    lines: [
      {
        text: `${ms(upstream.connectTimeout)} to connect, ${ms(timeOuts.idleMs)} for a body that stalls`,
        at: locate('routes', path)
      },
      ...bodyTimeOutLines(timeOuts, atRoute),
      {
        text: `${ms(config.gateway.server.requestTimeout)} for the client to send a body of up to 64 KiB`,
        at: locate('gateway', ['server', 'requestTimeout'])
      }
    ]
  }
}

function identityLines(
  { identity, credential, headers = {}, secretHeaders = {} }: UpstreamConfig,
  path: Path,
  locate: Locate
): Lines {
  const anonymous = {
    text: 'the upstream does not get the user',
    at: locate('routes', [...path, 'identity'])
  }
  const withCredential = {
    text: `credential: ${credentialText(credential)}`,
    at: locate('routes', [...path, 'credential'])
  }
  const fixed = Object.entries(headers).map(([name, value]) => ({
    text: `${name}: ${value} (always)`,
    at: locate('routes', [...path, 'headers', name])
  }))
  const secret = Object.keys(secretHeaders).map(name => ({
    text: `${name}: a secret (always)`,
    at: locate('routes', [...path, 'secretHeaders', name])
  }))
  return [
    ...(identity ? [] : [anonymous]),
    ...(credential === 'none' ? [] : [withCredential]),
    ...fixed,
    ...secret
  ]
}

function credentialText(credential: UpstreamConfig['credential']): string {
  const { as, from, scheme } = credentialOf(credential)
  const style = scheme === undefined ? as : `${as} (${scheme} …)`
  return from === undefined ? style : `${style}, of sessions of ${from} only`
}

function sizesDecision(forwarded: Forwarded): Info {
  const { config, at, name, locate } = forwarded
  const { sizes } = config.limits
  return {
    step: 'sizes',
    text: `a body of ${bytes(at.maxBody ?? sizes.body)} at most`,
    at:
      name === 'login'
        ? locate('limits', ['sizes', 'login'])
        : locationOf(forwarded, 'maxBody', ['limits', ['sizes', 'body']]),
    lines: [
      {
        text: `path and query of ${bytes(sizes.url)} at most, ${sizes.headerCount} header lines`,
        at: locate('limits', ['sizes'])
      }
    ]
  }
}

function touchDecision(forwarded: Forwarded): Info[] {
  const { at, path } = forwarded
  if (at.access === 'public') return []
  return [
    {
      step: 'touch',
      text: `${at.touch ? 'keeps' : 'does not keep'} the session from going idle`,
      at: locationOf(forwarded, 'touch', ['routes', path])
    }
  ]
}

function partsDecision({ route, parts, path, locate }: Forwarded): Info[] {
  if (parts.length === 0) return []
  const lines = Object.entries(route.parts ?? {}).map(([key, part], index) => {
    const { path: target = part.rewrite, timeoutMs = 0 } = parts[index] ?? {}
    const into = part.into === undefined ? '' : `, into ${part.into}`
    const need = part.required ? 'required' : 'may be missing'
    return {
      text: `${key}: ${part.upstream} ${target}, ${ms(timeoutMs)}${into}, ${need}`,
      at: locate('routes', [...path, 'parts', key])
    }
  })
  const at = locate('routes', [...path, 'parts'])
  return [{ step: 'parts', text: 'requested at the same time, and added', at, lines }]
}

function shapeDecision({ config, name, route, main, parts, path, locate }: Forwarded): Info[] {
  const { shape } = route
  if (shape === undefined) {
    if (main === undefined || parts.length > 0) return []
    const text =
      name === 'profile'
        ? 'none: names are filled for the console'
        : 'none: the response passes byte for byte'
    return [{ step: 'shape', text, at: locate('routes', path) }]
  }
  const { shapes } = config.routes
  const { maxShaped } = routeSettings(config, name, route)
  const larger = route.tooLarge === 'pass' ? 'passes unshaped' : 'is refused (502 shape.too-large)'
  return [
    {
      step: 'shape',
      text: `${shape}, of responses up to ${bytes(maxShaped)}; a larger one ${larger}`,
      at: locate('routes', [...path, 'shape']),
      lines: (shapes[shape] ?? []).flatMap((step, index) => {
        const location = locate('routes', ['shapes', shape, index])
        return flatten([step], shapes, [shape]).map(each => ({ text: brief(each), at: location }))
      })
    }
  ]
}

function contractDecision({ route: { contract }, path, locate }: Forwarded): Info[] {
  if (contract === undefined) return []
  const { file = 'a schema', mode } = contract
  const at = locate('routes', [...path, 'contract'])
  return [{ step: 'contract', text: `${file}, ${mode}`, at }]
}

function errorsDecision(forwarded: Forwarded): Info {
  const { config, name, route } = forwarded
  const settings = routeSettings(config, name, route)
  const status = errorStatusText(settings, config.gateway.envelope.custom)
  return {
    step: 'errors',
    text: `in the dialect ${settings.dialect}, with ${status}`,
    at: locationOf(forwarded, 'errorStatus', ['gateway', ['envelope', 'errorStatus']])
  }
}

const maxBriefLength = 100

function brief(value: object): string {
  const text = Object.entries(value)
    .map(
      ([key, member]) => `${key}: ${typeof member === 'string' ? member : JSON.stringify(member)}`
    )
    .join(', ')
  return text.length > maxBriefLength ? `${text.slice(0, maxBriefLength - 1)}…` : text
}

/** Headers that always differ, because each connection has its own. */
const hopHeaders = new Set(['host', 'connection', 'content-length', 'x-request-id'])

/** Headers that the gateway adds, changes and removes, with the values of this dry run. */
function headerLines(sent: Readonly<Record<string, string>>, { headers }: RecordedRequest): Lines {
  const arrived = Object.entries(
    headers as Record<string, RecordedRequest['headers'][string] | undefined>
  ).flatMap(([name, value]) =>
    value === undefined ? [] : [[name.toLowerCase(), [value].flat().join(', ')] as const]
  )
  const names = new Set(arrived.map(([name]) => name))
  const added = arrived.filter(([name, value]) => !hopHeaders.has(name) && sent[name] !== value)
  const removed = Object.keys(sent).filter(name => !names.has(name) && !hopHeaders.has(name))
  const kept = arrived.filter(([name, value]) => sent[name] === value).map(([name]) => name)
  return [
    ...added.map(([name, value]) => ({
      text: `${sent[name] === undefined ? '+' : '~'} ${name}: ${value}`,
      facts: { [sent[name] === undefined ? 'added' : 'changed']: name, value }
    })),
    { text: '+ x-request-id: the id of the request', facts: { added: 'x-request-id' } },
    ...removed.map(name => ({ text: `- ${name}`, facts: { removed: name } })),
    ...(kept.length > 0 ? [{ text: `= ${kept.join(', ')}`, facts: { kept } }] : [])
  ]
}
