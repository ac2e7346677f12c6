import t from 'tap'
import { createSeal } from '../../src/session/seal.ts'

const old = 'an older secret of at least thirty-two characters'
const young = 'a newer secret of at least thirty-two characters!'
const record = { token: 'very secret', name: 'Jörg 💡' }

t.test('what is sealed opens again, and shows nothing of itself', async t => {
  const seal = createSeal([young])
  const sealed = seal.close('key', record)
  t.same(seal.open('key', sealed), record)
  t.notMatch(sealed, 'secret')
  t.not(seal.close('key', record), sealed, 'never twice the same')
})

t.test('the newest secret seals, older ones still open', async t => {
  const sealed = createSeal([old]).close('key', record)
  t.same(createSeal([young, old]).open('key', sealed), record)
  const newest = createSeal([young, old]).close('key', record)
  t.equal(createSeal([old]).open('key', newest), undefined, 'sealed with the newest')
  t.equal(createSeal([young]).open('key', sealed), undefined, 'a dropped secret opens nothing')
  t.throws(() => createSeal([]), { message: 'a seal needs a secret' })
})

t.test('a record opens under its own key alone, and with none of its bits changed', async t => {
  const seal = createSeal([young])
  const sealed = seal.close('key', record)
  t.equal(seal.open('other', sealed), undefined)
  const [id, body = ''] = sealed.split('.')
  const bytes = Buffer.from(body, 'base64url')
  for (let at = 0; at < bytes.length; at += 5) {
    const changed = Buffer.from(bytes)
    changed[at] = (changed[at] ?? 0) ^ 1
    t.equal(seal.open('key', `${id}.${changed.toString('base64url')}`), undefined, `byte ${at}`)
  }
  const others = ['', '.', 'x', 'garbage.garbage', '{"__proto__":{}}']
  for (const nonsense of [...others, `${id}`, `${id}.`, `${id}.AAAA`]) {
    t.equal(seal.open('key', nonsense), undefined, nonsense)
  }
})

t.test('what is sealed for one purpose does not open for another', async t => {
  const [records, messages] = [createSeal([young]), createSeal([young], 'message')]
  const sealed = records.close('key', record)
  t.equal(messages.open('key', sealed), undefined)
  t.equal(records.open('key', messages.close('key', record)), undefined)
})
