/** A process whose files may not grow further: it writes acts to a ledger until one is refused. */
import { ledgerIn } from './ledger.ts'

const [folder = ''] = process.argv.slice(2)
const events: unknown[] = []
const ignore = () => {}
const error = (fields: object) => events.push((fields as { event: string }).event)
const ledger = ledgerIn(folder, { log: { info: ignore, error } })
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
const { failing, waiting } = ledger
process.stdout.write(JSON.stringify({ outcomes, events, reason: failing?.reason, waiting }))
process.exit()
