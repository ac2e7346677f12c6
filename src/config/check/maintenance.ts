/** Rules for maintenance: its routes exist, and its end is in the future. */
import type { Report } from './report.ts'
import { nearest } from '../schema/faults.ts'
import { endOf, type MaintenanceConfig } from '../schema/maintenance.ts'

export function checkMaintenance(
  {
    routes: { maintenance, routes }
  }: { readonly routes: { readonly maintenance?: MaintenanceConfig; readonly routes: object } },
  report: Report
): void {
  if (maintenance === undefined) return
  const routeNames = ['login', ...Object.keys(routes)]
  maintenance.routes.forEach((route, index) => {
    if (!routeNames.includes(route)) {
      report(
        'routes',
        ['maintenance', 'routes', index],
        `there is no route "${route}".${nearest(route, routeNames)}`
      )
    }
  })
  if (maintenance.until === undefined) return
  const end = endOf(maintenance.until)
  if (Number.isNaN(end)) {
    report(
      'routes',
      ['maintenance', 'until'],
      `is not a valid time: expected one such as 2026-12-01T06:00:00Z, found "${maintenance.until}"`
    )
  } else if (end < Date.now()) {
    report('routes', ['maintenance', 'until'], 'is in the past: no route is closed', 'warning')
  }
}
