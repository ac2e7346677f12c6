/** `init`: looks at a back-end, and writes a config folder that starts, whatever was found. */
import { join, relative, resolve } from 'node:path'
import { stringify } from 'yaml'
import { describeFault } from '../../config/schema/faults.ts'
import { presetsOfKind } from '../../config/schema/presets.ts'
import { headerName } from '../../config/schema/primitives.ts'
import { hashPassword } from '../../login/argon2.ts'
import { CommandError, type Invocation, type Io, UsageError } from '../command.ts'
import { faultsWith } from '../config-change.ts'
import { headersOf } from '../header-option.ts'
import { askYes, readNewPassword } from '../prompt.ts'
import { Answers } from './answers.ts'
import { createClient, fetchFrom } from './client.ts'
import { type Draft, filesOf, namesInTheWay, sourcePlace, writeFiles } from './files.ts'
import { type Look, lookAtRoutes, lookWith } from './look.ts'
import { askConsole, askRoutes, askSignIn, askUrl, askWord } from './questions.ts'
import { askRefusal, describeSignIn, signIn } from './sign-in.ts'

export async function init(invocation: Invocation): Promise<number> {
  const { io, rest, config } = invocation
  const place = rest[0] ?? config
  const folder = resolve(place)
  const names = namesInTheWay(folder)
  if (names.length > 0) {
    const advice = 'init replaces no file. Name another folder.'
    throw new CommandError(`${place} has ${names.join(', ')} already: ${advice}`)
  }
  const answers = new Answers(invocation)
  const draft = await askAndLook(answers, folder)
  const files = filesThatStart(draft, folder, io)
  io.stdout.write(summaryOf(draft))
  const isWanted =
    answers.isSet('yes') ||
    (answers.isInteractive && (await askYes(`Write the files to ${place}?`, io)))
  if (!isWanted) throw new CommandError('Nothing was written. Without a terminal, --yes writes.')
  writeFiles(folder, files)
  io.stdout.write(
    `Wrote ${place}. Next:\n  console-gateway start --config ${place}\n` +
      'Then open http://127.0.0.1:8080, or let your console call it (docs/console-developers.md).\n'
  )
  return 0
}

async function askAndLook(answers: Answers, folder: string): Promise<Draft> {
  const headers = headersOf(answers.list('header'))
  if (!Object.keys(headers).every(name => headerName.test(name))) {
    throw new UsageError('--header: names in the config have letters, digits and dashes only.')
  }
  const console = await askConsole(answers)
  const presets = ['none', ...presetsOfKind('console')]
  const isFolder = !presets.includes(console)
  const preset = isFolder
    ? await askWord(answers, 'console-preset', 'Its preset', presets)
    : console
  const draft: Draft = {
    headers,
    root: isFolder ? relative(folder, resolve(console)) : undefined,
    consolePreset: preset === 'none' ? undefined : preset,
    url: await askUrl(answers),
    source: {},
    upstream: {},
    routes: await askRoutes(answers),
    notes: [],
    secrets: []
  }
  const families = ['unknown', ...presetsOfKind('backend')]
  const family = await askWord(answers, 'backend', 'Preset of the back-end', families)
  if (family !== 'unknown') {
    draft.backendPreset = family
    draft.notes.push(['routes.routes', 'Guessed: lists. `shape: record` is for a single value.'])
    return draft
  }
  const look = { client: createClient(fetchFrom(draft), headers), answers, draft }
  const where = await askWord(answers, 'sign-in', 'Who vouches for users', ['backend', 'file'])
  if (where === 'file') draft.users = await askUsers(answers, draft)
  const session = where === 'file' ? undefined : await askForSession(look)
  if (where === 'file') await lookAtRoutes(look)
  if (session !== undefined) await lookWith({ ...look, session })
  return draft
}

async function askUsers(answers: Answers, { secrets }: Draft): Promise<object> {
  const name = await answers.ask('user', { message: 'The first user: name', initial: 'admin' })
  const password = await readNewPassword(answers.io, answers.text('password-env'))
  secrets.push(password)
  return { users: { [name]: { password: await hashPassword(password), roles: ['admin'] } } }
}

/** Some back-ends lock an account out after five. */
const maxSignIns = 3

/** Asks once more what was wrong, as long as somebody is there to answer. */
async function askForSession(look: Look) {
  const { answers, draft } = look
  for (let round = 1; ; round++) {
    const session = await tryAnswers(look)
    if (typeof session !== 'string') return session
    answers.io.stderr.write(`${session}\n`)
    const isOver = round === maxSignIns || !answers.isInteractive
    if (isOver || !(await askYes('Correct the answers?', answers.io))) break
    answers.askAgain()
    draft.url = await askUrl(answers)
  }
  const text = 'TODO All of this, and shapes of routes: nobody could be signed in.'
  draft.notes.push([`${sourcePlace}.path`, text])
  draft.source['user'] = { id: 'id' }
  draft.upstream['credential'] = 'bearer'
  return undefined
}

/** @returns a text that says what was wrong */
async function tryAnswers({ client, answers, draft }: Look) {
  const call = await askSignIn(answers)
  const { path, format, body } = call
  Object.assign(draft.source, { path, format, body })
  const username = await answers.account()
  const refusal = await askRefusal(client, call, username)
  if (typeof refusal === 'string') return refusal
  const password = await answers.password()
  draft.secrets.push(password)
  const session = await signIn(client, call, { username, password }, refusal)
  if (typeof session !== 'string') describeSignIn(draft, session)
  return session
}

/** Words and short texts stand in config, whether they are somebody's password or not. */
function isIn(text: string, secret: string): boolean {
  return !/^(.{0,4}|[\p{L}_-]{0,15})$/u.test(secret) && text.includes(secret)
}

/** Leaves out a route that would be a fault. */
function filesThatStart(draft: Draft, folder: string, io: Io): Map<string, string> {
  const files = filesOf(draft)
  const texts = new Map([...files].map(([name, text]) => [join(folder, name), text]))
  for (const [name, text] of files) {
    // The JSON Schemas are the same for everybody.
    if (name.startsWith('schema/') || !draft.secrets.some(each => isIn(text, each))) continue
    throw new CommandError(`${name} would contain a password or a token. Nothing was written.`)
  }
  const faults = faultsWith(folder, texts, io.env)
  if (faults.length === 0) return files
  const index = draft.routes.findIndex(({ name }) =>
    faults.some(({ path }) => path.startsWith(`routes.${name}`))
  )
  const route = draft.routes[index]
  if (route === undefined) throw new CommandError(faults.map(describeFault).join('\n'))
  draft.routes.splice(index, 1)
  draft.notes.push(['routes.routes', `TODO GET ${route.path} is left out: ${faults[0]?.message}.`])
  return filesThatStart(draft, folder, io)
}

/** What was found, guessed, and left to do. */
function summaryOf({ source, upstream, routes, notes }: Draft): string {
  const found = Object.entries({ ...source, ...upstream })
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) =>
      `  ${key}: ${stringify(value, { collectionStyle: 'flow', lineWidth: 0 })}`.trimEnd()
    )
  const lists = routes.flatMap(({ path, seen }) => (seen ? `  GET ${path}: ${seen.found}` : []))
  const open = notes.map(([place, text]) => `  ${place.split('.', 1)[0]}.yaml: ${text}`)
  return [
    'Found:',
    ...found,
    ...lists,
    'Guessed, or left to do (they stand in the files, too):',
    ...open,
    ''
  ].join('\n')
}
