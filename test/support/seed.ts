/** The seed of this file's generated tests: another one each run. `TEST_SEED=N` repeats a run. */
import { randomInt } from 'node:crypto'
import { relative } from 'node:path'

export const seed = Number(process.env['TEST_SEED'] ?? randomInt(2 ** 31))

process.stderr.write(`TEST_SEED=${seed} ${relative('', process.argv[1] ?? '')}\n`)
