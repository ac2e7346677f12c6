/** A process whose files may not grow further: it writes acts to a ledger until one is refused. */
import { headFiles } from '../../src/observability/audit/head.ts'
import { createLedger } from '../../src/observability/audit/ledger.ts'
import { auditKeys } from '../../src/observability/audit/line.ts'

const [folder = '', key = ''] = process.argv.slice(2)
const [newest] = auditKeys([key])
if (newest === undefined) throw new Error('no key')
const events: unknown[] = []
const ledger = createLedger({
  folder,
  keys: [newest],
  maxFileBytes: 1024 ** 2,
  maxFileMs: 86_400_000,
  keepMs: 0,
  now: Date.now,
  heads: headFiles(folder),
  log: {
    info: () => {},
    warn: () => {},
    error: (fields: object) => events.push((fields as { event: string }).event)
  }
})
const outcomes: string[] = []
const commit = async () => {
  const reason = ledger.commit({ kind: 'act' }).then(
    () => 'written',
    (error: Error) => error.message
  )
  outcomes.push(await reason)
}
while (outcomes.at(-1) === undefined || outcomes.at(-1) === 'written') await commit()
ledger.append({ kind: 'request' })
await commit()
const { failing, waiting } = ledger.status()
process.stdout.write(JSON.stringify({ outcomes, events, reason: failing?.reason, waiting }))
process.exit()
