/** A program that logs lines of many lengths, some of them longer than a page, and ends as it is told. */
import { standardOutput } from '../../src/observability/log.ts'

const output = standardOutput()
for (let number = 0; number < 2000; number++) {
  output.write(
    `${JSON.stringify({ number, text: 'ä€😀\u202e'.repeat(number % 500 === 499 ? 30_000 : number % 40) })}\n`
  )
}
if (process.argv[2] === 'process.exit()') process.exit()
