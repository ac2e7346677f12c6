/** The answers to the questions of a command: from options, or asked for at a terminal. */
import { Option } from 'commander'
import { type Invocation, type Io, UsageError } from '../command.ts'
import { askLine, type Question, readPassword } from '../prompt.ts'

const memberOf = (option: string) => new Option(`--${option}`).attributeName()

/** @param option of its methods: as on the command line, without its dashes */
export class Answers {
  #isAgain = false
  readonly values: Record<string, unknown>
  readonly io: Io
  readonly isInteractive: boolean

  constructor({ values, io }: Pick<Invocation, 'values' | 'io'>) {
    this.values = { ...values }
    this.io = io
    this.isInteractive = io.stdin.isTTY === true
  }

  text(option: string): string | undefined {
    return this.values[memberOf(option)] as string | undefined
  }

  /** From now on everything is asked for, and an empty line is the answer of before. */
  askAgain(): void {
    this.#isAgain = true
  }

  /** @throws UsageError for a wrong option; without a terminal, if there is no default */
  async ask(option: string, question: Question): Promise<string> {
    const former = this.text(option)
    const isKnown = former !== undefined && !this.#isAgain
    const initial = former ?? question.initial
    const answer = isKnown ? former : await this.#typed({ ...question, initial })
    if (answer === undefined) {
      throw new UsageError(`There is no terminal to ask: name it with --${option}.`)
    }
    const problem = question.check?.(answer)
    if (problem !== undefined) throw new UsageError(`--${option}: ${problem}`)
    this.values[memberOf(option)] = answer
    return answer
  }

  async word<T extends string>(option: string, message: string, words: readonly T[]): Promise<T> {
    const list = words.join(', ')
    const isWord = (text: string) => (words as readonly string[]).includes(text)
    const answer = await this.ask(option, {
      message: `${message} (${list})`,
      initial: words[0],
      check: text => (isWord(text) ? undefined : `one of ${list}`)
    })
    return answer as T
  }

  /** Asked for at a terminal alone. */
  async optional(message: string): Promise<string> {
    return (await this.#typed({ message: `${message} (empty: none)`, initial: '' })) ?? ''
  }

  async account(): Promise<string> {
    return await this.ask('user', { message: 'An account of the back-end: user name' })
  }

  async password(): Promise<string> {
    const variable = this.#isAgain ? undefined : this.text('password-env')
    return await readPassword('Its password: ', this.io, variable)
  }

  async #typed(question: Question): Promise<string | undefined> {
    return this.isInteractive ? await askLine(question, this.io) : question.initial
  }
}
