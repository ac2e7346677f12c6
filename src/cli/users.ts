/** `users`: adds users to a users file and sets their passwords; comments and format stay. */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { readUsersFiles } from '../config/read/files.ts'
import { describeFault, nearest } from '../config/schema/faults.ts'
import { hashPassword } from '../login/argon2.ts'
import { CommandError, type Invocation, type Io, UsageError } from './command.ts'
import { faultsWith } from './config-change.ts'
import { readNewPassword } from './prompt.ts'
import { readText, replaceFile } from './replace-file.ts'
import { UsersText } from './users-text.ts'

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
  const { config: folder, values, io } = invocation
  const name = nameIn(invocation)
  const file = usersFileOf(folder, values.file, io.env)
  const before = existsSync(file) ? readText(file) : newFile
  const text = new UsersText(before)
  if (text.names.includes(name)) {
    throw new CommandError(
      `${file} has the user "${name}" already. For another password: users set-password ${name}`
    )
  }
  const { id = name, name: displayName, role: roles } = values
  const owner = text.ownerOf(id)
  if (owner !== undefined) {
    throw new CommandError(`"${owner}" has the id "${id}" already: choose another one with --id.`)
  }
  const password = await hashPassword(await readNewPassword(io, values.passwordEnv))
  const after = text.add(name, {
    password,
    ...(id !== name && { id }),
    ...(displayName !== undefined && { name: displayName }),
    ...(roles !== undefined && { roles })
  })
  write(invocation, file, { before, after })
  const list = roles === undefined ? 'no roles' : `roles: ${roles.join(', ')}`
  io.stdout.write(`${file}: added ${name} (${list})\n`)
  return 0
}

export async function setPassword(invocation: Invocation<Values>): Promise<number> {
  const { config: folder, values, io } = invocation
  const name = nameIn(invocation)
  const file = usersFileOf(folder, values.file, io.env)
  if (!existsSync(file)) throw new CommandError(`There is no file ${file}.`)
  const before = readText(file)
  const text = new UsersText(before)
  if (!text.names.includes(name)) {
    throw new CommandError(`${file} has no user "${name}".${nearest(name, text.names)}`)
  }
  const password = await hashPassword(await readNewPassword(io, values.passwordEnv))
  write(invocation, file, { before, after: text.setPassword(name, password) })
  io.stdout.write(`${file}: set the password of ${name}; running sessions of ${name} end\n`)
  return 0
}

/** @throws UsageError */
function nameIn({ rest: [name = ''] }: Invocation<Values>): string {
  if (userName.test(name)) return name
  throw new UsageError('Not a valid user name.')
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
  const former = faultsWith(folder, new Map([[resolve(file), before]]), io.env)
  const formerKeys = new Set(former.map(({ path, message }) => `${path} ${message}`))
  const added = faultsWith(folder, new Map([[resolve(file), after]]), io.env).filter(
    ({ path, message }) => !formerKeys.has(`${path} ${message}`)
  )
  if (added.length > 0) {
    throw new CommandError(`Not written:\n${added.map(describeFault).join('\n')}`)
  }
  if (existsSync(file) && readText(file) !== before) {
    throw new CommandError(`${file} was changed by another process meanwhile: try again.`)
  }
  replaceFile(file, after, 0o600)
  if (former.length > 0) {
    io.stderr.write(
      `Note: the config has ${former.length} fault${former.length > 1 ? 's' : ''} of before: ` +
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
  const file = resolve(folder, wanted)
  const isNamed = files.some(each => resolve(folder, each) === file || resolve(each) === file)
  if (!isNamed) {
    throw new UsageError(`gateway.yaml names no users file ${wanted}: ${files.join(', ')}`)
  }
  return files.some(each => resolve(folder, each) === file) ? file : resolve(wanted)
}
