import Fastify from 'fastify'
import t from 'tap'
import { Type } from 'typebox'
import { type ActEntry, addAct } from '../../src/admin/acts.ts'
import { addOpsScope } from '../../src/admin/api.ts'
import { GatewayError } from '../../src/errors/errors.ts'

/** An operators' listener with one act, and what happened in their order. */
function withAct({ isFull = false, fails = false } = {}) {
  const steps: string[] = []
  const entries: ActEntry[] = []
  const ops = Fastify()
  ops.decorateRequest('operator', undefined)
  ops.decorate('acts', new Map())
  ops.decorate('ledger', {
    check: () => {
      if (isFull) throw new Error('no space left on device')
    },
    commit: async (entry: ActEntry) => {
      entries.push(entry)
      await new Promise(setImmediate)
      steps.push('on disk')
    },
    append: (entry: ActEntry) => {
      entries.push(entry)
      steps.push(entry.event)
    }
  })
  ops.addHook('onRequest', async request => {
    request.operator = { name: 'olga', via: 'session' }
  })
  addOpsScope(ops, scope =>
    addAct(scope, {
      path: '/lamps/off',
      kind: 'lamps.off',
      summary: 'Turns lamps off.',
      body: Type.Object({ room: Type.String() }),
      run: async () => {
        steps.push('run')
        if (fails) throw new GatewayError('session.unavailable')
        return { off: 4 }
      }
    })
  )
  const post = async (payload: object) =>
    await ops.inject({
      method: 'POST',
      url: '/ops/api/lamps/off',
      headers: { host: 'localhost' },
      payload
    })
  return { post, steps, entries }
}

t.test('an act is on disk, with what became of it, before it is answered', async t => {
  const { post, steps, entries } = withAct()
  t.same((await post({ room: 'hall' })).json(), { off: 4 })
  t.same(steps, ['run', 'on disk'])
  const operator = { name: 'olga', via: 'session' }
  t.match(entries, [
    { event: 'act.done', act: 'lamps.off', operator, details: { room: 'hall', off: 4 } }
  ])
  t.equal(entries.length, 1)
})

t.test('an act that failed stands in the ledger with its code', async t => {
  const { post, entries } = withAct({ fails: true })
  t.equal((await post({ room: 'hall' })).statusCode, 503)
  t.match(entries[0], { event: 'act.failed', code: 'session.unavailable' })
})

t.test('an act does not happen while the ledger cannot be written', async t => {
  const { post, steps, entries } = withAct({ isFull: true })
  const response = await post({ room: 'hall' })
  t.equal(response.statusCode, 503)
  t.match(response.json(), { code: 'ops.ledger' })
  t.same(steps, ['act.failed'])
  t.match(entries, [{ event: 'act.failed', act: 'lamps.off', code: 'ops.ledger' }])
  t.equal(entries[0]?.requestId, response.json().requestId)
})
