/** Rules for routes that take upgrades to WebSocket. */
import type { RoutesConfig } from '../schema/routes.ts'
import type { Report } from './report.ts'

export function checkWebSockets(
  { routes: { routes } }: { readonly routes: RoutesConfig },
  report: Report
): void {
  for (const [name, { websocket, methods, upstream, parts }] of Object.entries(routes)) {
    if (websocket === undefined) continue
    const place = ['routes', name, 'websocket']
    if (!methods.includes('GET')) {
      report('routes', place, 'needs GET among the methods: a WebSocket begins as one')
    }
    if (upstream === undefined) {
      report('routes', place, 'has no effect without an upstream of the route’s own')
    } else if (Object.keys(parts).length > 0) {
      report('routes', place, 'cannot be combined with parts')
    }
  }
}
