/**
 * Warns of bounds on responses that keep all other requests waiting: those that are shaped without
 * a thread are parsed without a pause.
 */
import type { RouteConfig } from '../schema/routes.ts'
import { routeHasExpression } from '../schema/shape-steps.ts'
import type { CheckedConfig, Report } from './report.ts'

const largeResponseBytes = 4 * 1024 ** 2
/** Measured with long numbers, the slowest case. */
const secondsPerMiB = 0.13

export function checkResponseSizes(
  { gateway, routes: config, limits }: CheckedConfig,
  report: Report
): void {
  const { shapes, routes } = config
  const hasThreads = gateway.server.shapingThreads !== 0
  const waits = (route: RouteConfig) => !hasThreads || routeHasExpression(route, shapes)
  for (const [name, route] of Object.entries(routes)) {
    const message = messageOf(route.maxShaped)
    if (message === undefined || !waits(route)) continue
    report('routes', ['routes', name, 'maxShaped'], message, 'warning')
  }
  const message = messageOf(limits.sizes.shape)
  const isUsed =
    !hasThreads ||
    config.endpoints.profile.from === 'upstream' ||
    Object.values(routes).some(route => route.maxShaped === undefined && waits(route))
  if (message !== undefined && isUsed) {
    report('limits', ['sizes', 'shape'], message, 'warning')
  }
}

function messageOf(bytes: number | undefined): string | undefined {
  if (typeof bytes !== 'number' || bytes <= largeResponseBytes) return undefined
  const seconds = ((bytes / 1024 ** 2) * secondsPerMiB).toFixed(1)
  return `responses of this size delay all other requests by up to ${seconds} s: use smaller pages`
}
