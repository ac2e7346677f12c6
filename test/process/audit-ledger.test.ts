/** What the ledger does when its disk, or Redis, takes long. */
import { join } from 'node:path'
import t from 'tap'
import { ledgerIn, linesIn } from '../support/ledger.ts'
import { temporaryFolder } from '../support/temporary.ts'
import { until } from '../support/until.ts'

t.test('entries are written while Redis takes long, and later ones follow', async t => {
  const folder = temporaryFolder()
  const redis = Promise.withResolvers<void>()
  const heads = { set: async () => await redis.promise, remove: async () => {} }
  // Each entry ends its file.
  const ledger = ledgerIn(join(folder, 'audit'), { maxFileBytes: 1, heads })
  const users = () => linesIn(folder).flatMap(({ user }) => user ?? [])

  for (const user of ['1', '2', '3']) {
    ledger.append({ kind: 'request', user })
    await until('it is written', () => users().includes(user))
  }
  t.same(users(), ['1', '2', '3'])
  redis.resolve()
  await ledger.close()
})
