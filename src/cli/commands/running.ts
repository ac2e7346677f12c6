/** Declarations of the commands that run a gateway and change what runs. */
import type { Command } from '../command.ts'

export const start: Command = {
  summary: 'run the gateway (the default)',
  ways: [{ takes: ['config', 'state'] }, { needs: ['last-good', 'state'], takes: ['config'] }],
  details: `
SIGTERM stops it after the requests in flight (drain), SIGINT at once; SIGHUP reads
the config again. Started by npm or npx, it stops within a second of a SIGTERM to npm, in
the same way. If it cannot start, or the config has faults, it prints the reason and ends
with exit code 1.

With --state it keeps the config that runs in a file of DIR, without secrets. With
--last-good too, it starts with that one where the config has faults: readyz, status,
log and metrics say so until the files are mended.

Examples:
  console-gateway start -c /etc/console-gateway
  console-gateway start --state /var/lib/console-gateway --last-good
  LISTEN=127.0.0.1:3000 console-gateway`,
  options: {
    'state': { type: 'string', value: 'DIR', description: 'keep the running config in DIR' },
    'last-good': {
      type: 'boolean',
      description: 'where the config has faults, start with the one that ran last'
    }
  },
  run: async invocation => (await import('../start.ts')).start(invocation)
}

export const status: Command = {
  summary: 'show the state of a running gateway: its config and its faults',
  ways: [{ takes: ['all', 'json'] }],
  details: `
Asks the running gateway of the config folder, by its socket (ops.socket).
With --all it says who runs what: all replicas that were seen within 10 s, also those
that do not answer.

Examples:
  console-gateway status
  console-gateway status --json | jq .files.state
  console-gateway status --all
Exit codes: 1 if no gateway answers, 3 if the config files were refused, or a replica
does not answer.`,
  options: { all: { type: 'boolean', description: 'all replicas: who runs what' } },
  asksGateway: true,
  run: async invocation => (await import('../status.ts')).status(invocation)
}

export const ops: Command = {
  summary: 'print a link that opens the operators’ page of a running gateway, and open it',
  ways: [{ takes: ['open', 'json'] }],
  details: `
The link is good once, for two minutes. It needs no account: whoever may open the
gateway's socket (ops.socket) is an operator. In a terminal with a browser it is opened.

Examples:
  console-gateway ops
  docker compose exec gateway console-gateway ops
Exit codes: 1 if no gateway answers.`,
  options: { open: { type: 'boolean', description: 'open it in the browser' } },
  asksGateway: true,
  run: async invocation => (await import('../ops.ts')).ops(invocation)
}

export const why: Command = {
  summary: 'tell the story of a request: what was decided, by what, and what to do about it',
  ways: [
    { words: 'REQUEST-ID', takes: ['json'] },
    { needs: ['user'], takes: ['last', 'status', 'route', 'json'] },
    { needs: ['last'], takes: ['status', 'route', 'json'] }
  ],
  details: `
The id is in X-Request-Id of every response, in the log and in error bodies. Kept
are the last 2000 requests that failed, took more than a second or were no GET: in
Redis, those of all replicas; without Redis, until the process ends. All others
stand in the access log alone. Nothing is kept of queries, bodies, header values
and tokens.

Up to 10 requests are told in full, the newest first; more have one line each.

Examples:
  console-gateway why 0b9d5bd2-6f0f-4d6c-8f0e-2d0a2f6a1c11
  console-gateway why --user alice --status failed
  console-gateway why --last 50
Exit codes: 1 if no gateway answers, 3 if no request was found.`,
  options: {
    user: { type: 'string', value: 'NAME', description: 'requests of this user name or id' },
    last: {
      type: 'string',
      value: 'N',
      description: 'the newest N, at most 500 (default: 5)'
    },
    status: { type: 'string', value: 'STATUS', description: 'failed, 4xx or 404' },
    route: { type: 'string', value: 'ROUTE', description: 'requests of this route' }
  },
  asksGateway: true,
  run: async invocation => (await import('../why.ts')).why(invocation)
}

const yes = {
  type: 'boolean',
  description: 'allow the change to end most sessions of file users'
} as const

export const reload: Command = {
  summary: 'make a running gateway read its config files again, and print the changes',
  ways: [{ takes: ['yes', 'json'] }],
  details: `
Applies routes.yaml, limits.yaml, users files and certificate files, all or
nothing. Changes to gateway.yaml are listed and need a restart. A gateway that
watches its files (reload.watch) reloads by itself; SIGHUP reloads too.

Sessions of users who were removed, disabled or got another password end; their
number is printed. If most sessions of file users would end (more than half, and at
least 10), the files are refused unless --yes is set.

Examples:
  console-gateway check && console-gateway reload
  console-gateway reload --yes
Exit codes: 1 if the files were refused or no gateway answers.`,
  options: { yes },
  asksGateway: true,
  run: async invocation => (await import('../reload.ts')).reload(invocation)
}
