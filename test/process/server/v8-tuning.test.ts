import { fork } from 'node:child_process'
import { once } from 'node:events'
import t from 'tap'

t.test(
  'buffers in transit are freed without full collections',
  { skip: !process.versions.v8.startsWith('13.') && 'this V8 has no such setting' },
  async t => {
    const child = fork(new URL('../../support/transit.ts', import.meta.url), { execArgv: [] })
    const [{ major, minor }] = (await once(child, 'message')) as [{ major: number; minor: number }]
    // 800 MB: a young collection for each 8 MB. Untuned there are 10 full ones, and next to none of the others.
    t.ok(minor >= 50, `${minor} young collections`)
    t.ok(major <= 8, `${major} full collections`)
  }
)
