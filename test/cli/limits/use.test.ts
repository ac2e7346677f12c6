/** `limits`: how limits are used, against a gateway that runs. */
import t from 'tap'
import { run } from '../../support/command.ts'
import { testGateway } from '../../support/gateway.ts'

const profile = '/api/account/profile'

t.test('each limit has its highest use, who is over it, and who is nearest', async t => {
  const gateway = await testGateway(t.after, {
    limits: {
      limits: {
        few: { by: 'user', max: 4, window: '1h', routes: ['profile'] },
        shy: { by: 'user', max: 2, window: '1h', mode: 'shadow', routes: ['profile'] },
        wide: { by: 'address', max: 100, window: '1h' }
      }
    }
  })
  const command = (...words: string[]) => run(['limits', ...words, '-c', gateway.folder])
  t.match(await command(), { code: 0, out: /^few +enforce +4 +- +- +- +-$/m })
  const [alice, bob] = [await gateway.signIn('alice'), await gateway.signIn('bob')]
  for (let count = 0; count < 3; count++) await gateway.call(profile, { cookie: alice })
  await gateway.call(profile, { cookie: bob })
  await gateway.call(profile)
  const { code, out } = await command()
  t.equal(code, 0, 'a limit in shadow refuses nobody')
  t.match(out, /^few +enforce +4 +3 alice +3 alice +- +3 alice$/m)
  t.match(out, /^shy +shadow +2 +2 alice +2 alice +alice +1 bob$/m)
  t.match(out, /^wide +enforce +100 +1 127\.0\.0\.1 +/m)
  for (let count = 0; count < 2; count++) await gateway.call(profile, { cookie: alice })
  const over = await command()
  t.equal(over.code, 3)
  t.match(over.out, /^few +enforce +4 +4 alice +4 alice +alice +1 bob$/m)
  t.match(await command('show', 'alice'), { code: 3, out: /^few +- +enforce +4 +4 +\d{3,4} s/m })
  t.match(await command('reset', 'alice'), { code: 0, out: 'reset: 2\n' })
  t.match(await command('show', 'alice'), { code: 0, out: /^no limit has counts of alice now/ })
  const metrics = await (await gateway.ops('/metrics')).text()
  t.match(metrics, 'console_gateway_limit_highest_use{limit="few"} 4\n')
})
