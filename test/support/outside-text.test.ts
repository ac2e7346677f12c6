import t from 'tap'
import { growthOf } from './growth.ts'
import { readers } from './readers.ts'

for (const { of, read, worst } of readers) {
  for (const [name, textOf] of Object.entries(worst)) {
    t.test(`${of[0] ?? read.toString().slice(0, 60)} reads ${name} in linear time`, async t => {
      const growth = growthOf(length => {
        const text = textOf(length)
        return () => read(text)
      })
      t.ok(growth.isLinear, growth.figures)
    })
  }
}
