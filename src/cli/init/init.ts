import { existsSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { stringify } from 'yaml'
import type { Environment } from '../../config/read/inputs.ts'
import { ldap, oidc } from '../../config/schema/login.ts'
import { presetsOfKind } from '../../config/schema/presets.ts'
import { hashPassword } from '../../login/argon2.ts'
import { CommandError, fitting, headersOf, type Invocation } from '../command.ts'
import { Answers, askYes, readNewPassword } from '../prompt.ts'
import { faultsWith } from '../replace-file.ts'
import { addSchemas } from '../schemas.ts'
import { backEndOf, createClient } from './client.ts'
import { type Draft, type Files, filesOf, writeFiles } from './files.ts'
import { lookAtRoutes, lookWith } from './look.ts'
import { askConsole, askRoutes, askUrl, callOf, logoutOf } from './questions.ts'
import { type Look, signIn } from './sign-in.ts'

type Fill = (draft: Draft, answers: Answers) => Promise<void>

export const otherSources: Readonly<Record<string, Fill>> = {
  file: askUser,
  oidc: askProvider,
  ldap: askDirectory
}

export async function init(invocation: Invocation) {
  const { io, rest, config } = invocation
  const place = rest[0] ?? config
  const folder = resolve(place)
  const own = ['gateway.yaml', 'routes.yaml', 'limits.yaml', 'users.yaml', '.env', 'schema']
  const names = own.filter(name => existsSync(join(folder, name)))
  if (names.length > 0) {
    throw new CommandError(`${place} has ${names.join(', ')} already: name another folder.`)
  }
  const answers = new Answers(invocation)
  const draft = await askAndLook(answers, folder)
  const files = filesThatStart(draft, folder, io.env)
  io.stdout.write(summaryOf(draft))
  const isWanted =
    answers.values['yes'] === true ||
    (answers.isInteractive && (await askYes(`Write the files to ${place}?`, io)))
  if (!isWanted) throw new CommandError('Nothing was written. Without a terminal, --yes writes.')
  writeFiles(folder, files)
  addSchemas(folder)
  const then = 'Then open http://127.0.0.1:8080, or let your console call it (docs/consoles.md).'
  return { text: `Wrote ${place}. Next:\n  console-gateway start --config ${place}\n${then}` }
}

async function askAndLook(answers: Answers, folder: string): Promise<Draft> {
  const headers = headersOf((answers.values['header'] ?? []) as string[])
  const { root, preset } = await askConsole(answers)
  const draft: Draft = {
    headers,
    root: root && relative(folder, resolve(root)),
    presets: preset === 'none' ? {} : { extends: preset },
    url: await askUrl(answers),
    source: {},
    upstream: {},
    routes: await askRoutes(answers),
    notes: { login: [], upstreams: [], routes: [] },
    secrets: []
  }
  const families = ['unknown', ...presetsOfKind('backend')]
  const family = await answers.word('backend', 'Preset of the back-end', families)
  const words = ['backend', ...Object.keys(otherSources)]
  const where = await answers.word('sign-in', 'Who vouches for users', words)
  await otherSources[where]?.(draft, answers)
  if (draft.other !== undefined) {
    draft.notes.upstreams.push('TODO `credential`: how it knows the user (docs/sign-in.md).')
  }
  const look = { client: createClient(() => backEndOf(draft)), answers, draft }
  if (family !== 'unknown') {
    draft.presets.backend = family
    draft.notes.routes.push('Guessed: lists. `shape: record` is for a single value.')
  } else if (draft.other === undefined) {
    checkTold(draft, answers, folder)
    await lookSignedIn(look)
  } else {
    await lookAtRoutes(look)
  }
  return draft
}

/** Before the back-end is asked. @throws CommandError for what no config can have */
function checkTold(asked: Draft, answers: Answers, folder: string): void {
  const told = <T>(option: string, write: (text: string) => T) => {
    const text = answers.text(option)
    return text === undefined ? undefined : write(text)
  }
  const user = { id: 'id', from: told('user-path', callOf) }
  const credential = told('token-header', name => `header:${name.toLowerCase()}`)
  const errors = told('error-path', path => ({ message: [path] }))
  const call = { path: '/', user, logout: told('logout-path', logoutOf) }
  const draft = { ...asked, source: call, upstream: { credential, errors } }
  filesThatStart(draft, folder, answers.io.env)
}

/** Some back-ends lock an account out after five. */
const maxSignIns = 3

async function lookSignedIn(look: Look): Promise<void> {
  const { answers, draft } = look
  for (let round = 1; ; round++) {
    const session = await signIn(look)
    if (typeof session !== 'string') return await lookWith({ ...look, session })
    answers.io.stderr.write(`${session}\n`)
    const isOver = round === maxSignIns || !answers.isInteractive
    if (isOver || !(await askYes('Correct the answers?', answers.io))) break
    answers.askAgain()
    draft.url = await askUrl(answers)
  }
  draft.notes.login.push('TODO All of this, and shapes of routes: nobody could be signed in.')
  draft.source['user'] = { id: 'id' }
  draft.upstream['credential'] = 'bearer'
}

/** Words and short texts stand in config, whether they are somebody's password or not. */
function isIn(text: string, secret: string): boolean {
  return !/^(.{0,4}|[\p{L}_-]{0,15})$/u.test(secret) && text.includes(secret)
}

function filesThatStart(draft: Draft, folder: string, env: Environment): Files {
  const files = filesOf(draft)
  const texts = Object.entries(files)
  const [leak] = texts.find(([, text]) => draft.secrets.some(secret => isIn(text, secret))) ?? []
  if (leak !== undefined) {
    throw new CommandError(`${leak} would contain a password or a token. Nothing was written.`)
  }
  const inFolder = new Map(texts.map(([name, text]) => [join(folder, name), text]))
  const faults = faultsWith(folder, inFolder, env)
  if (faults.length === 0) return files
  const faulty = draft.routes.find(({ name }) =>
    faults.some(({ path }) => `${path}.`.startsWith(`routes.${name}.`))
  )
  if (faulty === undefined) {
    throw new CommandError(faults.map(({ path, message }) => `${path}: ${message}`).join('\n'))
  }
  draft.routes.splice(draft.routes.indexOf(faulty), 1)
  draft.notes.routes.push(`TODO GET ${faulty.path} is left out: ${faults[0]?.message}.`)
  return filesThatStart(draft, folder, env)
}

function summaryOf({ source, upstream, routes, notes }: Draft): string {
  const flow = { collectionStyle: 'flow', lineWidth: 0 } as const
  const found = Object.entries({ ...source, ...upstream })
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `${key}: ${stringify(value, flow).trimEnd()}`)
  const lists = routes.flatMap(({ path, seen }) => (seen ? `GET ${path}: ${seen.found}` : []))
  const open = Object.entries(notes).flatMap(([section, texts]) =>
    texts.map(text => `${section}: ${text}`)
  )
  const title = 'Guessed, or left to do (comments in the files, too):'
  return `${['Found:', ...found, ...lists].join('\n  ')}\n${[title, ...open].join('\n  ')}\n`
}

async function askUser(draft: Draft, answers: Answers): Promise<void> {
  const name = await answers.ask('user', 'The first user: name', { initial: 'admin' })
  const password = await readNewPassword(answers.io)
  draft.secrets.push(password)
  draft.users = { [name]: { password: await hashPassword(password), roles: ['admin'] } }
  draft.other = { name: 'users-file', source: { kind: 'users-file' } }
}

async function askProvider(draft: Draft, answers: Answers): Promise<void> {
  const check = fitting(oidc.properties.issuer)
  const issuer = await answers.ask('issuer', 'Issuer of the OpenID provider', { check })
  const clientId = await answers.ask('client-id', 'Id of the client there')
  const source = { kind: 'oidc', issuer, clientId, clientSecret: '${OIDC_SECRET}' }
  draft.other = { name: 'sso', source, secret: 'OIDC_SECRET' }
  draft.notes.login.push(
    'TODO Register the redirect URI at the provider: /api/auth/oidc/sso/callback.',
    'TODO OIDC_SECRET, in .env: the secret of the client.',
    'TODO `user.roles`: the claim with the roles. Without it nobody has one.'
  )
}

async function askDirectory(draft: Draft, answers: Answers): Promise<void> {
  const { urls, base: ofBase } = ldap.properties
  const message = 'URL of the directory, such as ldaps://ldap.example.com'
  const url = await answers.ask('ldap-url', message, { check: fitting(urls.items) })
  const below = 'Users are below, such as ou=people,dc=example,dc=com'
  const base = await answers.ask('ldap-base', below, { check: fitting(ofBase) })
  const bind = { dn: `cn=console-gateway,${base}`, password: '${LDAP_PASSWORD}' }
  const source = { kind: 'ldap', urls: [url], bind, base }
  draft.other = { name: 'directory', source, secret: 'LDAP_PASSWORD' }
  draft.notes.login.push(
    'TODO `bind`: the account of the gateway; its password is LDAP_PASSWORD, in .env.',
    'TODO `groups`: those that give roles. Without them nobody has one.'
  )
}
