/** `--live`: responses that a command requests from the back-end of a route. */
import type { Config } from '../config/schema/config.ts'
import { hasParameters } from '../config/schema/public-path.ts'
import { upstreamPathOf } from '../config/schema/resolved.ts'
import type { UpstreamConfig } from '../config/schema/routes.ts'
import { reasonOf } from '../app/hooks/errors.ts'
import {
  describeFailure,
  type LiveResponse,
  type LiveRoute,
  type LiveTarget,
  NoTarget,
  openLiveRoute
} from '../dry-run/live-route.ts'
import { GatewayError } from '../errors.ts'
import type { ShapeContext } from '../shaping/shape.ts'
import { printable } from '../observability/unprintable.ts'
import { CommandError, type Invocation, UsageError } from './command.ts'
import { headersOf } from './header-option.ts'

interface Asked {
  readonly name: string
  readonly route: LiveTarget | undefined
}

/** Asks until the work is done. @throws UsageError, or CommandError when there is no response */
export async function withLiveRoute<T>(
  config: Config,
  { name, route }: Asked,
  { values, context, io }: Pick<Invocation, 'values' | 'io'> & { readonly context: ShapeContext },
  work: (ask: () => Promise<LiveResponse>) => Promise<T>
): Promise<T> {
  if (route === undefined || (route.upstream === undefined && !hasParts(route))) {
    throw new UsageError('--live needs a route with an upstream.')
  }
  const live = openRoute(
    config,
    { name, route },
    {
      headers: freeHeaders(config.routes.upstreams[route.upstream ?? ''], values),
      path: pathOf(route, values['path']),
      context,
      report: line => io.stderr.write(`${printable(line)}\n`)
    }
  )
  const ask = async () => {
    const response = await live.ask().catch((error: unknown) => {
      throw error instanceof GatewayError ? new CommandError(problemOf(error)) : error
    })
    if (response === undefined) throw new CommandError('The upstream answered without a body.')
    return response
  }
  try {
    return await work(ask)
  } finally {
    await live.close()
  }
}

function hasParts({ parts }: Pick<LiveTarget, 'parts'>): boolean {
  return Object.keys(parts).length > 0
}

function openRoute(...[config, target, options]: Parameters<typeof openLiveRoute>): LiveRoute {
  try {
    return openLiveRoute(config, target, options)
  } catch (error) {
    throw error instanceof NoTarget ? new UsageError(error.message) : error
  }
}

/** The gateway would send those of the config in their place. */
function freeHeaders(
  { headers, secretHeaders }: Pick<UpstreamConfig, 'headers' | 'secretHeaders'> = {},
  { header }: Invocation['values']
): Readonly<Record<string, string>> {
  const chosen = headersOf(Array.isArray(header) ? header.map(String) : [])
  const fixed = Object.keys({ ...headers, ...secretHeaders }).find(each =>
    Object.hasOwn(chosen, each)
  )
  if (fixed === undefined) return chosen
  throw new UsageError(`--header: "${fixed}" is sent as the config of the upstream says.`)
}

/** Undefined for the route's own path. */
function pathOf(route: LiveTarget, path: unknown): string | undefined {
  if (typeof path === 'string') {
    if (/^\/[\x21-\x7e]*$/.test(path)) return path
    throw new UsageError('--path begins with "/", and has only characters of a URL.')
  }
  const routePath = route.upstream === undefined ? route.path : upstreamPathOf(route)
  if (routePath.endsWith('*') || hasParameters(routePath)) {
    throw new UsageError('This route has many paths: choose one with --path.')
  }
  return undefined
}

function problemOf(error: GatewayError): string {
  const { code, status, detail, cause } = error
  const place = cause === undefined ? '' : ` (${reasonOf(cause)})`
  if (code === 'upstream.error') {
    const says = detail.message === undefined ? '' : ` It says: ${printable(detail.message)}`
    const advice = status === 401 || status === 403 ? ' Add its credential by --header.' : ''
    return (
      `The upstream answered ${status}${place}: an error, which no shape applies to. The console ` +
      `gets it as an error of the gateway's envelope.${says}${advice}`
    )
  }
  if (code === 'upstream.redirect') {
    return `The upstream answered with a redirect${place}, which no shape applies to.`
  }
  return describeFailure(error)
}
