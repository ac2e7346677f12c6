/** `init`: looks at a back-end, and writes a config folder that works with it. */
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { presetsOfKind } from '../../config/schema/presets.ts'
import { hashPassword } from '../../login/argon2.ts'
import { CommandError, type Invocation, UsageError } from '../command.ts'
import { readNewPassword } from '../prompt.ts'
import { Answers } from './answers.ts'
import { type BackendClient, createClient } from './client.ts'
import { type Files, namesInTheWay, replaceFiles, secretFile, writeFiles } from './folder.ts'
import { type Hints, readHints } from './hints.ts'
import { look, type Look } from './look.ts'
import type { FileUser, Findings } from './model.ts'
import { type PresetSource, presetSource } from './preset-source.ts'
import { propose, type Proposal } from './proposal.ts'
import { Redaction } from './redaction.ts'
import { compare, type Existing, faultsOfChange, readExisting } from './rerun.ts'
import { askAccount, askRoutes, upstreamHeaders, withFamily } from './questions.ts'
import { withoutPrefix } from './routes.ts'
import { sideBySide } from './side-by-side.ts'

export async function init({ config, rest: [word], values, io }: Invocation): Promise<number> {
  if (typeof values['from'] === 'string') {
    return await rerun(resolve(values['from']), { values, io })
  }
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
  const advice = names.includes('gateway.yaml') ? ', or --from it' : ''
  throw new CommandError(
    `${shown(folder)} has ${names.join(', ')} already: init replaces no file. ` +
      `Name another folder${advice}.`
  )
}

function shown(folder: string): string {
  const path = relative(process.cwd(), folder)
  return path === '' || path.startsWith('..') ? folder : path
}

type Given = Pick<Invocation, 'values' | 'io'>

async function rerun(folder: string, given: Given): Promise<number> {
  if (!existsSync(join(folder, 'gateway.yaml'))) {
    throw new CommandError(`${shown(folder)} has no gateway.yaml: --from takes a config folder.`)
  }
  const session = new InitSession(given, readExisting(folder, given.io.env))
  return await session.merge(folder, await session.propose(folder))
}

/** Paths of a recording, and each without its first segment. */
function withVariants(paths: readonly string[]): string[] {
  return paths.flatMap(path => [path, withoutPrefix(path)]).filter(path => path !== undefined)
}

/** One run: the questions, what was seen, and what is printed. */
class InitSession {
  readonly #answers: Answers
  readonly #redaction = new Redaction()

  readonly #existing: Existing | undefined
  #servesConsole = false

  /** @param existing the folder of `--from` */
  constructor({ values, io }: Given, existing?: Existing) {
    this.#answers = new Answers({ ...existing?.values, ...values }, io)
    this.#existing = existing
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
    const ofPreset = backendPreset === undefined ? undefined : presetSource(backendPreset, url)
    const preset = this.#existing?.source ?? ofPreset
    const headers = upstreamHeaders(answers)
    const fixed = { ...preset?.headers, ...headers }
    const client = createClient(url, { redaction: this.#redaction, fixed })
    const hints = await this.#hints(client)
    const isAtBackend = await this.#isAtBackend()
    const seen = await this.#look(client, isAtBackend, { hints, preset })
    const fileUser = isAtBackend ? undefined : await this.#fileUser()
    const { signIn, envelope } = seen
    const findings: Findings = {
      url: client.url,
      headers,
      console: withFamily(choice, hints, this.#say),
      routes: seen.seen.routes,
      habits: hints.habits,
      isPresetSource: ofPreset !== undefined,
      ...(backendPreset !== undefined && { backendPreset }),
      ...(signIn !== undefined && { signIn }),
      ...(fileUser !== undefined && { fileUser }),
      ...(envelope !== undefined && { envelope }),
      ...(seen.seen.paging !== undefined && { paging: seen.seen.paging })
    }
    const proposal = await propose(findings, folder, answers.io.env)
    const { skipped } = hints.api
    const more = skipped === 0 ? [] : [`${skipped} further lists were left out: add --route.`]
    this.#show(findings, proposal, [...seen.notes, ...more])
    return proposal
  }

  async #hints(client: BackendClient): Promise<Hints> {
    const answers = this.#answers
    const [openapi, har] = [answers.text('openapi'), answers.text('har')]
    const search = har === undefined && answers.list('route').length === 0
    const hints = await readHints({ client, redaction: this.#redaction, openapi, har, search })
    if (hints.from !== undefined) {
      this.#say(`Read ${hints.from}: ${hints.api.routes.length} lists or records.`)
    }
    return hints
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
    { hints, preset }: { readonly hints: Hints; readonly preset: PresetSource | undefined }
  ): Promise<Look> {
    const answers = this.#answers
    const context = { answers, hints, preset }
    const account = isAtBackend ? await askAccount(context) : undefined
    const userPath = answers.text('user-path') ?? preset?.userPath
    const logoutPath = answers.text('logout-path') ?? preset?.logoutPath
    return await look({
      client,
      redaction: this.#redaction,
      wanted: await askRoutes(context),
      isPreset: preset !== undefined,
      userHints: withVariants(hints.api.userPaths),
      logoutHints: withVariants(hints.api.logout === undefined ? [] : [hints.api.logout]),
      report: this.#say,
      ...(account !== undefined && { account }),
      ...(userPath !== undefined && { userPath }),
      ...(logoutPath !== undefined && { logoutPath })
    })
  }

  async #fileUser(): Promise<FileUser> {
    const answers = this.#answers
    // The folder has its users: this one only completes the proposal that it is compared with.
    if (this.#existing !== undefined) {
      return { username: 'admin', hash: await hashPassword(randomUUID()), role: 'admin' }
    }
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

  /** Shows what is new and what differs, and adds what is new. */
  async merge(folder: string, { files: proposed, faults }: Proposal): Promise<number> {
    if (faults.length > 0) throw new CommandError(this.#redaction.clean(faults.join('\n')))
    const { lines, files } = compare(folder, proposed)
    this.#say('')
    for (const line of lines) this.#say(line)
    if (files.size === 0) {
      this.#say('There is nothing to add.')
      return 0
    }
    this.#assertClean(files)
    const refusals = await faultsOfChange(folder, files, this.#answers.io.env)
    if (refusals.length > 0) {
      throw new CommandError(`Not written:\n${this.#redaction.clean(refusals.join('\n'))}`)
    }
    const question = `Add what is marked + to ${shown(folder)}? Everything else stays.`
    if (!(await this.#answers.confirm('yes', question))) {
      throw new CommandError('Nothing was written. Without a terminal, --yes writes.')
    }
    replaceFiles(folder, files)
    this.#say(`Wrote ${[...files.keys()].join(', ')}.`)
    return 0
  }

  #assertClean(files: Files): void {
    for (const [name, content] of files) {
      // The JSON Schemas are the same for everybody.
      if (!name.startsWith('schema/')) this.#redaction.assertClean(content, name)
    }
  }
}
