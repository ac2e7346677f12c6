import type { CreatedKey, KeyJson } from '../../ops/keys.ts'
import type { BlockJson } from '../../ops/users.ts'
import { type CliCommand, type Columns, tableOf } from '../command.ts'

const nobodyThere = 'Nobody with this name, as `sessions list` shows it, is signed in.'

const refusal = (text: string) => ({ text, isRefusal: true })

type Block = { readonly source?: string; readonly for?: string }

const blockColumns: Columns<BlockJson> = {
  USER: ({ name }) => name,
  SOURCE: ({ source = 'any' }) => source,
  UNTIL: ({ until = 'unblocked' }) => until
}

const keyColumns: Columns<KeyJson> = {
  'KEY': ({ name }) => name,
  'ROLES': ({ roles }) => roles.join(', '),
  'LAST USED': ({ lastUsedAt = 'never' }) => lastUsedAt,
  'EXPIRES': ({ expiresAt }) => expiresAt,
  'CREATED BY': ({ createdBy }) => createdBy
}

export function addUsers(program: CliCommand): void {
  const users = program
    .subcommand('users', 'add a user to the users file, set a password; block a user of any source')
    .asksOne()
    .action((_values, command) => command.error('Name a subcommand and a user: add alice.'))
    .details(`
The password is asked for, or read from standard input; a new one ends the user's sessions.
block ends those of a user (name or id) of any source, and refuses sign-ins for a time, or
until unblock. Exit codes: 3 if there is no such block.`)
    .examples(
      'console-gateway users add alice --role admin -c /etc/console-gateway',
      'pass show console/alice | console-gateway users set-password alice',
      'console-gateway users block anna --for 2h'
    )
  const ofFile = (words: string, description: string) =>
    users
      .subcommand(words, description)
      .option('--file <file>', 'the users file, if there are several')
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
    .asks<BlockJson & { readonly closed: number }, Block>(
      async ({ rest: [name], values: { source, for: written } }) => {
        const { forMs } = await import('../ask.ts')
        return ['/users/block', { body: { name, source, forMs: forMs(written) } }]
      },
      ({ name, until, closed }) => {
        const end = until === undefined ? '' : ` until ${until}`
        const text = `blocked: ${name}${end}; sessions closed: ${closed}`
        return { text: closed === 0 ? `${text}\n${nobodyThere}` : text }
      }
    )
  users
    .subcommand('unblock <user>', 'allow them again')
    .option('--source <name>', 'at this credential source only')
    .asks<{ readonly unblocked: number }, Block>(
      ({ rest: [name], values }) => ['/users/unblock', { body: { name, ...values } }],
      ({ unblocked: count }, { rest: [name] }) =>
        count === 0 ? refusal('No such block: see users blocked.') : { text: `unblocked: ${name}` }
    )
  users
    .subcommand('blocked', 'list blocked users')
    .asks<{ readonly blocked: readonly BlockJson[] }>(
      () => ['/users/blocked'],
      ({ blocked }) => tableOf(blocked, blockColumns, 'nobody is blocked')
    )
}

export function addKeys(program: CliCommand): void {
  const keys = program
    .subcommand('keys', 'create, list and revoke keys for scripts')
    .asksOne()
    .details(`
A script sends its key as "Authorization: Bearer cgk_…" to routes with keys: true. A
revoked one ends within a second. Exit codes: 3 if there is no such key (revoke).`)
    .examples('console-gateway keys create ci --role importer > ci.key')
  keys
    .subcommand('create <name>', 'print a new key')
    .repeatable('--role <role>', 'a role of the key')
    .option('--for <duration>', 'until it expires: such as 12h, 90d or 365d', '90d')
    .asks<CreatedKey, { readonly role?: readonly string[]; readonly for?: string }>(
      async ({ rest: [name], values: { role: roles, for: written } }) => {
        const { forMs } = await import('../ask.ts')
        return ['/keys/create', { body: { name, roles, forMs: forMs(written) } }]
      },
      ({ key, expiresAt }) => ({
        text: key,
        note: `Keep this key now: it is not shown again. It expires ${expiresAt}.`
      })
    )
  keys
    .subcommand('list', 'the keys, with roles, last use and end')
    .asks<{ readonly keys: readonly KeyJson[] }>(
      () => ['/keys'],
      ({ keys: rows }) => tableOf(rows, keyColumns, 'no keys')
    )
  keys.subcommand('revoke <name>', 'end a key').asks<{ readonly revoked: number }>(
    ({ rest: [name] }) => ['/keys/revoke', { body: { name } }],
    ({ revoked: count }, { rest: [name] }) =>
      count === 0 ? refusal('No such key: see keys list.') : { text: `revoked: ${name}` }
  )
}
