import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { type Document, isAlias, isMap, parseDocument, stringify, type YAMLMap } from 'yaml'
import { readUsersFiles } from '../config/read/files.ts'
import { maxAliasCount } from '../config/read/document.ts'
import { describeFault, nearest } from '../config/schema/faults.ts'
import { isRecord } from '../json/values.ts'
import { hashPassword } from '../login/argon2.ts'
import { CommandError, type Invocation, UsageError } from './command.ts'
import { readNewPassword } from './prompt.ts'
import { faultsWith, readText, replaceFile } from './replace-file.ts'

const userName = /^\S(.{0,253}\S)?$/
const newFile = '# yaml-language-server: $schema=schema/users.schema.json\n\nusers: {}\n'

/** Every value is a text, so that numbers keep their digits, and texts their quotes. */
const asTexts = { schema: 'failsafe', prettyErrors: false } as const

interface Values {
  readonly file?: string
  readonly id?: string
  readonly name?: string
  readonly role?: readonly string[]
}

export async function addUser(invocation: Invocation<Values>) {
  const { values, io } = invocation
  const { id, name: displayName, role: roles } = values
  const change = open(invocation)
  const { name, file, names } = change
  if (names.includes(name)) {
    throw new CommandError(`${file} has the user "${name}" already: see users set-password.`)
  }
  const password = await hashPassword(await readNewPassword(io))
  setMember(change.document, ['users'], name, { password, id, name: displayName, roles })
  write(invocation, change)
  const list = roles === undefined ? 'no roles' : `roles: ${roles.join(', ')}`
  return { text: `${file}: added ${name} (${list})` }
}

export async function setPassword(invocation: Invocation<Values>) {
  const { io } = invocation
  const change = open(invocation)
  const { name, file, names } = change
  if (!names.includes(name)) {
    throw new CommandError(`${file} has no user "${name}".${nearest(name, names)}`)
  }
  const password = await hashPassword(await readNewPassword(io))
  setMember(change.document, ['users', name], 'password', password)
  write(invocation, change)
  return { text: `${file}: set the password of ${name}; running sessions of ${name} end` }
}

function open(invocation: Invocation<Values>) {
  const [name = ''] = invocation.rest
  if (!userName.test(name)) throw new UsageError('Not a valid user name.')
  const file = usersFileOf(invocation)
  const before = existsSync(file) ? readText(file) : newFile
  const document = parseDocument(before, asTexts)
  const [error] = document.errors
  if (error !== undefined) throw new CommandError(`Not valid YAML: ${error.message}`)
  const { users = {} } = (document.toJS({ maxAliasCount }) ?? {}) as { readonly users?: unknown }
  if (users !== '' && !isRecord(users)) throw new CommandError('The file has no mapping "users".')
  return { name, file, before, document, names: Object.keys(users) }
}

function write({ configs, io }: Invocation<Values>, change: ReturnType<typeof open>): void {
  const { file, before, document } = change
  const text = textOf(document, before)
  const faults = faultsWith(configs, new Map([[file, text]]), io.env)
  const own = faults.filter(fault => resolve(fault.file) === file)
  if (own.length > 0) {
    throw new CommandError(`Not written:\n${own.map(describeFault).join('\n')}`)
  }
  if (existsSync(file) && readText(file) !== before) {
    throw new CommandError(`${file} was changed by another process meanwhile: try again.`)
  }
  replaceFile(file, text, 0o600)
}

/** Only `gateway.yaml` is read, since the folder may still have faults. */
function usersFileOf({ config: folder, configs, values, io }: Invocation<Values>): string {
  const chosen = values.file
  const files = readUsersFiles(configs, io.env)
  const [file, ...others] = files.filter(each => chosen === undefined || each === chosen)
  if (file !== undefined && others.length === 0) return resolve(folder, file)
  if (files.length === 0) {
    throw new CommandError(`gateway.yaml of ${folder} has no users-file in login.sources.`)
  }
  throw new UsageError(`Name one of the users files of gateway.yaml by --file: ${files.join(', ')}`)
}

const nodeOf = (value: unknown) => parseDocument(stringify(value), asTexts).contents

function setMember(document: Document, path: readonly string[], name: string, value: unknown) {
  const found = document.getIn(path)
  if (isAlias(found)) throw new CommandError(`${path.join('.')} is an alias: change it by hand.`)
  if (!isMap(found)) document.setIn(path, nodeOf({}))
  const map = document.getIn(path) as YAMLMap
  if (map.items.length === 0) map.flow = false
  map.set(nodeOf(name), nodeOf(value))
}

function textOf(document: Document, before: string): string {
  try {
    const text = document.toString({ lineWidth: 0 })
    return before.includes('\r\n') ? text.replaceAll('\n', '\r\n') : text
  } catch (error) {
    throw new CommandError(`${(error as Error).message}: change the file by hand.`)
  }
}
