import type { CliCommand } from '../cli-command.ts'

export function addUserCommands(program: CliCommand): void {
  addSessions(program)
  addLockouts(program)
  addUsers(program)
  addKeys(program)
}

function addSessions(program: CliCommand): void {
  const sessions = program
    .subcommand(
      'sessions',
      'list sessions, of a user or of all; close one, a user’s, or everyone’s'
    )
    .details(`
A user is a user name or an id. If several users match, nothing is done and they are
listed. Who was signed out may sign in again: see users block.
Exit codes: 3 if no user or several users match.`)
    .examples('console-gateway sessions close alice --source users-file')
  const subcommand = (words: string, description: string) =>
    sessions
      .subcommand(words, description)
      .option('--by <what>', 'whether USER is an id or a name (default: either)')
      .option('--source <name>', 'of this credential source')
  subcommand('list [user]', 'the sessions of a user, or of all; 1000 at most')
    .checks(({ by, source }, [user]) =>
      user === undefined && (by ?? source) !== undefined ? 'Give USER.' : undefined
    )
    .asks(async () => (await import('../sessions.ts')).listSessions)
  subcommand('close [user] [session-id]', 'close the sessions of a user, or one of them')
    .option('--everyone', 'all sessions of all users')
    .option('--yes', 'with --everyone: do not ask')
    .checks(({ by, source, everyone, yes }, [user]) => {
      const isOfUser = user !== undefined && (everyone ?? yes) === undefined
      const isOfAll = (user ?? by ?? source) === undefined && everyone === true
      return isOfUser || isOfAll ? undefined : 'Give USER, or --everyone.'
    })
    .asks(async () => (await import('../sessions.ts')).closeSessions)
}

function addLockouts(program: CliCommand): void {
  const lockouts = program
    .subcommand('lockouts', 'list and lift locks of sign-in after too many failures')
    .details(
      'An address that tried many accounts is locked by itself: name both if both are locked.'
    )
    .examples('console-gateway lockouts lift --account alice --address 203.0.113.7')
  const subcommand = (name: string, description: string) =>
    lockouts
      .subcommand(name, description)
      .option('--account <name>', 'the user name, in any spelling')
      .option('--address <ip>', 'an address; of an IPv6 address its whole network')
  subcommand('list', 'the locks').asks(async () => (await import('../limits.ts')).listLockouts)
  subcommand('lift', 'end a lock now, in all replicas, and forget the failures')
    .checks(({ account, address }) =>
      (account ?? address) === undefined ? 'Give --account NAME, or --address IP.' : undefined
    )
    .asks(async () => (await import('../limits.ts')).liftLockouts)
}

function addUsers(program: CliCommand): void {
  const wrongWords =
    'Name a subcommand and a user: add NAME, set-password USER, block USER or unblock USER.'
  const users = program
    .subcommand('users', 'add a user to the users file, set a password; block a user of any source')
    .action((_values, command) => command.error(wrongWords))
    .details(`
The password is asked for without echo, or read from standard input. A new password ends
the user's sessions.

block ends the sessions of a user of any source, and refuses sign-ins: for a time, or
until unblock. The user is a name or an id.
Exit codes: 3 if there is no such block (unblock).`)
    .examples(
      'console-gateway users add alice --role admin -c /etc/console-gateway',
      'pass show console/alice | console-gateway users set-password alice',
      'console-gateway users block anna --for 2h'
    )
  const ofFile = (words: string, description: string) =>
    users
      .subcommand(words, description)
      .option('--file <file>', 'the users file, if there are several')
      .passwordEnv()
      .hidesWords()
  ofFile('add <user>', 'add a user to the users file')
    .repeatable('--role <role>', 'a role of the user')
    .option('--id <id>', 'the id that back-ends get (default: the name)')
    .option('--name <display-name>', 'the display name (default: the name)')
    .runs(async () => (await import('../users.ts')).addUser)
  ofFile('set-password <user>', 'set the password of a user').runs(
    async () => (await import('../users.ts')).setPassword
  )
  users
    .subcommand('block <user>', 'refuse sign-ins of a user')
    .option('--source <name>', 'at this credential source only')
    .option('--for <duration>', 'such as 30m, 2h or 7d')
    .asks(async () => (await import('../access.ts')).blockUser)
  users
    .subcommand('unblock <user>', 'allow them again')
    .option('--source <name>', 'at this credential source only')
    .asks(async () => (await import('../access.ts')).unblockUser)
  users
    .subcommand('blocked', 'list blocked users')
    .asks(async () => (await import('../access.ts')).listBlocked)
}

function addKeys(program: CliCommand): void {
  const keys = program
    .subcommand('keys', 'create, list and revoke keys for scripts')
    .details(`
A script sends its key as "Authorization: Bearer cgk_…" to routes with keys: true. The key
is printed once; the gateway keeps its hash alone. A revoked key ends within a second.
Exit codes: 3 if there is no such key (revoke).`)
    .examples(
      'console-gateway keys create ci --role importer > ci.key',
      'console-gateway keys revoke nightly-export'
    )
  keys
    .subcommand('create <name>', 'print a new key')
    .repeatable('--role <role>', 'a role of the key')
    .option('--for <duration>', 'until it expires: such as 12h, 90d or 365d', '90d')
    .asks(async () => (await import('../access.ts')).createKey, { isOfOne: true })
  keys
    .subcommand('list', 'the keys, with roles, last use and end')
    .asks(async () => (await import('../access.ts')).listKeys, { isOfOne: true })
  keys
    .subcommand('revoke <name>', 'end a key')
    .asks(async () => (await import('../access.ts')).revokeKey, { isOfOne: true })
}
