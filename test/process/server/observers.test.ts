/** What a process tells operators about itself. */
import t from 'tap'
import { Observers } from '../../../src/process/server/observers.ts'

t.test('an observer of a kind answers its queries, with the id of the process', async t => {
  const observers = new Observers()
  observers.serve('requests', async query => ({ query }))
  t.same(await observers.ask('requests', { last: 5 }), {
    pid: process.pid,
    value: { query: { last: 5 } }
  })
})

t.test('a kind that nothing serves is refused', async t => {
  await t.rejects(new Observers().ask('weather', {}), /nothing to observe of kind "weather"/)
})
