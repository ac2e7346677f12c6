/** A line of the ledger for people. Clients chose parts of it: nothing reaches the terminal raw. */
import type { FoundLine } from '../../observability/audit/search.ts'
import { printable } from '../../observability/unprintable.ts'

/** Not shown: they serve the chain alone. */
const chainMembers = new Set(['seq', 'prev', 'key', 'mac', 'at', 'kind'])

/** `2026-12-01T06:00:00.000Z request user=alice route=orders …`; `!` marks a line not signed so. */
export function lineInWords({ signed, line }: FoundLine): string {
  const { at, kind } = line
  const members = Object.entries(line)
    .filter(([name]) => !chainMembers.has(name))
    .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
  return printable(`${signed ? '' : '! '}${String(at)} ${String(kind)} ${members.join(' ')}`)
}
