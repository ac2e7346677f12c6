/** Rules for expectations: each expects something. */
import type { CheckedConfig, Report } from './report.ts'

export function checkExpectations({ routes }: Pick<CheckedConfig, 'routes'>, report: Report): void {
  for (const [name, expected] of Object.entries(routes.expect)) {
    const { status, code, upstream, upstreamPath, response } = expected
    if ((status ?? code ?? upstream ?? upstreamPath ?? response) !== undefined) continue
    const message = 'expects nothing: set status, code, upstream, upstreamPath or response'
    report(['expect', name], message)
  }
}
