/** Declarations of the commands that make a config, users and secrets. */
import { type Command, passwordEnvOption } from '../command.ts'
import { options } from '../init/options.ts'

export const init: Command = {
  summary: 'look at a back-end, and write a config folder for a console in front of it',
  ways: [{ words: '[DIR]', takes: Object.keys(options) }],
  details: `
Asks what it needs to know; each question has an option, for scripts. It signs in at
the back-end once, with the account that you name, and finds out how sign-in, token,
user and lists work. It says what it found, guessed and left to do, and writes DIR
(default: config): gateway.yaml, routes.yaml, limits.yaml, JSON Schemas for editors, and
.env with the session secret. The folder starts in any case; TODO lines in it say what
could not be found.

The password is asked for without echo, or read from standard input or an environment
variable. It goes to the sign-in only, never through a redirect. Besides sign-in and
sign-out, init only sends GET, 40 requests at most. It prints and writes names and codes,
no values.

Examples:
  console-gateway init
  console-gateway init shop --backend-url https://shop.internal --login-path /auth/login \\
    --user dora --password-env DORA_PASSWORD --route /orders --route /notices --yes
Exit codes: 1 if nothing was written.`,
  options,
  run: async invocation => (await import('../init/init.ts')).init(invocation)
}

export const routes: Command = {
  summary: 'look at a GET call of a back-end, and write a route and a shape for it',
  ways: [{ words: 'add GET PATH', takes: ['upstream', 'user', 'password-env', 'write'] }],
  details: `
Signs in at the back-end as the config says, with the account that you name, makes the one
call, and signs out. It prints the route and the shape for routes.yaml; --write adds them
there. PATH is the path at the back-end; PUBLIC=PATH names that of the console, too.

Examples:
  console-gateway routes add GET /v2/refunds --user dora
  console-gateway routes add GET /api/returns=/v2/refunds --user dora --write
Exit codes: 1 if the back-end gives no data, or the config would have faults.`,
  options: {
    'upstream': {
      type: 'string',
      value: 'NAME',
      description: 'the upstream, if there are several'
    },
    'user': { type: 'string', value: 'NAME', description: 'an account of the back-end' },
    'password-env': passwordEnvOption,
    'write': { type: 'boolean', description: 'add them to routes.yaml' }
  },
  run: async invocation => (await import('../routes-add.ts')).routes(invocation)
}

export const users: Command = {
  summary: 'add a user to the users file, set a password; block a user of any source',
  ways: [
    { words: 'add NAME', takes: ['role', 'id', 'name', 'file', 'password-env'], isLocal: true },
    { words: 'set-password USER', takes: ['file', 'password-env'], isLocal: true },
    { words: 'block USER', takes: ['source', 'for', 'json'] },
    { words: 'unblock USER', takes: ['source', 'json'] },
    { words: 'blocked', takes: ['json'] }
  ],
  details: `
add and set-password write the hash of a password into the users file of the config
folder. The password is asked for without echo, or read from standard input or an
environment variable. Comments and the format of the file stay. The file is replaced as
a whole, and only if the change adds no fault to the config. A running gateway takes it
over by itself; a new password ends the user's sessions.

block, unblock and blocked ask a running gateway. block ends the sessions of a user, at
the back-end too, and refuses sign-ins: for a time, or until unblock. USER is a user name
or an id, in any spelling, of any source. With Redis it is in force at all replicas;
without, until the gateway ends.

Examples:
  console-gateway users add alice --role admin -c /etc/console-gateway
  pass show console/alice | console-gateway users set-password alice
  console-gateway users block anna --for 2h
Exit codes: 1 if the user exists (add), does not exist (set-password), nothing could be
written or no gateway answers; 3 if there is no such block (unblock).`,
  options: {
    'role': { type: 'string', multiple: true, value: 'ROLE', description: 'a role of the user' },
    'id': { type: 'string', value: 'ID', description: 'the id that back-ends get (default: NAME)' },
    'name': {
      type: 'string',
      value: 'DISPLAY-NAME',
      description: 'the display name (default: NAME)'
    },
    'file': { type: 'string', value: 'FILE', description: 'the users file, if there are several' },
    'password-env': passwordEnvOption,
    'source': { type: 'string', value: 'NAME', description: 'at this credential source only' },
    'for': { type: 'string', value: 'DURATION', description: 'such as 30m, 2h or 7d' }
  },
  asksGateway: true,
  // The usage error would print the words, and one of them may be a password.
  checksWords: true,
  run: async invocation =>
    ['block', 'unblock', 'blocked'].includes(invocation.rest[0] ?? '')
      ? (await import('../blocked-users.ts')).blockedUsers(invocation)
      : (await import('../users.ts')).users(invocation)
}

export const hashPassword: Command = {
  summary: 'read a password (prompt or standard input), print its argon2id hash',
  details: `
The hash is the password of a user in a users file. A password on the command line is refused: it
would stay in the shell's history.

Examples:
  console-gateway hash-password
  pass show console/alice | console-gateway hash-password`,
  // The usage error would print the words, and one of them may be a password.
  checksWords: true,
  run: async invocation => (await import('../hash-password.ts')).hashPasswordCommand(invocation)
}

export const generateSecret: Command = {
  summary: 'print a secret for session.secrets; with a FILE, write it there unless it exists',
  ways: [{ words: '[FILE]' }],
  details: `
32 random bytes, as text. Only its owner can read the new FILE.

Examples:
  export SESSION_SECRET=$(console-gateway generate-secret)
  console-gateway generate-secret /run/secrets/session`,
  run: async invocation => (await import('../generate-secret.ts')).generateSecret(invocation)
}
