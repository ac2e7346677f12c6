/** The transcripts beside this file; test/support/transcript.ts says how they are written. */
import t from 'tap'
import { casesIn } from '../support/config-cases.ts'
import { play, type Scene } from '../support/transcript.ts'

for (const scene of casesIn<Scene>('test/cli/*.transcript.yaml')) {
  t.test(scene.title, async t => await play(t, scene))
}
