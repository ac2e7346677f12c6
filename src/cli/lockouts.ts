/** `lockouts`: lists and lifts locks of sign-in, through the listener of a running gateway. */
import { jsonText } from './output.ts'
import type { LockoutJson } from '../admin/lockouts.ts'
import type { Command, GatewayAddress } from './command.ts'
import { askAdmin, table } from './admin-client.ts'

export const lockouts: Command = {
  summary: 'list and lift locks of sign-in after too many failures',
  ways: [
    { words: 'list', takes: ['account', 'address', 'json'] },
    { words: 'lift', needs: ['account'], takes: ['address', 'json'] },
    { words: 'lift', needs: ['address'], takes: ['account', 'json'] }
  ],
  details: `
A lock ends by itself; \`lift\` ends it now, in all replicas, and forgets the
failures. An account and an address are locked separately: name both if both are
locked. Sessions are not touched.

Examples:
  console-gateway lockouts list
  console-gateway lockouts lift --account alice --address 203.0.113.7`,
  options: {
    account: { type: 'string', value: 'NAME', description: 'the user name, in any spelling' },
    address: {
      type: 'string',
      value: 'IP',
      description: 'an address; of an IPv6 address its whole network'
    }
  },
  asksGateway: true,
  run: async ({ gateway, rest: [what], values: { account, address }, json }) => {
    const subject = {
      ...(account !== undefined && { account: String(account) }),
      ...(address !== undefined && { address: String(address) })
    }
    const response =
      what === 'list'
        ? await askEither(gateway, `?${new URLSearchParams(subject).toString()}`)
        : await askEither(gateway, '/lift', subject)
    const formatted =
      what === 'list'
        ? formatLockouts(locksOf(response), Number(response['total']))
        : `lifted: ${String(response['lifted'])}\n`
    process.stdout.write(json ? jsonText(response) : formatted)
    return 0
  }
}

/** The name of 0.2.0, kept for one release. */
export const bans: Command = { ...lockouts, summary: 'the former name of lockouts' }

/** A gateway of 0.2.0 has the former path only. */
async function askEither(gateway: GatewayAddress, end: string, body?: object) {
  return askAdmin(gateway, `/lockouts${end}`, body, `/bans${end}`)
}

/** A gateway of 0.2.0 has the former member only. */
function locksOf({ lockouts: locks, bans: former }: Record<string, unknown>) {
  return (locks ?? former) as LockoutJson[]
}

function formatLockouts(shown: readonly LockoutJson[], total: number): string {
  if (total === 0) return 'nobody is locked out\n'
  const more = total > shown.length ? `and ${total - shown.length} more\n` : ''
  return (
    table([['WHAT', 'OF', 'UNTIL'], ...shown.map(({ kind, of, until }) => [kind, of, until])]) +
    more
  )
}
