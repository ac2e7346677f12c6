import { readFileSync } from 'node:fs'
import t from 'tap'
import { drawTerminal, pictureFile, recordInit } from '../../support/init-recording.ts'

t.test(
  'the picture in README shows what init prints today (node test/support/init-recording.ts)',
  async t => {
    t.equal(drawTerminal(await recordInit()), readFileSync(pictureFile, 'utf8'))
  }
)
