/** Keys of a route that have no effect beside others, or without them. */
import { isDeepStrictEqual } from 'node:util'
import { asNode } from '../schema/node.ts'
import { toMilliseconds } from '../schema/primitives.ts'
import { route as routeSchema } from '../schema/route.ts'
import type { RouteConfig } from '../schema/routes.ts'
import type { CheckedConfig, Report } from './report.ts'

type Key = keyof RouteConfig

interface Row {
  readonly keys: readonly Key[]
  readonly when: (route: RouteConfig) => boolean
  readonly message: string
}

const { properties = {} } = asNode(routeSchema)
const besideAnswer: ReadonlySet<string> = new Set([
  'path',
  'methods',
  'access',
  'touch',
  'answer',
  'dialect',
  'errorStatus'
])
const keysOfUpstream = [
  'rewrite',
  'into',
  'redirects',
  'passCookies',
  'passHeaders',
  'setCookies'
] as const

const hasParts = ({ parts }: RouteConfig) => Object.keys(parts).length > 0
const isProxied = ({ upstream }: RouteConfig) => upstream !== undefined
const isRead = ({ methods }: RouteConfig) => methods.includes('GET')
const isShaped = (route: RouteConfig) => route.shape !== undefined || hasParts(route)

const rows: readonly Row[] = [
  {
    keys: Object.keys(properties).filter(key => !besideAnswer.has(key)) as Key[],
    when: ({ answer }) => answer !== undefined,
    message: 'has no effect beside `answer`'
  },
  {
    keys: keysOfUpstream,
    when: route => hasParts(route) && !isProxied(route),
    message: 'has no effect without an upstream of the route’s own'
  },
  {
    keys: ['into'],
    when: route => !hasParts(route),
    message: 'has no effect without parts'
  },
  {
    keys: ['tooLarge'],
    when: route => !isShaped(route),
    message: 'has no effect without a shape: a response of any size passes'
  },
  {
    keys: ['tooLarge'],
    when: hasParts,
    message: 'a response made of parts cannot pass unshaped: remove tooLarge'
  },
  {
    keys: ['body'],
    when: ({ methods }) => methods.every(method => method === 'GET'),
    message: 'has no effect: requests with GET have no body'
  },
  {
    keys: ['fallback', 'cache'],
    when: route => !isRead(route),
    message: 'has no effect: the route does not take GET'
  },
  {
    keys: ['fallback', 'cache'],
    when: route => !isProxied(route),
    message: 'has no effect: no `upstream`'
  },
  {
    keys: ['cache'],
    when: hasParts,
    message: 'has no effect: the `Cache-Control` is not that of the parts'
  },
  {
    keys: ['cache'],
    when: ({ access }) => access === 'public',
    message: 'has no effect: on a public route `Cache-Control` passes as it is'
  },
  {
    keys: ['websocket'],
    when: route => !isRead(route),
    message: 'needs GET among the methods: a WebSocket begins as one'
  },
  {
    keys: ['websocket'],
    when: route => !isProxied(route),
    message: 'has no effect without an upstream of the route’s own'
  },
  {
    keys: ['websocket'],
    when: route => isProxied(route) && hasParts(route),
    message: 'cannot be combined with parts'
  }
]

export function checkWithoutEffect(
  { routes: { routes } }: Pick<CheckedConfig, 'routes'>,
  report: Report
): void {
  for (const [name, route] of Object.entries(routes)) {
    for (const { keys, message } of rows.filter(({ when }) => when(route))) {
      for (const key of keys.filter(each => isSet(each, route[each]))) {
        report(['routes', name, key], message)
      }
    }
  }
}

/** Whether a value is another one than the default. */
function isSet(key: Key, value: unknown): boolean {
  const usual = properties[key]?.default
  // A duration stands in config as a number, and as a text in its default.
  const isMeasure = typeof value === 'number' && typeof usual === 'string'
  const standard = isMeasure ? toMilliseconds(usual) : usual
  return value !== undefined && !isDeepStrictEqual(value, standard)
}
