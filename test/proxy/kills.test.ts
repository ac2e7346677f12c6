/** A short run of what `test/long/upstreams.chaos.ts` does for a minute. */
import t from 'tap'
import { killUnderLoad } from '../support/upstream-kills.ts'

t.test('addresses that are killed under load cost no collected GET', async t => {
  const { kills, requests } = await killUnderLoad(t, 5)
  // A busy machine makes fewer of both.
  t.ok(kills > 1 && requests > 10 * kills, `${kills} kills, ${requests} requests`)
})
