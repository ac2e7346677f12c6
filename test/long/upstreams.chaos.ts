import t from 'tap'
import { killUnderLoad } from '../support/upstream-kills.ts'

const seconds = Number(process.env['CHAOS_SECONDS'] ?? 60)

t.test(
  'an address killed each second: no collected GET fails, nothing is spliced or sent twice',
  { timeout: (seconds + 120) * 1000 },
  async t => t.comment(JSON.stringify(await killUnderLoad(t, seconds)))
)
