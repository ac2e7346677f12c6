import t from 'tap'
import { readHar } from '../../../src/cli/init/har.ts'
import { Redaction } from '../../../src/cli/init/redaction.ts'

t.test('a path is compared with the secrets once, however often it was called', t => {
  let compared = 0
  class CountedRedaction extends Redaction {
    override clean(text: string): string {
      compared++
      return super.clean(text)
    }
  }
  const entries = Array.from({ length: 1000 }, (_, index) => ({
    request: {
      method: 'GET',
      url: `http://127.0.0.1/path-${index % 10}?n=${index}`,
      headers: [{ name: 'authorization', value: `Bearer token-of-${index}` }]
    },
    response: { content: { text: '[]' } }
  }))
  const { paths, hints } = readHar({ log: { entries } }, new CountedRedaction())
  t.equal(paths.length, 10)
  t.equal(hints.routes.length, 10)
  t.equal(compared, 10)
  t.end()
})
