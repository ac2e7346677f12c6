/** Rules for the audit ledger: its keys are long enough, its routes exist. */
import { nearest } from '../schema/faults.ts'
import type { CheckedConfig, Report } from './report.ts'

const minKeyLength = 32
const memberPath = /^[^.\s]+(\.[^.\s]+)*$/
const minFileBytes = 4096
const minFileMs = 1000
/** Members that hold credentials by their name. */
const secretNames = /password|passwd|secret|token|credential|pwd/i

export function checkAudit(
  {
    gateway: { audit },
    routes: { routes }
  }: {
    readonly gateway: Pick<CheckedConfig['gateway'], 'audit'>
    readonly routes: { readonly routes: object }
  },
  report: Report
): void {
  if (audit === undefined) return
  audit.key.forEach((key, index) => {
    if (key.length >= minKeyLength) return
    const message =
      'the key has fewer than 32 characters; make one with `console-gateway generate-secret`'
    report('gateway', audit.key.length === 1 ? ['audit', 'key'] : ['audit', 'key', index], message)
  })
  if (audit.maxSize < minFileBytes) report('gateway', ['audit', 'maxSize'], 'is less than 4KiB')
  if (audit.maxAge < minFileMs) report('gateway', ['audit', 'maxAge'], 'is less than 1s')
  const names = Object.keys(routes)
  for (const [route, members] of Object.entries(audit.fields)) {
    if (!names.includes(route)) {
      // A warning: gateway.yaml needs a restart, routes do not.
      const message = `there is no route "${route}": nothing is recorded.${nearest(route, names)}`
      report('gateway', ['audit', 'fields', route], message, 'warning')
    }
    for (const [member, how] of Object.entries(members)) {
      const place = ['audit', 'fields', route, member]
      if (!memberPath.test(member)) {
        report('gateway', place, 'expected names joined by dots, such as customer.iban')
      } else if (secretNames.test(member) && how !== 'hash') {
        const message = 'looks like a secret, which must not stand in a ledger'
        report('gateway', place, message, 'warning')
      }
    }
  }
}
