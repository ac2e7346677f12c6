/** The answers to the questions of `init`: from options, or asked for at a terminal. */
import { existsSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { CommandError, type Invocation, type Io, UsageError } from '../command.ts'
import { askLine, askYes } from '../prompt.ts'

type Values = Invocation['values']

export class Answers {
  readonly #values: Values
  readonly io: Io
  readonly isInteractive: boolean

  constructor(values: Values, io: Io) {
    this.#values = values
    this.io = io
    this.isInteractive = io.stdin.isTTY === true
  }

  text(option: string): string | undefined {
    const value = this.#values[option]
    return typeof value === 'string' ? value : undefined
  }

  list(option: string): readonly string[] {
    const value = this.#values[option]
    return Array.isArray(value) ? (value as readonly string[]) : []
  }

  isSet(option: string): boolean {
    return this.#values[option] === true
  }

  /**
   * An option, or the line typed at the terminal; `otherwise` for an empty one.
   * @throws UsageError without a terminal, if there is no default
   */
  async ask(option: string, question: string, otherwise?: string): Promise<string> {
    const value = this.text(option)
    if (value !== undefined) return value
    if (!this.isInteractive) {
      if (otherwise !== undefined) return otherwise
      throw new UsageError(`There is no terminal to ask: name it with --${option}.`)
    }
    for (;;) {
      const hint = otherwise === undefined ? '' : ` [${otherwise}]`
      const line = await askLine(`${question}${hint}: `, this.io)
      if (line === undefined) throw new CommandError('Nothing was written.')
      const answer = line === '' ? otherwise : line
      if (answer !== undefined) return answer
    }
  }

  /** Yes, unless the answer is no; without a terminal only the option says yes. */
  async confirm(option: string, question: string): Promise<boolean> {
    if (this.isSet(option)) return true
    if (!this.isInteractive) return false
    return await askYes(question, this.io)
  }

  /** The URL of the back-end. Plain http to another machine needs a yes. */
  async backendUrl(): Promise<string> {
    const written = await this.ask('backend-url', 'URL of the back-end')
    const url = URL.canParse(written) ? new URL(written) : undefined
    if (url === undefined || !/^https?:$/.test(url.protocol)) {
      throw new UsageError(
        `"${written}" is not a URL such as https://shop.internal:8443 or http://127.0.0.1:8000.`
      )
    }
    if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
      throw new UsageError('The URL of the back-end has no user, password, query or fragment.')
    }
    if (url.protocol === 'https:' || isLoopback(url.hostname)) return url.href
    const question = `${url.host} is another machine, and http is readable on the way. Go on?`
    if (await this.confirm('allow-plain-http', question)) return url.href
    throw new CommandError(
      `A password would go to ${url.host} over plain http, readable on the way. ` +
        'Use https, or allow it with --allow-plain-http.'
    )
  }

  /** A preset of the back-end; undefined to look without one. */
  backendPreset(presets: readonly string[]): string | undefined {
    const written = this.text('backend')
    if (written === undefined || written === 'unknown') return undefined
    if (presets.includes(written)) return written
    throw new UsageError(`There is no preset "${written}" of a back-end: ${presets.join(', ')}.`)
  }

  /** The console: a folder of files, or a preset; both undefined for none. */
  async console(presets: readonly string[]): Promise<{ root?: string; preset?: string }> {
    const question = 'Console: the folder of its built files, a preset, or none'
    const written = await this.ask('console', question, 'none')
    if (written === 'none') return {}
    if (presets.includes(written)) return { preset: written }
    const root = resolve(written)
    if (!existsSync(root) || !statSync(root).isDirectory()) {
      throw new UsageError(`"${written}" is neither a folder nor a preset: ${presets.join(', ')}.`)
    }
    if (!existsSync(resolve(root, 'index.html'))) {
      throw new UsageError(`${written} has no index.html: name the folder of the built files.`)
    }
    return { root }
  }
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || /^127(\.\d{1,3}){3}$/.test(host)
}
