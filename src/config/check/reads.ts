/** Rules for the keys of routes that are about reads: `fallback` and `cache`. */
import type { CheckedConfig, Report } from './report.ts'

export function checkReads({ routes: { routes } }: CheckedConfig, report: Report): void {
  for (const [name, route] of Object.entries(routes)) {
    const keys = [
      route.fallback !== undefined && 'fallback',
      route.cache === 'browser' && 'cache'
    ].filter(key => typeof key === 'string')
    for (const key of keys) {
      const place = ['routes', name, key]
      if (!route.methods.includes('GET')) {
        report('routes', place, 'has no effect: the route does not take GET')
      }
      if (route.upstream === undefined) report('routes', place, 'has no effect: no `upstream`')
    }
    if (route.cache !== 'browser') continue
    const place = ['routes', name, 'cache']
    if (Object.keys(route.parts).length > 0) {
      report('routes', place, 'has no effect: the `Cache-Control` is not that of the parts')
    } else if (route.access === 'public') {
      report('routes', place, 'has no effect: on a public route `Cache-Control` passes as it is')
    }
  }
}
