/** `audit`: verifies, searches and follows the files of the audit ledger. */
import { type Command, type Invocation, UsageError } from '../command.ts'
import { type LedgerPlace, placeOf } from './place.ts'
import { searchCommand } from './search.ts'
import { tailCommand } from './tail.ts'
import { verifyCommand } from './verify.ts'

type Subcommand = (place: LedgerPlace, invocation: Invocation) => Promise<number>

const subcommands: Readonly<Record<string, Subcommand>> = {
  verify: verifyCommand,
  search: searchCommand,
  tail: tailCommand
}

const place = ['folder', 'key-file']
const filters = ['user', 'kind', 'route', 'request-id', 'since', 'until']

export const audit: Command = {
  summary: 'verify the audit ledger, search it, or follow it',
  ways: [
    { words: 'verify', takes: [...place, 'json'] },
    { words: 'search', takes: [...filters, 'last', ...place, 'json'] },
    { words: 'tail', takes: ['follow', ...filters, 'last', ...place, 'json'] }
  ],
  details: `
Reads the files of this machine; no gateway has to run. The folder and the key are
those of gateway.yaml. On another machine name them: --folder and --key-file, a file
with the key, or with several in lines.

verify says whether a line was changed, cut, moved or added, and whether a file is
missing. It names file and line. That the end was not cut shows only the head: it is
read from Redis, else from the file beside the ledger, which hides nothing from who
can write both.

search prints the last matching lines, the oldest first. USER is a user's name or id,
or an operator's name. TIME is a time such as 2026-12-01T06:00Z, or a duration such
as 24h: that long ago. A line whose signature does not hold is marked with "!".

Examples:
  console-gateway audit verify
  console-gateway audit search --user alice --since 24h
  console-gateway audit search --request-id 7f3c --json
  console-gateway audit tail -f
Exit codes: of verify 0 as it was written, 1 changed or unreadable, 3 something cannot
be shown (entries were lost, the head is missing); of search 3 if nothing matches.`,
  options: {
    'folder': { type: 'string', value: 'DIR', description: 'the folder of the ledger' },
    'key-file': { type: 'string', value: 'FILE', description: 'a file with the key' },
    'user': { type: 'string', value: 'NAME', description: 'lines of this user or operator' },
    'kind': { type: 'string', value: 'KIND', description: 'lines of this kind, such as act' },
    'route': { type: 'string', value: 'NAME', description: 'lines of this route' },
    'request-id': { type: 'string', value: 'ID', description: 'lines of this request' },
    'since': { type: 'string', value: 'TIME', description: 'lines from this time on' },
    'until': { type: 'string', value: 'TIME', description: 'lines up to this time' },
    'last': { type: 'string', value: 'N', description: 'the last N lines (default: 100, tail 10)' },
    'follow': { type: 'boolean', short: 'f', description: 'print lines as they are written' }
  },
  run: async invocation => {
    const subcommand = subcommands[invocation.rest[0] ?? '']
    if (subcommand === undefined) throw new UsageError('Name a subcommand.')
    const ledger = placeOf(invocation)
    try {
      return await subcommand(ledger, invocation)
    } finally {
      ledger.close()
    }
  }
}
