/** Rules for the operators' listener. */
import type { CheckedConfig, Report } from './report.ts'

const secretPattern = /^[\x21-\x7e]{32,}$/
export const hostPattern = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])$/

export function checkOps(
  { gateway: { ops } }: Pick<CheckedConfig, 'gateway'>,
  report: Report
): void {
  if (ops.secret !== undefined && !secretPattern.test(ops.secret)) {
    const message =
      'has to be at least 32 visible ASCII characters without blanks; ' +
      'make one with `console-gateway generate-secret`'
    report('gateway', ['ops', 'secret'], message)
  }
  ops.hosts.forEach((host, index) => {
    if (hostPattern.test(host)) return
    const message = 'expected a host name alone, without scheme, port or path'
    report('gateway', ['ops', 'hosts', index], message)
  })
}
