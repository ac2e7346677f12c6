import type { CliCommand } from '../command.ts'

export function addExpertCommands(program: CliCommand): void {
  program
    .subcommand('explain <method> <path>', 'say what becomes of a request, with file and line')
    .option('--as <user>', 'signed in as this user')
    .repeatable('--role <role>', 'signed in with this role')
    .option('--from <ip>', 'the address of the client (default: 127.0.0.1)')
    .repeatable('-H, --header <field>', 'a header of the request, "name: value"')
    .option('--data <body>', 'the body of the request')
    .option('--answer <file>', 'the back-end’s response; - is standard input')
    .option('--live', 'ask the back-ends')
    .json()
    .details(`
The real app of this config handles the request, as of a browser that shows the console:
no Redis is called, and limits count from zero. The path has server.mount and query. With
--answer (JSON) or --live the response is shown, and each operation of the shape (with
--json what it made). With --live, back-ends that take a credential get --header, too.
Exit codes: 0 the request passes, 3 the gateway refuses it, or the response is an error.`)
    .examples(
      'console-gateway explain GET /api/orders --as alice',
      'curl -s http://b.internal/orders | console-gateway explain GET /api/orders --answer -'
    )
    .runs(async () => (await import('../explain.ts')).explain)
  program
    .subcommand('plan [new-dir]', 'list what a new config folder would change, and the risks of it')
    .details(`
Compares the config folder with the new one; without that, what runs with the folder.
Exit codes: 0 no risks, 3 risks; 1 faults, or no gateway answers.`)
    .examples('console-gateway plan /etc/console-gateway.next -c /etc/console-gateway')
    .asksGateways(words => words.length === 0)
    .runs(async () => (await import('../plan.ts')).plan)
  program
    .subcommand('openapi', 'write an OpenAPI 3.1 document of all that the console can call')
    .examples(
      'console-gateway openapi > openapi.json',
      'npx openapi-typescript openapi.json -o src/services/gateway.d.ts'
    )
    .runs(async () => (await import('../openapi.ts')).openapi)
  const audit = program
    .subcommand('audit', 'verify the audit ledger')
    .examples('console-gateway audit verify')
  audit
    .subcommand('verify', 'say whether a line was changed, cut, moved or added, or a file is gone')
    .option('--folder <dir>', 'the folder of the ledger')
    .option('--key-file <file>', 'a file with the key, or with several in lines')
    .repeatable('--collected <file>', 'a log with lines of the ledger (audit.to: stdout)')
    .json()
    .details(`
Folder and key are those of gateway.yaml; on another machine name them.
Exit codes: 0 as it was written, 1 changed or unreadable, 3 something cannot be shown
(entries were lost, Redis cannot be asked).`)
    .runs(async () => (await import('../audit.ts')).audit)
}
