/** The answers to the questions of a command: from options, or asked for at a terminal. */
import { Option } from 'commander'
import { type Invocation, type Io, UsageError } from '../command.ts'
import { askLine, type Question, readPassword } from '../prompt.ts'

export class Answers {
  readonly #values: Invocation['values']
  readonly #given = new Map<string, string>()
  #isAgain = false
  readonly io: Io
  readonly isInteractive: boolean

  constructor({ values, io }: Pick<Invocation, 'values' | 'io'>) {
    this.#values = values
    this.io = io
    this.isInteractive = io.stdin.isTTY === true
  }

  text(option: string): string | undefined {
    const value = this.#value(option)
    return typeof value === 'string' ? value : undefined
  }

  list(option: string): readonly string[] {
    return [this.#value(option) ?? []].flat().map(String)
  }

  isSet(option: string): boolean {
    return this.#value(option) === true
  }

  /** @param option as it is typed, without its dashes */
  #value(option: string): unknown {
    return this.#values[new Option(`--${option}`).attributeName()]
  }

  /** From now on everything is asked for, and an empty line is the answer of before. */
  askAgain(): void {
    this.#isAgain = true
  }

  /**
   * An option, or what is typed at the terminal.
   * @throws UsageError for a wrong option; without a terminal, if there is no default
   */
  async ask(option: string, question: Question): Promise<string> {
    const told = this.#isAgain ? undefined : this.text(option)
    const initial = this.#given.get(option) ?? question.initial
    const answer = told ?? (await this.#typed({ ...question, initial }))
    if (answer === undefined) {
      throw new UsageError(`There is no terminal to ask: name it with --${option}.`)
    }
    const problem = question.check?.(answer)
    if (problem !== undefined) throw new UsageError(`--${option}: ${problem}`)
    this.#given.set(option, answer)
    return answer
  }

  /** Asked at a terminal for what could not be found; undefined for an empty line. */
  async optional(message: string): Promise<string | undefined> {
    return (await this.#typed({ message: `${message} (empty: unknown)`, initial: '' })) || undefined
  }

  async #typed(question: Question): Promise<string | undefined> {
    return this.isInteractive ? await askLine(question, this.io) : question.initial
  }

  async account(): Promise<string> {
    return await this.ask('user', { message: 'An account of the back-end: user name' })
  }

  async password(): Promise<string> {
    const variable = this.#isAgain ? undefined : this.text('password-env')
    return await readPassword('Its password: ', this.io, variable)
  }
}
