/** The command that closes routes for a time. */
import t from 'tap'
import { run } from '../support/command.ts'
import { testGateway } from '../support/gateway.ts'
import { testUpstream } from '../support/upstream.ts'

t.test('it closes routes, shows them, and opens them again', async t => {
  const { url } = await testUpstream(t.after)
  const gateway = await testGateway(t.after, {
    routes: {
      upstreams: { b: { url } },
      routes: { news: { path: '/api/news', upstream: 'b', access: 'public' } }
    }
  })
  const told = async (...words: string[]) =>
    await run(['maintenance', ...words, '--config', gateway.folder])
  t.match(await told(), { code: 0, out: /routes\.yaml: closes nothing\noperators: close nothing/ })
  const begun = await told('begin', '--until', '30m', '--route', 'news', '--message', 'Wait.')
  t.match(begun, {
    code: 0,
    out: /operators: local closes news until .*\nNo Redis is configured/
  })
  t.match(await gateway.call('/api/news'), { status: 503, json: { message: 'Wait.' } })
  const ofBegin = await told('end', '--method', 'POST')
  t.match(ofBegin, { code: 2, out: '', err: /unknown option '--method'/ })
  t.equal((await gateway.call('/api/news')).status, 503, 'it ended nothing')
  t.match(await told('end'), { code: 0, out: /operators: close nothing/ })
  t.equal((await gateway.call('/api/news')).status, 200)
  t.match(await told('begin', '--until', '8d'), { code: 1, err: /at most 7 days ahead/ })
  t.match(await told('--until', '30m'), { code: 2, err: /unknown option '--until'/ })
  t.match(await told('begin'), { code: 2, err: /--until <time>/ })
  t.match(await told('pause'), { code: 2, err: /no command "maintenance pause"/ })
})
