/** Rules for the audit ledger: its folder, long enough keys, routes that exist. */
import { existsSync, statfsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { nearest } from '../schema/faults.ts'
import type { CheckedConfig, Report } from './report.ts'

const minKeyLength = 32
const memberPath = /^[^.\s]+(\.[^.\s]+)*$/
const minFileBytes = 4096
/** Members that hold credentials by their name. */
const secretNames = /password|passwd|secret|token|credential|pwd/i

export function checkAudit(
  {
    folder,
    gateway: { audit },
    routes: { routes }
  }: {
    readonly folder: string
    readonly gateway: Pick<CheckedConfig['gateway'], 'audit'>
    readonly routes: { readonly routes: object }
  },
  report: Report
): void {
  if (audit === undefined) return
  if (audit.to === 'files' && isOfKernel(resolve(folder, audit.folder))) {
    const message =
      'is in a file system of the kernel, such as /proc, where no file can be made: name ' +
      'a folder on a disk, such as /var/lib/console-gateway/audit'
    report(['audit', 'folder'], message)
  }
  audit.key.forEach((key, index) => {
    if (key.length >= minKeyLength) return
    const message =
      'the key has fewer than 32 characters; make one with `console-gateway generate-secret`'
    report(audit.key.length === 1 ? ['audit', 'key'] : ['audit', 'key', index], message)
  })
  if (audit.maxSize < minFileBytes) report(['audit', 'maxSize'], 'is less than 4KiB')
  const names = Object.keys(routes)
  for (const [route, members] of Object.entries(audit.fields)) {
    if (!names.includes(route)) {
      // A warning: gateway.yaml needs a restart, routes do not.
      const message = `there is no route "${route}": nothing is recorded.${nearest(route, names)}`
      report(['audit', 'fields', route], message, { warning: true })
    }
    for (const [member, how] of Object.entries(members)) {
      const place = ['audit', 'fields', route, member]
      if (!memberPath.test(member)) {
        report(place, 'expected names joined by dots, such as customer.iban')
      } else if (secretNames.test(member) && how !== 'hash') {
        const message = 'looks like a secret, which must not stand in a ledger'
        report(place, message, { warning: true })
      }
    }
  }
}

/** As Linux numbers them (statfs(2)): proc, sysfs, cgroup v2. */
const kernelFileSystems: ReadonlySet<number> = new Set([0x9fa0, 0x62656572, 0x63677270])

/** Whether a folder is, or would be, where the kernel shows its state as files. */
function isOfKernel(folder: string): boolean {
  let existing = folder
  while (!existsSync(existing) && dirname(existing) !== existing) existing = dirname(existing)
  try {
    return kernelFileSystems.has(statfsSync(existing).type)
  } catch {
    return false
  }
}
