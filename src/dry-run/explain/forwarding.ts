/** What becomes of a request that nothing refused: where it goes, with which fields, within which bounds, and what is made of the answer. */
import type { LoadedConfig } from '../../config/schema/config.ts'
import { credentialOf, type RouteConfig, type UpstreamConfig } from '../../config/schema/routes.ts'
import { inUnits } from '../../config/schema/primitives.ts'
import { type Decision, pathOfRoute, type Location, type Locate } from './decision.ts'
import type { UpstreamRequest } from '../offline-app.ts'
import { flatten } from '../../shaping/shape.ts'
import type { Traced } from '../traced-app.ts'

interface Options {
  readonly config: LoadedConfig
  readonly found: Traced
  readonly sent: Readonly<Record<string, string>>
  readonly place: Locate
  /** Whether this is what another, whom nothing refuses, would get. */
  readonly isStopped: boolean
}

const ms = (value: number) => inUnits('x-duration', value)
const bytes = (value: number) => inUnits('x-size', value)

export function forwardingDecisions({
  config,
  found,
  sent,
  place,
  isStopped
}: Options): Decision[] {
  const { at, asked } = found
  const name = at?.route
  // The console's own files have no rules.
  if (at?.access === undefined || name === undefined) return []
  const {
    routes: { routes, endpoints, upstreams, shapes },
    gateway,
    limits: { sizes }
  } = config
  const here = pathOfRoute(name)
  const route: Partial<RouteConfig> = routes[name] ?? (name === 'profile' ? endpoints.profile : {})
  const own = asked.find(({ isPart }) => !isPart)
  const parts = asked.filter(({ isPart }) => isPart)
  const outcome = isStopped ? 'unasked' : 'says'
  const says = (
    step: Decision['step'],
    text: string,
    where?: Location,
    lines?: Decision['lines']
  ): Decision => ({
    step,
    outcome,
    text,
    ...(where && { at: where }),
    ...(lines && lines.length > 0 && { lines })
  })
  const within = (key: keyof RouteConfig, otherwise: () => Location) =>
    route[key] === undefined ? otherwise() : place('routes', [...here, key])
  const upstream = own && upstreams[own.upstream]
  const decisions: Decision[] = []
  if (own !== undefined && upstream !== undefined) {
    const url = upstream.url.replace(/\/$/, '') + own.path
    decisions.push(
      says(
        'upstream',
        `${own.upstream}: ${own.method} ${url}`,
        within('rewrite', () => place('routes', [...here, 'upstream'])),
        [{ text: upstream.url, at: place('routes', ['upstreams', own.upstream, 'url']) }]
      ),
      says(
        'timeouts',
        `${ms(own.timeoutMs ?? upstream.responseTimeout)} to the first byte of the answer`,
        within('timeout', () => place('routes', ['upstreams', own.upstream, 'responseTimeout'])),
        [
          {
            text: `${ms(upstream.connectTimeout)} to connect, ${ms(upstream.idleTimeout)} for a body that stalls`,
            at: place('routes', ['upstreams', own.upstream])
          },
          {
            text: `${ms(gateway.server.requestTimeout)} for the client to send the whole request`,
            at: place('gateway', ['server', 'requestTimeout'])
          }
        ]
      ),
      says(
        'fields',
        'header fields of the request to the upstream',
        undefined,
        fieldLines(sent, own, [
          ...(upstream.identity
            ? []
            : [
                {
                  text: 'the upstream is not told who asks',
                  at: place('routes', ['upstreams', own.upstream, 'identity'])
                }
              ]),
          ...(upstream.credential === 'none'
            ? []
            : [
                {
                  text: `credential: ${credentialText(upstream.credential)}`,
                  at: place('routes', ['upstreams', own.upstream, 'credential'])
                }
              ])
        ])
      )
    )
  } else
    decisions.push(
      says(
        'answer',
        parts.length > 0 ? 'made of its parts alone' : `the gateway answers this itself (${name})`,
        place('routes', here)
      )
    )
  const maxBody = at.maxBody ?? sizes.body
  decisions.push(
    says(
      'sizes',
      `a body of ${bytes(maxBody)} at most`,
      name === 'login'
        ? place('limits', ['sizes', 'login'])
        : within('maxBody', () => place('limits', ['sizes', 'body'])),
      [
        {
          text: `path and query of ${bytes(sizes.url)} at most, ${sizes.headerCount} header lines`,
          at: place('limits', ['sizes'])
        }
      ]
    )
  )
  if (at.access !== 'public')
    decisions.push(
      says(
        'touch',
        at.touch
          ? 'keeps the session from going idle'
          : 'does not keep the session from going idle',
        within('touch', () => place('routes', here))
      )
    )
  if (parts.length > 0)
    decisions.push(
      says(
        'parts',
        'asked at the same time, and added',
        place('routes', [...here, 'parts']),
        Object.entries(route.parts ?? {}).map(([key, part], index) => ({
          text: `${key}: ${part.upstream} ${parts[index]?.path ?? part.rewrite}, ${ms(parts[index]?.timeoutMs ?? 0)}${part.into === undefined ? '' : `, into ${part.into}`}, ${part.required ? 'required' : 'may be missing'}`,
          at: place('routes', [...here, 'parts', key])
        }))
      )
    )
  const steps = route.shape === undefined ? undefined : flatten(shapes[route.shape] ?? [], shapes)
  if (route.shape !== undefined && steps !== undefined) {
    const { shape } = route
    const maxShaped = route.maxShaped ?? sizes.shape
    decisions.push(
      says(
        'shape',
        `${shape}, of answers up to ${bytes(maxShaped)}; a larger one ${route.tooLarge === 'pass' ? 'passes unshaped' : 'is refused (502 shape.too-large)'}`,
        place('routes', [...here, 'shape']),
        steps.map((step, index) => ({
          text: brief(step),
          at: place('routes', ['shapes', shape, index])
        }))
      )
    )
  } else if (own !== undefined && parts.length === 0)
    decisions.push(
      says(
        'shape',
        name === 'profile'
          ? 'none: names are filled for the console'
          : 'none: the answer passes byte for byte',
        place('routes', here)
      )
    )
  const { contract } = route
  if (contract !== undefined)
    decisions.push(
      says(
        'contract',
        `${contract.file ?? 'a schema'}, ${contract.mode}${contract.mode === 'observe' ? `, ${contract.sample * 100} of 100 answers` : ''}`,
        place('routes', [...here, 'contract'])
      )
    )
  const dialect = route.dialect ?? gateway.envelope.dialect
  const errorStatus = route.errorStatus ?? gateway.envelope.errorStatus
  decisions.push(
    says(
      'errors',
      `in the dialect ${dialect}, with ${errorStatus === 'ok' ? 'the status 200 whatever they are' : 'a status of their own'}`,
      within('errorStatus', () => place('gateway', ['envelope', 'errorStatus']))
    )
  )
  return decisions
}

function credentialText(written: UpstreamConfig['credential']): string {
  const { as, from } = credentialOf(written)
  return from === undefined ? as : `${as}, of sessions of ${from} alone`
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

/** Those that the gateway adds, those that it changes, and those that end here. Values are those of this rehearsal. */
function fieldLines(
  sent: Readonly<Record<string, string>>,
  { headers }: UpstreamRequest,
  more: NonNullable<Decision['lines']>
): NonNullable<Decision['lines']> {
  const told = Object.entries(
    headers as Record<string, UpstreamRequest['headers'][string] | undefined>
  )
    .flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]))
    .map(([name, value]) => [name.toLowerCase(), [value].flat().join(', ')] as const)
  const arrived = new Map(told)
  const own = new Set(['host', 'connection', 'content-length', 'x-request-id'])
  const added = told.filter(([name, value]) => !own.has(name) && sent[name] !== value)
  const removed = Object.keys(sent).filter(name => !arrived.has(name) && !own.has(name))
  const kept = told.filter(([name, value]) => sent[name] === value).map(([name]) => name)
  return [
    ...added.map(([name, value]) => ({
      text: `${sent[name] === undefined ? '+' : '~'} ${name}: ${value}`,
      facts: { [sent[name] === undefined ? 'added' : 'changed']: name, value }
    })),
    { text: '+ x-request-id: the id of the request', facts: { added: 'x-request-id' } },
    ...removed.map(name => ({ text: `- ${name}`, facts: { removed: name } })),
    ...(kept.length > 0 ? [{ text: `= ${kept.join(', ')}`, facts: { kept } }] : []),
    ...more
  ]
}
