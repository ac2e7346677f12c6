/** What a run of the tests prints: a line for each file as it ends, each failure at once, and all failures again at the very end, so that a log that is cut still tells them. */
import { Transform } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'

const point = /^( *)(not )?ok\b(?: \d+)?(?: - )?(.*?)(?: # time=([\d.]+)ms)?(?: \{)?$/u

/** How many lines of each failure are told again; all of them stand further up. */
const told = 40

export default class Reporter extends Transform {
  readonly #decoder = new StringDecoder()
  #rest = ''
  /** The subtests that we are in, outermost first: what each is called, and how many failures came before it. */
  #within: { title: string; before: number }[] = []
  readonly #failures: string[][] = []
  /** The failure that is being read: its lines, and how deep it stands. */
  #open: { lines: string[]; indent: string } | undefined

  override _transform(chunk: Buffer, _encoding: string, done: () => void) {
    const lines = (this.#rest + this.#decoder.write(chunk)).split('\n')
    this.#rest = lines.pop() ?? ''
    for (const line of lines) this.#read(line)
    done()
  }

  override _flush(done: () => void) {
    if (this.#rest !== '') this.#read(this.#rest)
    this.#close()
    if (this.#failures.length > 0) {
      this.push(`\n${this.#failures.length} failed:\n`)
      for (const lines of this.#failures) this.push(`\n${lines.slice(0, told).join('\n')}\n`)
      this.push(`\n${this.#failures.map(([title]) => title).join('\n')}\n`)
    }
    done()
  }

  #read(line: string) {
    if (this.#open !== undefined && line.startsWith(`${this.#open.indent}  `)) {
      const text = line.slice(this.#open.indent.length)
      if (text !== '  ---' && text !== '  ...') this.#open.lines.push(text)
      return
    }
    // a blank line may stand within a diagnosis
    if (line.trim() === '') return
    this.#close()
    const depth = line.search(/\S/u) / 4
    const subtest = /^ *# Subtest: (.*)$/u.exec(line)?.[1]
    if (subtest !== undefined) {
      this.#within = [
        ...this.#within.slice(0, depth),
        { title: subtest, before: this.#failures.length }
      ]
      return
    }
    const [, indent = '', failed, title = '', ms] = point.exec(line) ?? []
    if (!point.test(line)) {
      if (depth === 0 && !/^(TAP version|\d+\.\.)/u.test(line)) this.push(`${line}\n`)
      return
    }
    const [ended] = this.#within.slice(depth)
    if (depth === 0 && ended?.title === title) {
      this.push(
        `${failed === undefined ? 'ok    ' : 'FAILED'} ${title} ${Math.round(Number(ms))} ms\n`
      )
    }
    // what holds a failure fails with it, and says nothing more
    const known = ended?.title === title && this.#failures.length > ended.before
    this.#within = this.#within.slice(0, depth)
    if (failed === undefined || known || /# (TODO|SKIP)\b/iu.test(title)) return
    this.#open = {
      lines: [`✖ ${[...this.#within.map(part => part.title), title].join(' > ')}`],
      indent
    }
  }

  #close() {
    if (this.#open === undefined) return
    this.#failures.push(this.#open.lines)
    this.push(`\n${this.#open.lines.join('\n')}\n\n`)
    this.#open = undefined
  }
}
