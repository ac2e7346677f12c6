/** A process whose only work is to send as many entries as the first word says through the relay. */
import { LedgerRelay } from '../../src/process/cluster/ledger-relay.ts'
import type { Audited } from '../../src/process/cluster/rpc.ts'

const relay = new LedgerRelay()
process.on('message', (audited: Audited) => relay.onReply(audited))
for (let count = 0; count < Number(process.argv[2]); count++) {
  relay.append({ kind: 'request', route: `route-${count}` })
}
