import t from 'tap'
import { isolated } from '../../../src/admin/page/plain-text.ts'

t.test('text from right to left is isolated, and marks of direction are shown', t => {
  t.equal(isolated('alice 12'), 'alice 12')
  t.equal(isolated('\u05d3\u05d5\u05d3'), '\u2068\u05d3\u05d5\u05d3\u2069')
  for (const mark of ['\u061c', '\u200e', '\u200f', '\u202a', '\u202e', '\u2066', '\u2069']) {
    const code = mark.charCodeAt(0).toString(16).padStart(4, '0')
    t.equal(isolated(`a${mark}b${mark}`), `a\\u${code}b\\u${code}`)
  }
  t.equal(isolated('\u2069\u05d3'), '\u2068\\u2069\u05d3\u2069', 'it cannot end its isolation')
  t.end()
})
