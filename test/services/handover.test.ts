import t from 'tap'
import { Handover, movableStore } from '../../src/services/handover.ts'

t.test('after a failure within the transfer every store learns that its state is here', t => {
  const handover = new Handover()
  const away = new Map<string, boolean>()
  for (const name of ['first', 'second']) {
    const onMoved = (isAway: boolean) => away.set(name, isAway)
    const entries = () => [['table', 'key', 1] as const]
    handover.movable(name, { entries, load: () => {}, onMoved }, [])
  }
  const state = handover.take()
  state.next()
  t.same(Object.fromEntries(away), { first: true, second: true })
  handover.resume()
  t.equal([...state].length, 1, 'the rest is still read')
  t.same(Object.fromEntries(away), { first: false, second: false })
  t.end()
})

t.test('only the process that has the state has the latest users files', async t => {
  const handover = new Handover()
  const store = movableStore(handover, 'sessions')
  t.teardown(() => store.close())
  t.equal(await store.announceUsers('staff', 'digest'), true)
  const state = handover.take()
  t.ok([...state].length > 0)
  handover.moved(async () => true)
  t.equal(await store.announceUsers('staff', 'digest'), false)
  handover.resume()
  t.equal(await store.announceUsers('staff', 'digest'), true)
})
