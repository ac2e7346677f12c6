/** `users`: adds users to a users file and sets their passwords; comments and format stay. */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { readUsersFiles } from '../config/load/named-files.ts'
import { describeFault, nearest } from '../config/schema/faults.ts'
import { hashPassword } from '../login/argon2.ts'
import { type Command, CommandError, type Invocation, UsageError } from './command.ts'
import { faultsWith } from './config-change.ts'
import { passwordEnvOption, readNewPassword } from './prompt.ts'
import { readText, replaceFile } from './replace-file.ts'
import { UsersText } from './users-text.ts'

/** As the schema of users.yaml. */
const userName = /^\S(.{0,253}\S)?$/
const newFile = '# yaml-language-server: $schema=schema/users.schema.json\n\nusers: {}\n'

export const users: Command = {
  summary: 'add a user to the users file, or set a user’s password',
  ways: [
    { words: 'add NAME', takes: ['role', 'id', 'name', 'file', 'password-env'] },
    { words: 'set-password USER', takes: ['file', 'password-env'] }
  ],
  details: `
Writes the hash of a password into the users file of the config folder. The password
is asked for without echo, or read from standard input or an environment variable.
Comments and the format of the file stay. The file is replaced as a whole, and only if
the change adds no fault to the config. A running gateway takes it over by itself; a new
password ends the user's sessions.

Examples:
  console-gateway users add alice --role admin -c /etc/console-gateway
  pass show console/alice | console-gateway users set-password alice
Exit codes: 1 if the user exists (add), does not exist (set-password) or nothing could
be written.`,
  options: {
    'role': { type: 'string', multiple: true, value: 'ROLE', description: 'a role of the user' },
    'id': { type: 'string', value: 'ID', description: 'the id that back-ends get (default: NAME)' },
    'name': {
      type: 'string',
      value: 'DISPLAY-NAME',
      description: 'the display name (default: NAME)'
    },
    'file': { type: 'string', value: 'FILE', description: 'the users file, if there are several' },
    'password-env': passwordEnvOption
  },
  // The usage error would print the words, and one of them may be a password.
  checksWords: true,
  run: async invocation => {
    const [what, name, ...more] = invocation.rest
    if ((what !== 'add' && what !== 'set-password') || name === undefined) {
      throw new UsageError('Name a subcommand and a user: add NAME, or set-password USER.')
    }
    if (more.length > 0) {
      throw new UsageError(
        'One word too many. If it is the password: type it at the prompt, or pass it on standard ' +
          'input. On the command line it is visible to everyone on this machine.'
      )
    }
    if (!userName.test(name)) throw new UsageError('Not a valid user name.')
    return what === 'add' ? await add(name, invocation) : await setPassword(name, invocation)
  }
}

async function add(name: string, invocation: Invocation): Promise<number> {
  const { config: folder, values } = invocation
  const file = usersFileOf(folder, values['file'])
  const before = existsSync(file) ? readText(file) : newFile
  const text = new UsersText(before)
  if (text.names.includes(name)) {
    throw new CommandError(
      `${file} has the user "${name}" already. For another password: users set-password ${name}`
    )
  }
  const id = typeof values['id'] === 'string' ? values['id'] : name
  const owner = text.ownerOf(id)
  if (owner !== undefined) {
    throw new CommandError(`"${owner}" has the id "${id}" already: choose another one with --id.`)
  }
  const roles = values['role'] as readonly string[] | undefined
  const displayName = values['name']
  const password = await hashPassword(await readNewPassword(values['password-env']))
  const after = text.add(name, {
    password,
    ...(id !== name && { id }),
    ...(typeof displayName === 'string' && { name: displayName }),
    ...(roles !== undefined && { roles })
  })
  write(folder, file, before, after)
  const list = roles === undefined ? 'no roles' : `roles: ${roles.join(', ')}`
  process.stdout.write(`${file}: added ${name} (${list})\n`)
  return 0
}

async function setPassword(name: string, { config: folder, values }: Invocation): Promise<number> {
  const file = usersFileOf(folder, values['file'])
  if (!existsSync(file)) throw new CommandError(`There is no file ${file}.`)
  const before = readText(file)
  const text = new UsersText(before)
  if (!text.names.includes(name)) {
    throw new CommandError(`${file} has no user "${name}".${nearest(name, text.names)}`)
  }
  const password = await hashPassword(await readNewPassword(values['password-env']))
  write(folder, file, before, text.setPassword(name, password))
  process.stdout.write(`${file}: set the password of ${name}; running sessions of ${name} end\n`)
  return 0
}

/**
 * Replaces the users file, unless the change would add a fault to the config.
 * @throws CommandError with the new faults, or if another process changed the file meanwhile
 */
function write(folder: string, file: string, before: string, after: string): void {
  const former = faultsWith(folder, new Map([[resolve(file), before]]))
  const formerKeys = new Set(former.map(({ path, message }) => `${path} ${message}`))
  const added = faultsWith(folder, new Map([[resolve(file), after]])).filter(
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
    process.stderr.write(
      `Note: the config has ${former.length} fault${former.length > 1 ? 's' : ''} of before: ` +
        `console-gateway check --config ${folder}\n`
    )
  }
}

/**
 * The users file of the folder's only `users-file` source. Only `gateway.yaml` is read, since the
 * folder may still have faults.
 */
function usersFileOf(folder: string, chosen: unknown): string {
  const files = readUsersFiles(folder, process.env)
  const wanted = typeof chosen === 'string' ? chosen : files[0]
  if (wanted === undefined) {
    throw new CommandError(
      `gateway.yaml of ${folder} has no source of the kind users-file (login.sources).`
    )
  }
  if (typeof chosen !== 'string' && files.length > 1) {
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
