/** Search by time where lines are not in the order of their times. */
import { appendFileSync } from 'node:fs'
import t from 'tap'
import { parseKeepingDigits } from '../../../src/json/digits.ts'
import { chainsIn } from '../../../src/observability/audit/chain-files.ts'
import { auditKeys } from '../../../src/observability/audit/line.ts'
import { type AuditFilter, searchLedger } from '../../../src/observability/audit/search.ts'
import { ledgerFolder, ledgerIn, ledgerKey } from '../../support/ledger.ts'

const hourMs = 3_600_000

async function usersIn(folder: string, filter: AuditFilter) {
  const { lines, isWhole } = await searchLedger({
    folder,
    keys: auditKeys([ledgerKey]),
    filter,
    last: 100,
    parse: parseKeepingDigits,
    maxBytes: 64 * 1024 * 1024
  })
  return { users: lines.map(({ line, signed }) => `${String(line['user'])} ${signed}`), isWhole }
}

t.test('lines of a wrong clock, or of another writer, hide no newer ones before them', async t => {
  const folder = ledgerFolder(t)
  const now = Date.now()
  const ledger = ledgerIn(folder)
  const commit = (user: string, at: number) => ledger.commit({ kind: 'request', user, at })
  await commit('early', now - 3 * hourMs)
  await commit('alice', now - hourMs / 2)
  for (const user of ['w1', 'w2', 'w3']) await commit(user, 1000)
  await commit('bob', now)
  await ledger.close()
  const [file] = [...chainsIn(folder).values()].flat()
  const forged =
    '{"seq":99,"prev":"p","key":"12345678","at":"1970-01-01T00:00:00.000Z","kind":"request",' +
    `"user":"eve","mac":"${'A'.repeat(43)}"}\n`
  appendFileSync(file?.path ?? '', forged)
  t.same(await usersIn(folder, { kind: 'request', since: now - hourMs }), {
    users: ['alice true', 'bob true'],
    isWhole: true
  })
  t.match((await usersIn(folder, { user: 'eve' })).users, ['eve false'])
})

t.test('a search ends at so many older lines that nothing newer stands before them', async t => {
  const folder = ledgerFolder(t)
  const now = Date.now()
  const ledger = ledgerIn(folder, { maxFileBytes: 64 * 1024 * 1024 })
  await ledger.commit({ kind: 'request', user: 'never read', at: now })
  const older = { kind: 'request', user: 'older', at: now - 2 * hourMs } as const
  for (let count = 0; count < 20_001; count++) {
    if (count % 10_000 === 9999) await ledger.commit(older)
    else ledger.append(older)
  }
  await ledger.commit({ kind: 'request', user: 'last', at: now })
  await ledger.close()
  t.same((await usersIn(folder, { kind: 'request', since: now - hourMs })).users, ['last true'])
})
