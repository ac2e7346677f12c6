/** Declarations of the commands for operators of a running gateway. */
import type { Command } from '../command.ts'

export const sessions: Command = {
  summary: 'list the sessions of a user or of all, close one, all of a user, or everyone’s',
  ways: [
    { words: 'list', takes: ['json'] },
    { words: 'list USER', takes: ['source', 'json'] },
    { words: 'list', needs: ['id'], takes: ['source', 'json'] },
    { words: 'list', needs: ['name'], takes: ['source', 'json'] },
    { words: 'close USER [SESSION-ID]', takes: ['source', 'json'] },
    { words: 'close [SESSION-ID]', needs: ['id'], takes: ['source', 'json'] },
    { words: 'close [SESSION-ID]', needs: ['name'], takes: ['source', 'json'] },
    { words: 'close', needs: ['everyone'], takes: ['yes', 'json'] }
  ],
  details: `
Asks the running gateway of the config folder, by its socket (ops.socket).
With Redis it covers the sessions of all replicas.

USER is a user name or an id (\`user\` and \`userId\` in the log). If several users
match, nothing is done and they are listed: choose one by --id, --name and --source.
Without a user, list shows the sessions of all users, 1000 at most.

close signs out at the user's back-end too, --everyone does not. Who was signed out
may sign in again: see users block.

Examples:
  console-gateway sessions list
  console-gateway sessions list alice
  console-gateway sessions close alice --source users-file
  console-gateway sessions close --id u-1001 --json
Exit codes: 1 if no gateway answers, 3 if no user or several users match.`,
  options: {
    everyone: { type: 'boolean', description: 'all sessions of all users' },
    yes: { type: 'boolean', description: 'do not ask' },
    id: { type: 'string', value: 'ID', description: 'the user with this id' },
    name: { type: 'string', value: 'NAME', description: 'the user with this user name' },
    source: { type: 'string', value: 'NAME', description: 'of this credential source' }
  },
  asksGateway: true,
  run: async invocation => (await import('../sessions.ts')).sessions(invocation)
}

export const maintenance: Command = {
  summary: 'show what is closed, close routes for a time, and open them again',
  ways: [
    { words: '[show]', takes: ['json'] },
    {
      words: 'begin',
      needs: ['until'],
      takes: ['from', 'message', 'route', 'method', 'allow-role', 'json']
    },
    { words: 'end', takes: ['route', 'json'] }
  ],
  details: `
Without Redis it is in force in the process that is asked; with Redis at all
replicas, also across reloads and restarts, until its end. maintenance of
routes.yaml stays in force beside it.

TIME is a time such as 2026-12-01T06:00:00Z, or a duration from now such as 30m; at
most 7 days ahead. Without --route all routes of routes.yaml are closed, without --method
all methods. What is closed already stays closed; a route that is named again takes
the new end and message. end opens everything, end --route only these routes.

Examples:
  console-gateway maintenance begin --until 30m --message 'Back at 06:00.'
  console-gateway maintenance begin --until 2h --method POST --method PUT
  console-gateway maintenance begin --from 2h --until 3h --route orders
  console-gateway maintenance end --route orders
  console-gateway maintenance end
Exit codes: 1 if it was refused or no gateway answers.`,
  options: {
    'from': { type: 'string', value: 'TIME', description: 'the beginning; at once without it' },
    'until': { type: 'string', value: 'TIME', description: 'the end' },
    'message': { type: 'string', value: 'TEXT', description: 'the message for users' },
    'route': {
      type: 'string',
      value: 'ROUTE',
      multiple: true,
      description: 'a route to close, or to open; may be repeated'
    },
    'method': {
      type: 'string',
      value: 'METHOD',
      multiple: true,
      description: 'a method to close; may be repeated'
    },
    'allow-role': {
      type: 'string',
      value: 'ROLE',
      multiple: true,
      description: 'users with this role go on; may be repeated'
    }
  },
  asksGateway: true,
  run: async invocation => (await import('../maintenance.ts')).maintenance(invocation)
}

export const audit: Command = {
  summary: 'verify the audit ledger',
  ways: [{ words: 'verify', takes: ['folder', 'key-file', 'collected', 'json'] }],
  details: `
Reads the files of this machine; no gateway has to run. The folder and the key are
those of gateway.yaml. On another machine name them: --folder and --key-file, a file
with the key, or with several in lines. With audit.to stdout name the collected log
by --collected; lines of others in it are passed over.

It says whether a line was changed, cut, moved or added, and whether a file is
missing. It names file and line. The end of the newest file is held against Redis;
those of the others are named by the files after them.

The files are lines of JSON: search them with jq, and follow them with tail -F.

Examples:
  console-gateway audit verify
Exit codes: 0 as it was written, 1 changed or unreadable, 3 something cannot be shown
(entries were lost, Redis cannot be asked).`,
  options: {
    'folder': { type: 'string', value: 'DIR', description: 'the folder of the ledger' },
    'key-file': { type: 'string', value: 'FILE', description: 'a file with the key' },
    'collected': {
      type: 'string',
      value: 'FILE',
      multiple: true,
      description: 'a log with lines of the ledger; may be repeated'
    }
  },
  run: async invocation => (await import('../audit/verify.ts')).audit(invocation)
}

export const limits: Command = {
  summary: 'show how limits are used; show or reset the counts of one caller',
  ways: [
    { takes: ['json'] },
    { words: 'show CALLER', takes: ['json'] },
    { words: 'reset CALLER', takes: ['json'] }
  ],
  details: `
Without arguments it prints of each limit the most that any caller used of it at once in
this hour and in 24 hours, who is over it, and who came nearest. The numbers are those of
the process that answers. Limits in shadow count too: a new number can be tried so.

show lists the counts of all limits for CALLER: an IP address, or a user by name or id.
reset sets them to zero, in all replicas within a second. Locks of sign-in after too many
failures are not limits: see lockouts.

Examples:
  console-gateway limits
  console-gateway limits show anna
  console-gateway limits reset 203.0.113.7
Exit codes: 0 nobody is over a limit, 3 somebody is; 1 if no gateway answers.`,
  asksGateway: true,
  run: async invocation => (await import('../limits.ts')).limits(invocation)
}

export const lockouts: Command = {
  summary: 'list and lift locks of sign-in after too many failures',
  ways: [
    { words: 'list', takes: ['account', 'address', 'json'] },
    { words: 'lift', needs: ['account'], takes: ['address', 'json'] },
    { words: 'lift', needs: ['address'], takes: ['account', 'json'] }
  ],
  details: `
A lock ends by itself; \`lift\` ends it now, in all replicas, and forgets the
failures. Of an account it lifts all: from one address, from any, and of known browsers.
An address that tried many accounts is locked by itself: name both if both are locked.
Sessions are not touched.

Examples:
  console-gateway lockouts list
  console-gateway lockouts lift --account alice --address 203.0.113.7`,
  options: {
    account: { type: 'string', value: 'NAME', description: 'the user name, in any spelling' },
    address: {
      type: 'string',
      value: 'IP',
      description: 'an address; of an IPv6 address its whole network'
    }
  },
  asksGateway: true,
  run: async invocation => (await import('../lockouts.ts')).lockouts(invocation)
}
