/** `init`: looks at a back-end, and writes a config folder that works with it. */
import { relative, resolve } from 'node:path'
import { presetsOfKind } from '../../config/schema/presets.ts'
import { hashPassword } from '../../login/argon2.ts'
import { CommandError, type Invocation, UsageError } from '../command.ts'
import { readNewPassword } from '../prompt.ts'
import { Answers } from './answers.ts'
import { type BackendClient, createClient } from './client.ts'
import { type Files, namesInTheWay, secretFile, writeFiles } from './folder.ts'
import { look, type Look } from './look.ts'
import type { FileUser, Findings } from './model.ts'
import { type PresetSource, presetSource } from './preset-source.ts'
import { propose, type Proposal } from './proposal.ts'
import { Redaction } from './redaction.ts'
import { askAccount, askRoutes, upstreamHeaders, withFamily } from './questions.ts'
import { sideBySide } from './side-by-side.ts'

export async function init({ config, rest: [word], values, io }: Invocation): Promise<number> {
  const folder = resolve(word ?? config)
  refuseExisting(folder)
  const session = new InitSession({ values, io })
  const proposal = await session.propose(folder)
  return await session.finish(folder, proposal)
}

/** @throws CommandError for a folder with a file where `init` writes */
function refuseExisting(folder: string): void {
  const names = namesInTheWay(folder)
  if (names.length === 0) return
  throw new CommandError(
    `${shown(folder)} has ${names.join(', ')} already: init replaces no file. Name another folder.`
  )
}

function shown(folder: string): string {
  const path = relative(process.cwd(), folder)
  return path === '' || path.startsWith('..') ? folder : path
}

type Given = Pick<Invocation, 'values' | 'io'>

/** One run: the questions, what was seen, and what is printed. */
class InitSession {
  readonly #answers: Answers
  readonly #redaction = new Redaction()
  #servesConsole = false

  constructor({ values, io }: Given) {
    this.#answers = new Answers(values, io)
  }

  /** Prints a line, without any secret that could have come into it. */
  #say = (line: string): void => {
    this.#answers.io.stdout.write(`${this.#redaction.clean(line)}\n`)
  }

  async propose(folder: string): Promise<Proposal> {
    const answers = this.#answers
    const choice = await answers.console(presetsOfKind('console'))
    this.#servesConsole = choice.root !== undefined
    const url = await answers.backendUrl()
    const backendPreset = answers.backendPreset(presetsOfKind('backend'))
    const preset = backendPreset === undefined ? undefined : presetSource(backendPreset, url)
    const headers = upstreamHeaders(answers)
    const fixed = { ...preset?.headers, ...headers }
    const client = createClient(url, { redaction: this.#redaction, fixed })
    const isAtBackend = await this.#isAtBackend()
    const seen = await this.#look(client, isAtBackend, preset)
    const fileUser = isAtBackend ? undefined : await this.#fileUser()
    const { signIn, envelope } = seen
    const findings: Findings = {
      url: client.url,
      headers,
      console: withFamily(choice, this.#say),
      routes: seen.seen.routes,
      isPresetSource: preset !== undefined,
      ...(backendPreset !== undefined && { backendPreset }),
      ...(signIn !== undefined && { signIn }),
      ...(fileUser !== undefined && { fileUser }),
      ...(envelope !== undefined && { envelope })
    }
    const proposal = await propose(findings, folder, answers.io.env)
    this.#show(findings, proposal, seen.notes)
    return proposal
  }

  async #isAtBackend(): Promise<boolean> {
    const question = 'Who vouches for users: the back-end’s own sign-in, or a users file'
    const where = await this.#answers.ask('sign-in', `${question} (backend, file)`, 'backend')
    if (where !== 'backend' && where !== 'file') {
      throw new UsageError(`--sign-in is backend or file, not "${where}".`)
    }
    return where === 'backend'
  }

  async #look(
    client: BackendClient,
    isAtBackend: boolean,
    preset: PresetSource | undefined
  ): Promise<Look> {
    const answers = this.#answers
    const context = { answers, preset }
    const account = isAtBackend ? await askAccount(context) : undefined
    const userPath = answers.text('user-path') ?? preset?.userPath
    const logoutPath = answers.text('logout-path') ?? preset?.logoutPath
    return await look({
      client,
      redaction: this.#redaction,
      wanted: await askRoutes(answers),
      isPreset: preset !== undefined,
      report: this.#say,
      ...(account !== undefined && { account }),
      ...(userPath !== undefined && { userPath }),
      ...(logoutPath !== undefined && { logoutPath })
    })
  }

  async #fileUser(): Promise<FileUser> {
    const answers = this.#answers
    const username = await answers.ask('user', 'The first user: user name', 'admin')
    const password = await readNewPassword(answers.io, answers.text('password-env'))
    this.#redaction.add(password, 'the password')
    return { username, hash: await hashPassword(password), role: 'admin' }
  }

  #show({ routes }: Findings, { shaped, warnings }: Proposal, notes: readonly string[]): void {
    for (const { name, publicPath, path, response } of routes) {
      const from = publicPath === path ? '' : `, from ${path}`
      this.#say(`\n${name}: GET ${publicPath}${from}`)
      for (const line of sideBySide(response.body, { data: shaped.get(name) })) this.#say(line)
    }
    if (notes.length > 0) this.#say('\nNot found out:')
    for (const note of notes) this.#say(`  - ${note}`)
    for (const warning of warnings) this.#say(`  warning: ${warning}`)
  }

  async finish(folder: string, { files, faults }: Proposal): Promise<number> {
    if (faults.length > 0) {
      for (const fault of faults) this.#answers.io.stderr.write(`${this.#redaction.clean(fault)}\n`)
      throw new CommandError('The config would have faults; nothing was written.')
    }
    this.#assertClean(files)
    this.#say(`\n${[...files.keys()].filter(name => !name.includes('/')).join(', ')}`)
    if (!(await this.#answers.confirm('yes', `Write them to ${shown(folder)}?`))) {
      throw new CommandError('Nothing was written. Without a terminal, --yes writes.')
    }
    writeFiles(folder, files, 'wx')
    const place = shown(folder)
    const then = this.#servesConsole
      ? 'Then open http://127.0.0.1:8080 and sign in.'
      : 'Then let your console call http://127.0.0.1:8080 (docs/console-developers.md).'
    this.#say(
      `Wrote ${place}. Next:\n` +
        `  console-gateway start --config ${place}\n` +
        `${then} ${secretFile} has the session secret.`
    )
    return 0
  }

  #assertClean(files: Files): void {
    for (const [name, content] of files) {
      // The JSON Schemas are the same for everybody.
      if (!name.startsWith('schema/')) this.#redaction.assertClean(content, name)
    }
  }
}
