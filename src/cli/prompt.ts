import { text as readAll } from 'node:stream/consumers'
import { Option } from 'commander'
import { CommandError, type Invocation, type Io, UsageError } from './command.ts'

const maxLength = 1024
const advisedLength = 8

interface Limits {
  readonly initial?: string | undefined
  readonly check?: ((answer: string) => string | undefined) | undefined
}

export async function readNewPassword(io: Io): Promise<string> {
  const password = await readPassword('Password: ', io)
  if (io.stdin.isTTY === true && (await askHidden('Again: ', io)) !== password) {
    throw new CommandError('The passwords do not match.')
  }
  if (password.length < advisedLength) {
    io.stderr.write('Note: fewer than 8 characters; 15 and more are advised (NIST SP 800-63B-4).\n')
  }
  return password
}

export async function readPassword(question: string, io: Io): Promise<string> {
  const { stdin } = io
  const text = stdin.isTTY === true ? await askHidden(question, io) : await readAll(stdin)
  const password = text.replace(/\r?\n$/, '')
  if (password === '' || password.length > maxLength) {
    throw new CommandError(`A password has 1 to ${maxLength} characters.`)
  }
  return password
}

async function askLine(message: string, { initial = '', check }: Limits, io: Io) {
  const { text } = await import('@clack/prompts')
  const answer = text({
    ...streams(io),
    message,
    placeholder: initial,
    defaultValue: initial,
    validate: typed => check?.(typed?.trim() || initial)
  })
  return (await answered(answer)).trim()
}

export async function askYes(message: string, io: Io): Promise<boolean> {
  const { confirm } = await import('@clack/prompts')
  return await answered(confirm({ ...streams(io), message, initialValue: false }))
}

async function askHidden(message: string, io: Io): Promise<string> {
  const { password } = await import('@clack/prompts')
  return (await answered(password({ ...streams(io), message }))) || ''
}

function streams({ stdin, stderr }: Io) {
  // A terminal that does not know its width says 0: each letter would get a line.
  if (stderr.columns === 0) stderr.columns = 80
  return { input: stdin, output: stderr }
}

async function answered<T>(answer: Promise<T>): Promise<Exclude<T, symbol>> {
  const given = await answer
  if (typeof given === 'symbol') throw new CommandError('Stopped; nothing was changed.')
  return given as Exclude<T, symbol>
}

const memberOf = (option: string) => new Option(`--${option}`).attributeName()

/** Answers to questions of which each has an option, named as on the command line. */
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

  async ask(option: string, message: string, limits: Limits = {}): Promise<string> {
    const former = this.text(option)
    const isAsked = this.isInteractive && (former === undefined || this.#isAgain)
    const initial = former ?? limits.initial
    const answer = isAsked ? await askLine(message, { ...limits, initial }, this.io) : initial
    if (answer === undefined) {
      throw new UsageError(`There is no terminal to ask: name it with --${option}.`)
    }
    const problem = limits.check?.(answer)
    if (problem !== undefined) throw new UsageError(`--${option}: ${problem}`)
    this.values[memberOf(option)] = answer
    return answer
  }

  async word<T extends string>(option: string, message: string, words: readonly T[]): Promise<T> {
    const list = words.join(', ')
    const isWord = (text: string) => (words as readonly string[]).includes(text)
    const answer = await this.ask(option, `${message} (${list})`, {
      initial: words[0],
      check: text => (isWord(text) ? undefined : `one of ${list}`)
    })
    return answer as T
  }
}
