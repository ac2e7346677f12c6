/** Rules for maintenance: it names routes that are there and a time that is to come. */
import type { Report } from './report.ts'
import { nearest } from '../schema/faults.ts'
import type { MaintenanceConfig } from '../schema/maintenance.ts'

/** Rules beyond the schema. */
export function checkMaintenance(
  {
    routes: { maintenance, routes }
  }: { readonly routes: { readonly maintenance?: MaintenanceConfig; readonly routes: object } },
  report: Report
): void {
  if (maintenance === undefined) return
  const known = ['login', ...Object.keys(routes)]
  maintenance.routes.forEach((route, index) => {
    if (!known.includes(route)) {
      report(
        'routes',
        ['maintenance', 'routes', index],
        `there is no route "${route}".${nearest(route, known)}`
      )
    }
  })
  if (maintenance.until === undefined) return
  const end = Date.parse(maintenance.until)
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
