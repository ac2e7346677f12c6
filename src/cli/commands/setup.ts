import { Argument } from 'commander'
import type { CliCommand } from '../command.ts'

export function addSetupCommands(program: CliCommand): void {
  addInit(program)
  const presets = program
    .subcommand('presets', 'list and show the presets of consoles and back-ends')
    .details('gateway.yaml names a console’s preset in "extends" and a back-end’s in "backend".')
    .examples('console-gateway presets show ant-design-pro')
  presets
    .subcommand('list', 'all presets (the default)', { isDefault: true })
    .json()
    .runs(async () => (await import('../presets.ts')).listPresets)
  presets
    .subcommand('show <preset>', 'print the file of a preset')
    .runs(async () => (await import('../presets.ts')).showPreset)
  program
    .subcommand('hash-password', 'ask for a password (or read it), print its argon2 hash')
    .examples('pass show console/alice | console-gateway hash-password')
    .runs(async () => (await import('../secrets.ts')).hash)
  program
    .subcommand('generate-secret [file]', 'print a secret for session.secrets, or write a new FILE')
    .details('Only its owner can read the new FILE; one that exists stays.')
    .examples('console-gateway generate-secret /run/secrets/session')
    .runs(async () => (await import('../secrets.ts')).generateSecret)
  program
    .subcommand('schemas', 'write JSON Schemas into a config folder, for completion in editors')
    .details(`
Writes schema/*.schema.json, and into each of gateway, routes, limits and users.yaml without
one the first line "# yaml-language-server: $schema=…". Run it again after an update.`)
    .examples('console-gateway schemas -c /etc/console-gateway')
    .runs(async () => (await import('../schemas.ts')).schemas)
  program
    .subcommand('completion', 'print a script that makes a shell complete commands and options')
    .addArgument(new Argument('<shell>').choices(['bash', 'zsh']))
    .details('Print it again after an update of the gateway.')
    .examples('source <(console-gateway completion bash)   # in ~/.bashrc; likewise zsh')
    .runs(async () => (await import('../completion.ts')).completionOf(program))
}

function addInit(program: CliCommand): void {
  program
    .subcommand('init [dir]', 'look at a back-end, and write a config folder for its console')
    .option('--console <dir-or-preset>', 'the folder of its built files, a preset, or none')
    .option('--console-preset <preset>', 'the preset of the console in that folder (default: none)')
    .option('--backend-url <url>', 'the URL of the back-end')
    .option('--backend <preset>', 'its preset; unknown: init looks for itself (default)')
    .option('--sign-in <where>', 'who vouches for users: backend (default), file, oidc or ldap')
    .option('--issuer <url>', 'of the OpenID provider')
    .option('--client-id <id>', 'of the client that is registered there')
    .option('--ldap-url <url>', 'of the directory')
    .option('--ldap-base <dn>', 'of its users, such as ou=people,dc=example,dc=com')
    .option('--login-path <path>', 'the back-end’s sign-in (POST)')
    .option('--login-fields <names>', 'username,password (default), user.email, NAME=VALUE')
    .option('--login-format <format>', 'json (default) or form')
    .option('--user <name>', 'an account of the back-end, or the first user of the users file')
    .option('--token-header <header>', 'the header that takes the token, such as x-api-token')
    .option('--user-path <path>', 'the GET call that tells who the user is')
    .option('--logout-path <call>', 'the back-end’s sign-out: PATH (POST), or "DELETE PATH"')
    .option('--error-path <path>', 'the text in the body of an error, such as err.text')
    .repeatable('--header <header>', 'one that the back-end always wants, such as "tenant-id: 1"')
    .repeatable('--route <path>', 'a GET path that the console needs; PUBLIC=PATH to rename it')
    .option('--allow-plain-http', 'send the password over http to another machine')
    .option('-y, --yes', 'write without asking')
    .details(`
Each question has an option, for scripts. It signs in at the back-end once, and finds out
how sign-in, token, user and lists work; else it only sends GET, 40 requests at most. The
folder (default: config) starts in any case; TODO lines say what is left to do.`)
    .examples(
      'console-gateway init',
      `pass show shop/dora | console-gateway init shop --backend-url https://shop.internal \\
  --login-path /auth/login --user dora --route /orders --route /notices --yes`
    )
    .runs(async () => (await import('../init/init.ts')).init)
  const routes = program
    .subcommand('routes', 'look at a GET call of a back-end, and print a route and a shape for it')
    .examples('console-gateway routes add GET /api/returns=/v2/refunds --user dora')
  routes
    .subcommand('add <method> <path>', 'make the call GET PATH, and print its route and its shape')
    .option('--upstream <name>', 'the upstream, if there are several')
    .option('--user <name>', 'an account of the back-end')
    .details(`
Signs in at the back-end as the config says, makes the one call, and signs out. The path
is that at the back-end; PUBLIC=PATH names that of the console, too. What it prints is for
routes.yaml.`)
    .runs(async () => (await import('../routes-add.ts')).routes)
}
