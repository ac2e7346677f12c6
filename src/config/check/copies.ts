/** Rules for the keys of routes with which one response serves several requests. */
import type { CheckedConfig, Report } from './report.ts'

export function checkCopies({ routes: { routes } }: CheckedConfig, report: Report): void {
  for (const [name, route] of Object.entries(routes)) {
    const keys = [
      route.coalesce && 'coalesce',
      route.doubleClicks === 'share' && 'doubleClicks'
    ].filter(key => key !== false)
    for (const key of keys) {
      const place = ['routes', name, key]
      if (route.access === 'public') {
        const message = 'needs `access: session` or roles: responses are shared within a session'
        report('routes', place, message)
      }
      if (route.upstream === undefined) report('routes', place, 'has no effect: no `upstream`')
    }
    if (route.coalesce && !route.methods.includes('GET')) {
      report('routes', ['routes', name, 'coalesce'], 'has no effect: the route does not take GET')
    }
    if (route.doubleClicks === 'share' && route.methods.every(method => method === 'GET')) {
      const message = 'has no effect: the route takes GET alone. For that use `coalesce`'
      report('routes', ['routes', name, 'doubleClicks'], message)
    }
  }
}
