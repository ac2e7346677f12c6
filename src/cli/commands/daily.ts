import type { FoundRequests } from '../../observability/failures.ts'
import type { ReloadAnswer, ReplicasStatus, Status } from '../../ops/state-schemas.ts'
import type { CliCommand } from '../command.ts'
import { addLimits, addLockouts } from './limits.ts'
import { addMaintenance } from './maintenance.ts'
import { addSessions } from './sessions.ts'
import { addKeys, addUsers } from './users.ts'

export function addDailyCommands(program: CliCommand): void {
  addFiles(program)
  addState(program)
  addMaintenance(program)
  addLimits(program)
  addSessions(program)
  addLockouts(program)
  addUsers(program)
  addKeys(program)
}

function addFiles(program: CliCommand): void {
  program
    .subcommand('start', 'run the gateway (the default)', { isDefault: true })
    .option('--state <dir>', 'keep the config that runs in a file of this folder, without secrets')
    .option('--last-good', 'where the config has faults, start with the one that ran last')
    .details('SIGTERM stops it after the requests in flight, SIGINT at once; SIGHUP reloads.')
    .examples('LISTEN=127.0.0.1:3000 console-gateway start -c /etc/console-gateway')
    .runs(async () => (await import('../start.ts')).start)
  program
    .subcommand('demo', 'run an example console and back-end with a gateway between them')
    .details('Says what to try. Its config may be changed, and is removed at the end.')
    .examples('console-gateway demo')
    .runs(async () => (await import('../demo.ts')).demo)
  program
    .subcommand('check', 'report all faults of the config, without starting')
    .option('--strict', 'warnings end with exit code 3')
    .option('--live', 'connect to upstreams, Redis and directories too')
    .option('--user <name>', 'with --live: look up a user in LDAP directories, without a password')
    .option('--no-code', 'load no own code, try no expectation')
    .json()
    .details(`
Own code of the config is loaded: use --no-code for a config that you do not trust.
Exit codes: 0 no faults, 1 faults or something that cannot be reached, 3 warnings with --strict.`)
    .examples('console-gateway check --live -c /etc/console-gateway')
    .runs(async () => (await import('../check.ts')).check)
  program
    .subcommand('reload', 'make a running gateway read its config again, and print the changes')
    .option('--yes', 'allow the change to end most sessions of file users')
    .details('All or nothing; changes to gateway.yaml are listed and need a restart.')
    .examples('console-gateway check && console-gateway reload')
    .asks<ReloadAnswer, { readonly yes?: boolean }>(
      ({ values: { yes = false } }) => ['/reload', { body: { yes } }],
      async answer => (await import('../status.ts')).reloadOf(answer)
    )
}

function addState(program: CliCommand): void {
  program
    .subcommand('status', 'show the state of a running gateway: its config and its faults')
    .option('--all', 'all replicas that were seen within 10 s: who runs what')
    .details('Exit codes: 3 if the config files were refused, or a replica does not answer.')
    .examples('console-gateway status --all')
    .asks<Status | ReplicasStatus, { readonly all?: boolean }>(
      ({ values: { all } }) => [all === true ? '/replicas' : '/status'],
      async answer => {
        const { replicasOf, statusOf } = await import('../status.ts')
        return 'replicas' in answer ? replicasOf(answer) : statusOf(answer)
      }
    )
  program
    .subcommand('health', 'say whether a running gateway takes requests, for health checks')
    .details('Exit codes: 1 if it is not ready; a back-end that is down is no reason.')
    .examples('console-gateway health -c /etc/console-gateway')
    .asksGateways()
    .runs(async () => (await import('../status.ts')).health)
  program
    .subcommand('ops', 'print a link that opens the operators’ page of a running gateway')
    .details('It needs no account: who may open the gateway’s socket (ops.socket) is an operator.')
    .examples('docker compose exec gateway console-gateway ops')
    .asks<{ readonly url: string }>(
      () => ['/link', { body: {} }],
      ({ url: local }, { gateway }) => {
        // From afar, the gateway's own address is not the one by which it is reached.
        const isHere = gateway.socketPath !== undefined
        const url = isHere ? local : gateway.base + new URL(local).pathname
        const note = 'It opens the operators’ page once, within two minutes.'
        return { json: { url }, text: url, note }
      }
    )
  program
    .subcommand('why [request-id]', 'tell what became of a request, why, and what to do about it')
    .option('--user <name>', 'requests of this user name or id')
    .option('--last <n>', 'the newest N, at most 500', '5')
    .option('--status <status>', 'failed, 4xx or 404')
    .option('--route <route>', 'requests of this route')
    .details(`
The id is in X-Request-Id of every response. Kept are the last 2000 requests that failed,
took more than a second or were no GET: with Redis those of all replicas, else until the
process ends. Exit codes: 3 if no request was found.`)
    .examples('console-gateway why --user alice --status failed')
    .asks<FoundRequests>(
      ({ rest: [id], values }) => ['/requests', { query: { id, ...values } }],
      async (found, { rest: [id], io }) =>
        (await import('../why.ts')).requestsOf(found, id, io.stdout)
    )
}
