/** `limits`: how limits are used, against gateways that run; and the names by which callers are asked for. */
import t, { type Test } from 'tap'
import { runProcess as run } from '../../support/command.ts'
import { configFolder, type Files, testGateway } from '../../support/gateway.ts'
import { freePort } from '../../support/ports.ts'
import { signInAt } from '../../support/sign-in.ts'
import { json, testUpstream } from '../../support/upstream.ts'

const profile = '/api/account/profile'

async function served(t: Test, files: Files) {
  const ops = { role: 'admin', listen: `127.0.0.1:${await freePort()}` }
  const folder = await configFolder({ ...files, gateway: { ...files.gateway, ops } })
  const gateway = await testGateway(t.after, folder)
  return { gateway, command: async (...words: string[]) => run(['limits', ...words, '-c', folder]) }
}

t.test('each limit has its highest use, who is over it, and who is nearest', async t => {
  const { gateway, command } = await served(t, {
    limits: {
      limits: {
        few: { by: 'user', max: 4, window: '1h', routes: ['profile'] },
        shy: { by: 'user', max: 2, window: '1h', mode: 'shadow', routes: ['profile'] },
        wide: { by: 'address', max: 100, window: '1h' }
      }
    }
  })
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
  const metrics = await (await gateway.ops('/metrics')).text()
  t.match(metrics, 'console_gateway_limit_highest_use{limit="few"} 4\n')
})

t.test('a user of a back-end is shown and reset by name, as by id', async t => {
  const user = { id: '4711', username: 'anna' }
  const backend = await testUpstream(t.after, json(200, { user }))
  const { gateway: at, routes } = signInAt(backend.url, {
    user: { id: 'user.id', username: 'user.username' }
  })
  const { gateway, command } = await served(t, {
    gateway: at,
    routes,
    limits: { limits: { few: { by: 'user', max: 2, window: '1h' } } }
  })
  const cookie = await gateway.signIn('anna')
  const call = async () => (await gateway.call(profile, { cookie })).status
  t.same([await call(), await call(), await call()], [200, 200, 429])
  for (const caller of ['anna', '4711']) {
    t.match(await command('show', caller), { code: 3, out: /^few +- +enforce +2 +2 +1\d\d\d s/m })
  }
  t.match(await command('reset', 'anna'), { code: 0, out: 'reset: 1\n' })
  t.equal(await call(), 200)
  t.match(await command('show', 'bert'), { code: 0, out: /^no limit has counts of bert now/ })
})
