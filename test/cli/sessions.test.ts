import t from 'tap'
import { run } from '../support/command.ts'
import { configFolder, testGateway } from '../support/gateway.ts'
import { json, testUpstream } from '../support/upstream.ts'

t.test('operators list and close sessions of a running gateway', async t => {
  const gateway = await testGateway(t.after)
  const status = async (cookie: string) =>
    (await gateway.call('/api/account/profile', { cookie })).status
  const [alice, bob] = [await gateway.signIn('alice'), await gateway.signIn('bob')]
  const command = (...words: string[]) => run(['sessions', ...words, '-c', gateway.folder])
  const listed = await command('list', '1')
  t.equal(listed.code, 0)
  t.match(listed.out, /^SESSION +STARTED +LAST USED +ADDRESS +AGENT\n[\w-]{12} .*127\.0\.0\.1/)
  const asJson = JSON.parse((await command('list', '1', '--json')).out) as {
    sessions: Array<{ id: string }>
  }
  t.match(await command('close', '1', asJson.sessions[0]?.id ?? ''), {
    code: 0,
    out: 'closed: 1\n'
  })
  t.same([await status(alice), await status(bob)], [401, 200])
  t.match(await command('list', '1'), { code: 0, out: 'no sessions\n' })
  t.match(await command('close', '--everyone'), { code: 2, err: /--yes signs everyone out/ })
  t.equal(await status(bob), 200)
  t.match(await command('close', '--everyone', '--yes'), { code: 0, out: 'closed: everyone\n' })
  t.equal(await status(bob), 401)
})

t.test('a gateway that does not run is said as such', async t => {
  t.match(await run(['sessions', 'list', '1', '--config', await configFolder()]), {
    code: 1,
    err: /No gateway with the config folder .*Is it running/
  })
})

t.test(
  'users are named by user name or id; who is not clear, or not there, is said, and nothing is closed',
  async t => {
    const upstream = await testUpstream(t.after, json(200, { id: 'alice', name: 'carol' }))
    const gateway = await testGateway(t.after, {
      gateway: {
        login: {
          sources: {
            'users-file': { kind: 'users-file', file: 'users.yaml' },
            'b': {
              kind: 'upstream-login',
              upstream: 'b',
              path: '/login',
              user: { id: 'id', username: 'name' }
            }
          }
        },
        identity: { prefix: true }
      },
      routes: { upstreams: { b: { url: upstream.url } } }
    })
    const command = (...words: string[]) => run(['sessions', ...words, '-c', gateway.folder])
    const [alice, bob] = [await gateway.signIn('alice'), await gateway.signIn('bob')]
    const status = async (cookie: string) =>
      (await gateway.call('/api/account/profile', { cookie })).status
    t.match(
      gateway.log.find(({ msg, user }) => msg === 'request' && user === 'bob'),
      { userId: '2' }
    )
    t.match(await command('close', 'bob', '--by', 'id'), {
      code: 3,
      out: '',
      err: 'No session of a user with id bob.\n'
    })
    t.match(await command('close', 'nobody'), {
      code: 3,
      err: 'No session of a user with id or name nobody.\n'
    })
    t.equal(await status(bob), 200)
    t.match(await command('close', 'bob'), { code: 0, out: 'closed: 1\n' })
    t.same([await status(alice), await status(bob)], [200, 401])
    await gateway.signIn('carol')
    const unclear = await command('close', 'alice')
    t.equal(unclear.code, 3)
    t.match(
      unclear.err,
      /^"alice" may be any of these users; choose one with --by or --source:\nSOURCE +ID +NAME\n/
    )
    t.match(unclear.err, /^b +alice +carol$/m)
    t.match(unclear.err, /^users-file +1 +alice$/m)
    t.equal(await status(alice), 200)
    const all = await command('list')
    t.match(all.out, /^SESSION +STARTED +LAST USED +USER +ID +SOURCE +ADDRESS +AGENT\n/)
    t.match(all.out, / alice +1 +users-file /)
    t.match(all.out, / carol +alice +b /)
    t.match(await command('list', 'alice', '--by', 'name'), { code: 0, out: /^SESSION/ })
    t.match(await command('close', 'alice', '--source', 'users-file'), {
      code: 0,
      out: 'closed: 1\n'
    })
    t.equal(await status(alice), 401)
  }
)
