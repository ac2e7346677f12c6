import t from 'tap'
import { run } from '../support/command.ts'
import { configFolder, testGateway } from '../support/gateway.ts'
import { freePort } from '../support/ports.ts'

t.test('operators list and close sessions of a running gateway', async t => {
  const folder = await configFolder({ gateway: { ops: { listen: `127.0.0.1:${await freePort()}` } } })
  const gateway = await testGateway(t.after, folder)
  const status = async (cookie: string) => (await gateway.call('/api/account/profile', { cookie })).status
  const [alice, bob] = [await gateway.signIn('alice'), await gateway.signIn('bob')]
  const command = (...words: string[]) => run(['sessions', ...words, '--config', folder])
  const listed = await command('list', '1')
  t.equal(listed.code, 0)
  t.match(listed.out, /^SESSION +STARTED +LAST USED +ADDRESS +AGENT\n[\w-]{12} .*127\.0\.0\.1/)
  const asJson = JSON.parse((await command('list', '1', '--json')).out) as { sessions: Array<{ id: string }> }
  t.match(await command('close', '1', asJson.sessions[0]?.id ?? ''), { code: 0, out: 'closed: 1\n' })
  t.same([await status(alice), await status(bob)], [401, 200])
  t.match(await command('list', '1'), { code: 0, out: 'no sessions\n' })
  t.match(await command('close', '--everyone'), { code: 0, out: 'closed: everyone\n' })
  t.equal(await status(bob), 401)
})

t.test('words that make no sense are told the right ones; a gateway that does not run is said as such', async t => {
  const folder = await configFolder({ gateway: { ops: { listen: `127.0.0.1:${await freePort()}` } } })
  for (const words of [[], ['list'], ['close'], ['close', '1', '--everyone'], ['forget', '1']]) {
    const { code, err } = await run(['sessions', ...words, '--config', folder])
    t.equal(code, 2, words.join(' '))
    t.match(err, 'Usage: console-gateway sessions')
  }
  const away = await run(['sessions', 'list', '1', '--config', folder])
  t.equal(away.code, 1)
  t.match(away.err, /No gateway answers on 127\.0\.0\.1:\d+.*Is it running/)
})
