/** What the ledger does when its disk, or Redis, takes long. */
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import t from 'tap'
import { ledgerIn, linesIn } from '../support/ledger.ts'
import { temporaryFolder } from '../support/temporary.ts'
import { until } from '../support/until.ts'

t.test('an entry that comes while a slow one is written does not hold up later ones', async t => {
  const folder = temporaryFolder()
  // Each entry ends its file, and the end of a file waits for Redis.
  const ledger = ledgerIn(join(folder, 'audit'), { maxFileBytes: 1 })
  const redis = Promise.withResolvers<void>()
  ledger.storeHeads({ set: async () => await redis.promise, remove: async () => {} })
  const users = () => linesIn(folder).flatMap(({ user }) => user ?? [])

  ledger.append({ kind: 'request', user: '1' })
  await until('the first is written', () => users().length === 1)
  ledger.append({ kind: 'request', user: '2' })
  // Longer than entries wait for others.
  await wait(200)
  t.same(users(), ['1'])
  redis.resolve()
  await until('the second is written', () => users().length === 2)
  ledger.append({ kind: 'request', user: '3' })
  await until('the third is written', () => users().length === 3, 5000)
  await ledger.close()
})
