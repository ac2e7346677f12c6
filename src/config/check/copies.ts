/** Rules for the keys of routes with which one response serves several requests. */
import type { RouteConfig } from '../schema/routes.ts'
import type { CheckedConfig, Report } from './report.ts'

export function checkCopies({ routes: { routes } }: CheckedConfig, report: Report): void {
  for (const [name, route] of Object.entries(routes)) {
    const keys = [
      route.coalesce && 'coalesce',
      route.doubleClicks === 'share' && 'doubleClicks',
      route.cache === 'private' && 'cache',
      route.fallback?.lastGood === true && 'fallback'
    ].filter(key => typeof key === 'string')
    for (const key of keys) {
      const place = ['routes', name, key]
      if (route.access === 'public') {
        const message = 'needs `access: session` or roles: copies belong to a session'
        report('routes', place, message)
      }
      if (route.upstream === undefined) report('routes', place, 'has no effect: no `upstream`')
    }
    checkReads(name, route, report)
    if (route.doubleClicks === 'share' && route.methods.every(method => method === 'GET')) {
      const message = 'has no effect: the route takes GET alone. For that use `coalesce`'
      report('routes', ['routes', name, 'doubleClicks'], message)
    }
  }
}

function checkReads(
  name: string,
  { coalesce, cache, fallback, methods, upstream }: RouteConfig,
  report: Report
): void {
  const isSet = { coalesce, cache: cache === 'private', fallback: fallback !== undefined }
  if (!methods.includes('GET')) {
    for (const [key, has] of Object.entries(isSet)) {
      if (has) report('routes', ['routes', name, key], 'has no effect: the route does not take GET')
    }
  }
  if (fallback === undefined) return
  const place = ['routes', name, 'fallback']
  if (upstream === undefined && !fallback.lastGood) {
    report('routes', place, 'has no effect: no `upstream`')
  }
  if (!fallback.lastGood && fallback.body === undefined && fallback.byRole === undefined) {
    report('routes', place, 'needs `lastGood: true`, `body` or `byRole`')
  }
}
