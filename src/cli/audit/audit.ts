/** `audit`: verifies, searches and follows the files of the audit ledger. */
import { type Invocation, UsageError } from '../command.ts'
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

export async function audit(invocation: Invocation): Promise<number> {
  const subcommand = subcommands[invocation.rest[0] ?? '']
  if (subcommand === undefined) throw new UsageError('Name a subcommand.')
  const ledger = placeOf(invocation)
  try {
    return await subcommand(ledger, invocation)
  } finally {
    ledger.close()
  }
}
