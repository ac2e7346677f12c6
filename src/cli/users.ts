/** `users`: adds users to a users file and sets their passwords; comments stay. */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { readUsersFiles } from '../config/read/files.ts'
import { maxAliasCount } from '../config/read/yaml-values.ts'
import { describeFault, nearest } from '../config/schema/faults.ts'
import { isRecord } from '../json/values.ts'
import { hashPassword } from '../login/argon2.ts'
import { CommandError, type Invocation, type Io, UsageError } from './command.ts'
import { faultsWith } from './config-change.ts'
import { readNewPassword } from './prompt.ts'
import { readText, replaceFile } from './replace-file.ts'
import { parseTexts, setMember, textOf } from './yaml-text.ts'

/** As the schema of users.yaml. */
const userName = /^\S(.{0,253}\S)?$/
const newFile = '# yaml-language-server: $schema=schema/users.schema.json\n\nusers: {}\n'

interface Values {
  readonly file?: string
  readonly passwordEnv?: string
  readonly id?: string
  readonly name?: string
  readonly role?: readonly string[]
}

export async function addUser(invocation: Invocation<Values>): Promise<number> {
  const { values, io } = invocation
  const { id, name: displayName, role: roles } = values
  const { name, file, before, document, users } = open(invocation)
  if (users.has(name)) {
    throw new CommandError(
      `${file} has the user "${name}" already. For another password: users set-password ${name}`
    )
  }
  const [owner] = [...users].find(each => each[1] === (id ?? name)) ?? []
  if (owner !== undefined) {
    throw new CommandError(
      `"${owner}" has the id "${id ?? name}" already: choose another one with --id.`
    )
  }
  const password = await hashPassword(await readNewPassword(io, values.passwordEnv))
  setMember(document, ['users'], name, { password, id, name: displayName, roles })
  write(invocation, file, { before, after: textOf(document, before) })
  const list = roles === undefined ? 'no roles' : `roles: ${roles.join(', ')}`
  io.stdout.write(`${file}: added ${name} (${list})\n`)
  return 0
}

export async function setPassword(invocation: Invocation<Values>): Promise<number> {
  const { values, io } = invocation
  const { name, file, before, document, users } = open(invocation)
  if (!existsSync(file)) throw new CommandError(`There is no file ${file}.`)
  if (!users.has(name)) {
    throw new CommandError(`${file} has no user "${name}".${nearest(name, [...users.keys()])}`)
  }
  const password = await hashPassword(await readNewPassword(io, values.passwordEnv))
  setMember(document, ['users', name], 'password', password)
  write(invocation, file, { before, after: textOf(document, before) })
  io.stdout.write(`${file}: set the password of ${name}; running sessions of ${name} end\n`)
  return 0
}

/**
 * The user that is named, and the users file, with the ids by user name.
 * @throws UsageError, CommandError
 */
function open({ config: folder, values, rest, io }: Invocation<Values>) {
  const [name = ''] = rest
  if (!userName.test(name)) throw new UsageError('Not a valid user name.')
  const file = usersFileOf(folder, values.file, io.env)
  const before = existsSync(file) ? readText(file) : newFile
  const document = parseTexts(before)
  const { users = '' } = (document.toJS({ maxAliasCount }) ?? {}) as { readonly users?: unknown }
  if (users !== '' && !isRecord(users)) throw new CommandError('The file has no mapping "users".')
  // Without an id of its own, a user has its name as id.
  const ids = Object.entries(users).map(([key, user]) => {
    return [key, (isRecord(user) && user['id']) || key] as const
  })
  return { name, file, before, document, users: new Map(ids) }
}

/**
 * Replaces the users file, unless the change would add a fault to the config.
 * @throws CommandError with the new faults, or if another process changed the file meanwhile
 */
function write(
  { config: folder, io }: Invocation<Values>,
  file: string,
  { before, after }: { readonly before: string; readonly after: string }
): void {
  const faultsOf = (text: string) => faultsWith(folder, new Map([[file, text]]), io.env)
  const former = new Set(faultsOf(before).map(({ path, message }) => `${path} ${message}`))
  const added = faultsOf(after).filter(each => !former.has(`${each.path} ${each.message}`))
  if (added.length > 0) {
    throw new CommandError(`Not written:\n${added.map(describeFault).join('\n')}`)
  }
  if (existsSync(file) && readText(file) !== before) {
    throw new CommandError(`${file} was changed by another process meanwhile: try again.`)
  }
  replaceFile(file, after, 0o600)
  if (former.size > 0) {
    io.stderr.write(
      `Note: the config has ${former.size} fault${former.size > 1 ? 's' : ''} of before: ` +
        `console-gateway check --config ${folder}\n`
    )
  }
}

/**
 * The users file of the folder's only `users-file` source. Only `gateway.yaml` is read, since the
 * folder may still have faults.
 */
function usersFileOf(folder: string, chosen: string | undefined, env: Io['env']): string {
  const files = readUsersFiles(folder, env)
  const wanted = chosen ?? files[0]
  if (wanted === undefined) {
    throw new CommandError(
      `gateway.yaml of ${folder} has no source of the kind users-file (login.sources).`
    )
  }
  if (chosen === undefined && files.length > 1) {
    throw new UsageError(
      `There are several users files: choose one with --file. ${files.join(', ')}`
    )
  }
  const named = new Set(files.map(each => resolve(folder, each)))
  const file = [resolve(folder, wanted), resolve(wanted)].find(each => named.has(each))
  if (file === undefined) {
    throw new UsageError(`gateway.yaml names no users file ${wanted}: ${files.join(', ')}`)
  }
  return file
}
